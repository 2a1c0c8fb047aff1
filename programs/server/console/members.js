// The copies of a document that an index remembers, each with the reason and, where both texts are kept, with the text
// that it shares with the original.
import {compare, copiesOf, get, orNull} from "./api.js";
import {box, button, card, el, name, soft} from "./dom.js";
import {reasonInWords} from "./explain.js";
import {many, share} from "./format.js";
import {twoTexts} from "./two_texts.js";
import {documentLink, evidenceTable, expander, folded} from "./verdict.js";

const STEP = 20;

// Why an original and its copy cannot be compared; null: they can.
function whyNotCompared(original, copy) {
  if (!original.words) return "The two texts cannot be shown: the original was added without text.";
  if (!copy.words) return "The two texts cannot be shown: this copy was added without text.";
  if (!original.text) return "The two texts cannot be shown: the index does not keep texts (--keep-text).";
  if (!copy.text) return "The text of this copy is not kept: an index keeps the texts of copies only with --on-duplicate store.";
  return null;
}

// An original and its copy, as the server stores them: {compared, made}, the server's comparison, or null, and an element.
// show: as twoTexts takes it.
export async function bothTexts(original, copy, show, signal) {
  const why = whyNotCompared(original, copy);
  if (why) return {compared: null, made: soft(why)};
  const compared = await compare({a: {text: original.text}, b: {text: copy.text}}, signal);
  const made = twoTexts(
    {title: "the original", name: original.title || original.id, text: original.text},
    {title: "this copy", name: copy.title || copy.id, text: copy.text},
    compared,
    {show},
  );
  return {compared, made};
}

async function member(original, id, signal) {
  const [copy, kept] = await Promise.all([get(id, signal), original.text ? original : get(original.id, signal)]),
    {made} = await bothTexts(kept, copy, "shared", signal);
  return [
    el("p", null, reasonInWords(copy.reason, copy.evidence), " ", documentLink(copy.id, "Details")),
    made,
    folded("Measures", evidenceTable(copy.evidence)),
  ];
}

// Copies by title or by URL may be below the threshold.
const BY = {exact_url: "by URL", title_similarity: "by title"};
const similarity = copy =>
  [copy.evidence.similarity === null ? null : share(copy.evidence.similarity), BY[copy.reason]].filter(Boolean).join(", ");

// original: null where it was removed; shown: whether it is the document of the page.
function row(original, copy, shown, signal) {
  const {toggle, place} = original && !shown ? expander(() => member(original, copy.id, signal)) : {};
  const about = [copy.title && name(copy.id), copy.url && copy.url !== copy.id && name(copy.url)].filter(Boolean);
  return el(
    "li",
    null,
    box("line", name(copy.title || copy.id), box("buttons", el("span", {class: "score"}, similarity(copy)), shown ? el("span", {class: "soft"}, "this one") : toggle)),
    about.length > 0 && soft(about.flatMap((part, i) => (i ? [" · ", part] : [part]))),
    place,
  );
}

// The remembered copies of an original, a page at a time; `but` is the document of the page itself.
async function listed(id, original, but, signal) {
  const list = el("ul", {class: "documents"}),
    place = el("div");
  async function more(cursor) {
    const page = await copiesOf(id, {limit: STEP, cursor}, signal);
    list.append(...page.documents.map(copy => row(original, copy, copy.id === but, signal)));
    const rest = original && original.duplicates - list.childElementCount;
    place.replaceChildren(
      page.next ? button("Show more copies", () => more(page.next)) : rest > 0 && list.childElementCount ? soft(counted(rest, "more ")) : "",
    );
  }
  await more();
  return {list, made: el("div", null, list, place)};
}

// Copies that were counted but are not listed.
const counted = (n, more = "") =>
  `${many(n, `${more}copy`, `${more}copies`)} counted, but not in the index: added again under the same id, or removed since.`;

// Of a document as the server stores it: its copies, or those of its original.
export async function copiesCard(d, s, signal) {
  if (!d.originalId) return card("Copies", await members(d, s, signal));
  const original = await orNull(get(d.originalId, signal)),
    {made} = await listed(d.id, original, d.id, signal);
  return card(
    "Copies of its original",
    el(
      "p",
      null,
      "This is a copy of ",
      original ? documentLink(original.id, original.title || original.id) : [name(d.originalId), ", which is no longer in the index"],
      ". All copies of that document:",
    ),
    made,
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
  const {list, made} = await listed(original.id, original, null, signal);
  return list.childElementCount ? made : soft(counted(duplicates));
}
