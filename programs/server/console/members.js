// The copies that an index remembers under a document, each with why it is one and, where both texts are kept, how it
// differs.
import {compare, copiesOf, get} from "./api.js";
import {box, button, el, name, soft} from "./dom.js";
import {differences} from "./differences.js";
import {reasonInWords} from "./explain.js";
import {many, share} from "./format.js";
import {working} from "./problem.js";
import {documentLink, evidenceTable, folded} from "./verdict.js";

const STEP = 20;

export async function differencesOf(original, copy, signal) {
  const kept = original.text ? original : await get(original.id, signal);
  if (!kept.text) return soft("The index does not keep texts (--keep-text), so that the differences cannot be shown.");
  if (!copy.text)
    return soft(
      "The text of this copy is not kept: an index keeps those of copies only if it stores them (--on-duplicate store).",
    );
  const compared = await compare({a: {text: kept.text}, b: {text: copy.text}}, signal);
  return differences({title: "A: the original", text: kept.text}, {title: "B: this copy", text: copy.text}, compared);
}

async function member(original, id, signal) {
  const copy = await get(id, signal);
  return [
    el("p", null, reasonInWords(copy.reason, copy.evidence), " ", documentLink(copy.id, "Its page")),
    await differencesOf(original, copy, signal),
    folded("What was measured", evidenceTable(copy.evidence)),
  ];
}

const similarity = copy => (copy.evidence.similarity === null ? null : share(copy.evidence.similarity));

function row(original, copy, signal) {
  const place = box("inner");
  const toggle = el("button", {type: "button", class: "small", "aria-expanded": "false"}, "Show");
  toggle.addEventListener("click", () => {
    const open = toggle.getAttribute("aria-expanded") === "false";
    toggle.setAttribute("aria-expanded", String(open));
    toggle.textContent = open ? "Hide" : "Show";
    place.hidden = !open;
    if (!open || place.childElementCount) return;
    working(toggle, place, async () => place.replaceChildren(...(await member(original, copy.id, signal))));
  });
  const about = [copy.title && name(copy.id), copy.url && copy.url !== copy.id && name(copy.url)].filter(Boolean);
  return el(
    "li",
    null,
    box("line", name(copy.title || copy.id), box("buttons", el("span", {class: "score"}, similarity(copy)), toggle)),
    about.length > 0 && soft(about.flatMap((part, i) => (i ? [" · ", part] : [part]))),
    place,
  );
}

// `original` as the server stores it; `s`: the statistics of its index.
export async function members(original, s, signal) {
  const {duplicates} = original;
  if (!duplicates) return soft("No copy of it has come.");
  if (s.onDuplicate === "skip")
    return soft(
      `${many(duplicates, "copy", "copies")} came. This index only counts copies (--on-duplicate skip): link or store remembers them.`,
    );
  const list = el("ul", {class: "documents"}),
    place = el("div");
  async function more(cursor) {
    const page = await copiesOf(original.id, {limit: STEP, cursor}, signal);
    list.append(...page.documents.map(copy => row(original, copy, signal)));
    place.replaceChildren(page.next ? button("Show more copies", () => more(page.next)) : "");
    return page.documents.length;
  }
  const shown = await more();
  const told = shown
    ? `${many(duplicates, "copy", "copies")} came.`
    : `${many(duplicates, "copy", "copies")} came, and none of them is remembered any more.`;
  return el("div", null, soft(told), list, place);
}
