// The console: which page is shown, of which index, for whom. A page is a module page_NAME.js with
// show(root, route, signal): it fills `root`, and stops what it does when `signal` is aborted.
import {caller, indexes, onUnauthorized} from "./api.js";
import {askToken} from "./dialogs.js";
import {announce, el, options} from "./dom.js";
import {hold, takesFiles} from "./dropped.js";
import {problemCard} from "./problem.js";
import {session} from "./session.js";
import * as check from "./page_check.js";
import * as compare from "./page_compare.js";
import * as dedup from "./page_dedup.js";
import * as documentPage from "./page_document.js";
import * as find from "./page_find.js";
import * as groups from "./page_groups.js";
import * as index from "./page_index.js";
import * as overview from "./page_overview.js";

const PAGES = {overview, check, dedup, compare, groups, find, document: documentPage, index};
// The entry that is marked while a page without one is shown.
const UNDER = {document: "find"};

const main = document.getElementById("main");
let current = new AbortController();

// #/NAME/REST?QUERY
function routeOf(hash) {
  const [path, query] = hash.replace(/^#\/?/, "").split("?");
  const slash = path.indexOf("/");
  const name = slash < 0 ? path : path.slice(0, slash);
  let rest = slash < 0 ? "" : path.slice(slash + 1);
  try {
    rest = decodeURIComponent(rest);
  } catch {
    // Not percent-encoded: taken as it is.
  }
  return {name: name in PAGES ? name : "overview", rest, query: new URLSearchParams(query || "")};
}

function mark(name) {
  for (const link of document.querySelectorAll("#pages a")) {
    if (link.hash === `#/${UNDER[name] || name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

// Asks who the caller is, once: where a token is needed, that is the one question, before anything is shown.
let met = null;
function meet() {
  met =
    met ||
    caller().then(
      found => {
        session.caller = found;
        showToken();
      },
      error => {
        met = null;
        throw error;
      },
    );
  return met;
}
function forget() {
  met = session.caller = null;
}

async function open(moved) {
  current.abort();
  current = new AbortController();
  const {signal} = current,
    route = routeOf(location.hash),
    root = el("div", {class: `page ${route.name}`});
  mark(route.name);
  document.title = `${route.name[0].toUpperCase()}${route.name.slice(1)} - doppel`;
  main.setAttribute("aria-busy", "true");
  main.replaceChildren(root);
  try {
    if (!session.caller) root.append(el("h1", null, "doppel"));
    await meet();
    if (signal.aborted) return;
    root.replaceChildren();
    await PAGES[route.name].show(root, route, signal);
  } catch (error) {
    if (signal.aborted) return;
    if (error.status === 401) root.replaceChildren();
    if (!root.querySelector("h1")) root.prepend(el("h1", null, route.name === "document" ? "Document" : "doppel"));
    root.append(problemCard(error), el("button", {type: "button", on: {click: () => open(true)}}, error.status === 401 ? "Sign in" : "Try again"));
  }
  if (signal.aborted) return;
  main.removeAttribute("aria-busy");
  const heading = root.querySelector("h1");
  document.title = `${heading.textContent} - doppel`;
  if (!moved) return;
  heading.tabIndex = -1;
  heading.focus({preventScroll: true});
  scrollTo(0, 0);
  announce(document.title);
}

// The chooser is there when there is something to choose.
async function fillChooser() {
  const chooser = document.getElementById("chooser"),
    select = document.getElementById("index");
  const list = (await indexes()).indexes;
  if (session.index && !list.some(one => one.name === session.index)) {
    session.index = null;
    open(false);
  }
  chooser.hidden = list.length < 2;
  select.replaceChildren(
    ...options(
      list.map((one, i) => [i ? one.name : "", one.name]),
      session.index || "",
    ),
  );
}

const tokenButton = document.getElementById("token");
const showToken = () => {
  tokenButton.hidden = !session.token;
  const {name, right} = session.caller || {};
  tokenButton.title = name ? `${name} has the right ${right}` : "";
};

document.getElementById("index").addEventListener("change", event => {
  session.index = event.target.value || null;
  open(false);
});
document.getElementById("skip").addEventListener("click", event => {
  event.preventDefault();
  main.focus();
});
tokenButton.addEventListener("click", () => {
  session.token = null;
  forget();
  showToken();
  open(true);
});
document.addEventListener("token", () => {
  forget();
  showToken();
});
// The page itself says what is wrong when nothing can be read.
const tryChooser = () =>
  meet().then(fillChooser).catch(() => {
    document.getElementById("chooser").hidden = true;
  });
document.addEventListener("token", () => tryChooser());
document.addEventListener("index", () => tryChooser().then(() => open(true)));
addEventListener("hashchange", () => open(true));

// A file that is dropped on any page is deduplicated.
takesFiles(
  document.body,
  promise => {
    hold(promise);
    if (location.hash === "#/dedup") open(true);
    else location.hash = "#/dedup"; // which opens it
  },
  {anywhere: true},
);

onUnauthorized(askToken);
showToken();
open(false);
tryChooser();
