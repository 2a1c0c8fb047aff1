// The copies that an index remembers under a document, each with why it is one and, where both texts are kept, how it
// differs.
import {compare, get, orNull} from "./api.js";
import {box, button, el, name, soft} from "./dom.js";
import {reasonInWords} from "./explain.js";
import {many} from "./format.js";
import {sideBySide} from "./passages.js";
import {working} from "./problem.js";
import {documentLink, evidenceTable} from "./verdict.js";

const FIRST = 20;

export async function differences(original, copy, signal) {
  const kept = original.text ? original : await get(original.id, signal);
  if (!kept.text) return soft("The index does not keep texts (keep_text), so that the difference cannot be shown.");
  if (!copy.text)
    return soft(
      "The text of this copy is not kept: an index keeps those of copies only if it stores them (on_duplicate: store).",
    );
  const compared = await compare({a: {text: kept.text}, b: {text: copy.text}}, signal);
  return sideBySide({title: "A: the kept one", text: kept.text}, {title: "B: this copy", text: copy.text}, compared);
}

async function member(original, alias, signal) {
  const copy = await orNull(get(alias, signal));
  if (!copy) return [soft("This copy no longer exists.")];
  // Its URL may belong to the original itself.
  if (!copy.originalId) return [soft("This is another URL of ", documentLink(copy.id), ".")];
  return [
    el("p", null, "It came as ", documentLink(copy.id), ". ", reasonInWords(copy.reason, copy.evidence)),
    evidenceTable(copy.evidence),
    await differences(original, copy, signal),
  ];
}

function row(original, alias, signal) {
  const place = box("inner");
  const toggle = el("button", {type: "button", class: "small", "aria-expanded": "false"}, "Show");
  toggle.addEventListener("click", () => {
    const open = toggle.getAttribute("aria-expanded") === "false";
    toggle.setAttribute("aria-expanded", String(open));
    toggle.textContent = open ? "Hide" : "Show";
    place.hidden = !open;
    if (!open || place.childElementCount) return;
    working(toggle, place, async () => place.replaceChildren(...(await member(original, alias, signal))));
  });
  return el("li", null, box("line", name(alias), toggle), place);
}

// `original` as the server stores it.
export function members(original, signal) {
  const {aliases, duplicates} = original;
  if (!aliases.length && !duplicates) return soft("No copy of it has come.");
  if (!aliases.length)
    return soft("Copies were counted, but not remembered (on_duplicate: link or store remembers them).");
  const rows = some => some.map(alias => row(original, alias, signal));
  const list = el("ul", {class: "documents"}, rows(aliases.slice(0, FIRST)));
  const rest = aliases.slice(FIRST);
  const more = button(`Show ${many(rest.length, "more", "more")}`, () => {
    list.append(...rows(rest));
    more.remove();
  });
  const told = `${many(duplicates, "copy", "copies")} came; those with a URL of their own are listed.`;
  return el("div", null, duplicates > aliases.length && soft(told), list, rest.length > 0 && more);
}
