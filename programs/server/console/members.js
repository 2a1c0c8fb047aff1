// The copies that an index remembers under a document, each with why it is one and, where both texts are kept, how it
// differs.
import {compare, get, orNull} from "./api.js";
import {el, name} from "./dom.js";
import {reasonInWords} from "./explain.js";
import {many} from "./format.js";
import {sideBySide} from "./passages.js";
import {working} from "./problem.js";
import {documentLink, evidenceTable} from "./verdict.js";

const FIRST = 20;

export async function differences(original, copy, signal) {
  const kept = original.text ? original : await get(original.id, signal);
  if (!kept.text) return el("p", {class: "soft"}, "The index does not keep texts (keep_text), so that the difference cannot be shown.");
  if (!copy.text) return el("p", {class: "soft"}, "The text of this copy is not kept: an index keeps those of copies only if it stores them (on_duplicate: store).");
  const compared = await compare({a: {text: kept.text}, b: {text: copy.text}}, signal);
  return sideBySide({title: "A: the kept one", text: kept.text}, {title: "B: this copy", text: copy.text}, compared);
}

async function member(original, alias, signal) {
  const copy = await orNull(get(alias, signal));
  if (!copy) return [el("p", {class: "soft"}, "This copy is not there any more.")];
  // Its URL may belong to the original itself.
  if (!copy.originalId) return [el("p", {class: "soft"}, "This is another URL of ", documentLink(copy.id), ".")];
  return [
    el("p", null, "It came as ", documentLink(copy.id), ". ", reasonInWords(copy.reason, copy.evidence)),
    evidenceTable(copy.evidence), await differences(original, copy, signal),
  ];
}

function row(original, alias, signal) {
  const place = el("div", {class: "inner"});
  const button = el("button", {type: "button", class: "small", "aria-expanded": "false"}, "Show");
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") === "false";
    button.setAttribute("aria-expanded", String(open));
    button.textContent = open ? "Hide" : "Show";
    place.hidden = !open;
    if (!open || place.childElementCount) return;
    working(button, place, async () => place.replaceChildren(...await member(original, alias, signal)));
  });
  return el("li", null, el("div", {class: "line"}, name(alias), button), place);
}

// `original` as the server stores it.
export function members(original, signal) {
  const aliases = original.aliases;
  if (!aliases.length) {
    const why = original.duplicates ? "Copies were counted, but not remembered (on_duplicate: link or store remembers them)." : "No copy of it has come.";
    return el("p", {class: "soft"}, why);
  }
  const list = el("ul", {class: "documents"}, aliases.slice(0, FIRST).map(alias => row(original, alias, signal)));
  const rest = aliases.slice(FIRST);
  const more = rest.length > 0 && el("button", {type: "button", on: {click() {
    list.append(...rest.map(alias => row(original, alias, signal)));
    more.remove();
  }}}, `Show ${many(rest.length, "more", "more")}`);
  const without = original.duplicates > aliases.length;
  return el("div", null, without && el("p", {class: "soft"}, `${many(original.duplicates, "copy", "copies")} came; those with a URL of their own are listed.`), list, more);
}
