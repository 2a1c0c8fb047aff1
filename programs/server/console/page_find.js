// Find a document by its id, its URL or its title.
import {documents, get, orNull, stats} from "./api.js";
import {announce, box, button, card, el, field, form, lead, name, options, outcome, soft} from "./dom.js";
import {many, percent, share, time} from "./format.js";
import {problemCard, working} from "./problem.js";
import {session} from "./session.js";
import {documentLink} from "./verdict.js";

// Which document it is a copy of, or how many copies it has.
const copiesInWords = stored =>
  stored.originalId
    ? ["a copy of ", name(stored.originalId)]
    : stored.duplicates
      ? many(stored.duplicates, "copy", "copies")
      : "no copies";

function found(stored, how) {
  return card(
    how,
    el(
      "ul",
      {class: "documents"},
      el(
        "li",
        null,
        box("line", documentLink(stored.id, stored.title || stored.id)),
        soft(
          name(stored.id),
          stored.url && stored.url !== stored.id && [" · ", name(stored.url)],
          " · ",
          copiesInWords(stored),
        ),
      ),
    ),
  );
}

async function byTitle(title, signal) {
  const [stored] = (await documents({title: title.slice(0, 1000), limit: 1}, signal)).documents;
  return stored && found(stored, `Found by its title, ${share(stored.titleSimilarity)} similar`);
}

// host.example/path: a URL without its scheme.
const WITHOUT_SCHEME = /^[^\s/:@]+\.[^\s/:@.]{2,}(:\d+)?\/\S*$/;

async function nothing(wanted, signal) {
  const s = await stats(signal);
  const titles = s.titles
    ? `Titles of ten or more characters are found if they are at least ${percent(s.titleSimilarity)} similar.`
    : "This index does not compare titles.";
  const about = "An id must match exactly; a URL may be written in any equivalent form. ";
  const whole = `https://${wanted}`;
  return card(
    "Nothing found",
    WITHOUT_SCHEME.test(wanted) &&
      el("p", null, "An address begins with https://: ", el("a", {href: `#/find?q=${encodeURIComponent(whole)}`}, "find ", name(whole)), "."),
    soft(about, titles),
  );
}

async function run(wanted, place, signal) {
  const stored = await orNull(get(wanted, signal));
  const how = stored && (stored.id === wanted ? "Found by its id" : "Found by its URL");
  const shown = stored ? found(stored, how) : (await byTitle(wanted, signal)) || (await nothing(wanted, signal));
  outcome(place, shown);
  announce(shown.querySelector("h2").textContent);
}

// ---- all documents, a page at a time ----

const STEP = 25;
const KINDS = [
  ["all", "originals and copies"],
  ["originals", "originals"],
  ["copies", "copies"],
];

function listed(stored) {
  return el(
    "li",
    null,
    documentLink(stored.id, stored.title || stored.id),
    soft(
      stored.title && [name(stored.id), " · "],
      copiesInWords(stored),
      ` · ${time(stored.added)}`,
    ),
  );
}

function browse(signal) {
  const list = el("ul", {class: "documents"}),
    place = el("div", {"aria-live": "polite"});
  const kind = el("select", null, options(KINDS, "all")),
    host = el("input", {type: "search", autocomplete: "off", spellcheck: "false", placeholder: "example.org"});
  async function more(cursor) {
    const page = await documents({limit: STEP, cursor, kind: kind.value, host: host.value.trim() || undefined}, signal);
    list.append(...page.documents.map(listed));
    place.replaceChildren(
      page.next
        ? button("Show more", () => more(page.next))
        : list.childElementCount
          ? ""
          : el("p", {class: "nothing"}, "No documents."),
    );
  }
  const again = () => {
    list.replaceChildren();
    more().catch(error => {
      if (error.name !== "AbortError") place.replaceChildren(problemCard(error));
    });
  };
  kind.addEventListener("change", again);
  host.addEventListener("change", again);
  again();
  return card("All documents", box("two", field("Show", kind), field("Host", host)), list, place);
}

export async function show(root, route, signal) {
  const input = el("input", {type: "search", autocomplete: "off", spellcheck: "false", dir: "auto"});
  input.value = route.query.get("q") || "";
  const place = box("place");
  const submit = el("button", {type: "submit", class: "first"}, "Find");
  const look = () =>
    working(submit, place, async () => {
      const wanted = input.value.trim();
      if (wanted) await run(wanted, place, signal);
      else
        outcome(place, problemCard({title: "Nothing to find", message: "Enter an id, a URL or a title."}));
    });
  const send = () => {
    history.replaceState(null, "", `#/find?q=${encodeURIComponent(input.value.trim())}`);
    look();
  };
  const {said} = session;
  session.said = null;
  root.append(
    el("h1", null, "Find a document"),
    said ? el("p", {class: "card done"}, said) : "",
    lead("By id, URL or title; or browse all documents."),
    form({class: "card", role: "search"}, send, field("Id, URL or title", input), box("buttons", submit)),
    place,
    browse(signal),
  );
  if (said) announce(said);
  if (input.value) await look();
}
