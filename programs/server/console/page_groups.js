// Groups of copies: the documents with the most copies.
import {get, groups, stats} from "./api.js";
import {groupSummary} from "./clusters.js";
import {box, el, name, soft} from "./dom.js";
import {count, many, time} from "./format.js";
import {members} from "./members.js";
import {problemCard} from "./problem.js";
import {documentLink} from "./verdict.js";

const STEP = 20;

// "9 copies by content", "9 copies: 7 by content, 2 by URL"
function copiesInWords(one) {
  const {url, content, title} = one.duplicatesBy,
    copies = many(one.duplicates, "copy", "copies");
  const by = [
    [content, "by content"],
    [url, "by URL"],
    [title, "by title"],
  ].filter(([n]) => n);
  return by.length === 1 ? `${copies} ${by[0][1]}` : `${copies}: ${by.map(([n, words]) => `${count(n)} ${words}`).join(", ")}`;
}

function group(one, signal) {
  const place = box("inner", soft("Loading"));
  const details = el(
    "details",
    {class: "card group"},
    groupSummary(
      1 + one.duplicates,
      el("h2", null, name(one.title || one.url || one.id)),
      copiesInWords(one),
      one.lastDuplicate ? `; the last one ${time(one.lastDuplicate)}` : "",
    ),
    place,
  );
  let filled = false;
  details.addEventListener("toggle", async () => {
    if (!details.open || filled) return;
    filled = true;
    try {
      const [whole, s] = await Promise.all([get(one.id, signal), stats(signal)]);
      place.replaceChildren(
        el("p", null, "The original is ", documentLink(one.id), ". Its copies:"),
        await members(whole, s, signal),
      );
    } catch (error) {
      filled = false;
      if (error.name !== "AbortError") place.replaceChildren(problemCard(error));
    }
  });
  return details;
}

function whatIsShown({keepText, onDuplicate}) {
  if (keepText && onDuplicate === "store") return "Show a copy to see what it shares with its original.";
  const options = keepText ? "--on-duplicate store" : "--keep-text --on-duplicate store";
  return `The texts of copies are kept only with ${options}.`;
}

export async function show(root, route, signal) {
  const list = el("div"),
    about = el("span");
  root.append(
    el("h1", null, "Groups of copies"),
    el("p", {class: "lead"}, "The originals with the most copies, largest group first. ", about),
    list,
  );
  stats(signal).then(
    s => (about.textContent = whatIsShown(s)),
    () => {}, // the list says what is wrong
  );
  async function fill(limit) {
    const found = (await groups(limit, signal)).groups.filter(one => one.duplicates);
    const shown = list.querySelectorAll("details").length;
    if (!found.length) {
      list.replaceChildren(
        el(
          "p",
          {class: "card nothing"},
          "No copies yet. ",
          el("a", {href: "#/check"}, "Check two versions of an article"),
          ".",
        ),
      );
      return;
    }
    list.querySelector(".more")?.remove();
    list.append(...found.slice(shown).map(one => group(one, signal)));
    if (found.length === limit && limit < 1000)
      list.append(
        el("button", {type: "button", class: "more", on: {click: () => fill(limit + STEP)}}, "Show more groups"),
      );
  }
  await fill(STEP);
}
