// The copies that an index remembers under a document, each with why it is one and, where both texts are kept, what of
// it the original has.
import {compare, copiesOf, get} from "./api.js";
import {box, button, el, name, soft} from "./dom.js";
import {reasonInWords} from "./explain.js";
import {many, share} from "./format.js";
import {twoTexts} from "./two_texts.js";
import {documentLink, evidenceTable, expander, folded} from "./verdict.js";

const STEP = 20;

export async function bothTexts(original, copy, signal) {
  const kept = original.text ? original : await get(original.id, signal);
  if (!kept.text) return soft("The two texts cannot be shown: the index does not keep texts (--keep-text).");
  if (!copy.text)
    return soft(
      "The text of this copy is not kept: an index keeps texts of copies only with --on-duplicate store.",
    );
  const compared = await compare({a: {text: kept.text}, b: {text: copy.text}}, signal);
  return twoTexts(
    {title: "the original", name: kept.title || kept.id, text: kept.text},
    {title: "this copy", name: copy.title || copy.id, text: copy.text},
    compared,
    {show: "shared"},
  );
}

async function member(original, id, signal) {
  const copy = await get(id, signal);
  return [
    el("p", null, reasonInWords(copy.reason, copy.evidence), " ", documentLink(copy.id, "Its page")),
    await bothTexts(original, copy, signal),
    folded("Measures", evidenceTable(copy.evidence)),
  ];
}

const similarity = copy => (copy.evidence.similarity === null ? null : share(copy.evidence.similarity));

function row(original, copy, signal) {
  const {toggle, place} = expander(() => member(original, copy.id, signal));
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
  if (!duplicates) return soft("It has no copies yet.");
  if (s.onDuplicate === "skip")
    return soft(
      `${many(duplicates, "copy", "copies")}. This index only counts copies (--on-duplicate skip); with link or store it remembers them.`,
    );
  const list = el("ul", {class: "documents"}),
    place = el("div");
  async function more(cursor) {
    const page = await copiesOf(original.id, {limit: STEP, cursor}, signal);
    list.append(...page.documents.map(copy => row(original, copy, signal)));
    place.replaceChildren(page.next ? button("Show more copies", () => more(page.next)) : "");
    return page.documents.length;
  }
  if (await more()) return el("div", null, list, place);
  return soft(`${many(duplicates, "copy", "copies")}, none of which the index still has.`);
}
