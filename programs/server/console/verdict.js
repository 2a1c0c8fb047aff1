// A verdict: one sentence, a scale with the threshold, what was measured folded away; and lists of documents.
import {box, el, name, soft, table} from "./dom.js";
import {evidenceRows, reasonInWords, REASONS, sentence} from "./explain.js";
import {many, share} from "./format.js";
import {measured, scale, thresholdOf} from "./scale.js";

export const documentLink = (id, text) => el("a", {href: `#/document/${encodeURIComponent(id)}`}, name(text || id));

export function evidenceTable(evidence) {
  const rows = evidenceRows(evidence).map(([title, value, meaning]) => [
    title,
    value,
    el("span", {class: "soft"}, meaning),
  ]);
  const made = table("What was measured on the two", ["Measure", "Value", "Meaning"], rows);
  made.classList.add("measures");
  return made;
}

export const folded = (title, ...children) =>
  el("details", {class: "measured"}, el("summary", null, title), ...children);

// All that is known of an answer: {verdict, original, compared, nearest, stats, added}. `original` is what it is a copy
// of, as stored; `nearest` the most similar document that it is no copy of; each may be null.
export function verdictCard(known) {
  const {verdict, nearest, stats, added} = known,
    copy = verdict.isDuplicate || verdict.known;
  const said =
    added &&
    (verdict.known ? "It is there already." : copy ? "It was counted as a copy of its original." : "It was added.");
  const value = verdict.isDuplicate ? measured(verdict.evidence, stats) : nearest && nearest.similarity;
  return el(
    "section",
    {class: `card verdict ${copy ? "copy" : "new"}`, "aria-labelledby": "verdict"},
    el("h2", {id: "verdict"}, sentence(known)),
    said && el("p", {class: "said"}, said),
    value !== null && value !== undefined && verdict.reason !== "title_similarity" && scale(value, thresholdOf(stats)),
    verdict.isDuplicate &&
      el(
        "p",
        null,
        reasonInWords(verdict.reason, verdict.evidence),
        " The original is ",
        documentLink(verdict.originalId, known.original && known.original.title),
        ".",
      ),
    !copy && nearest && el("p", null, "The nearest is ", documentLink(nearest.id, nearest.title || nearest.id), "."),
    !copy && verdict.id && added && el("p", null, "Its id is ", documentLink(verdict.id), "."),
    verdict.isDuplicate &&
      folded(
        "What was measured",
        soft(`Found by ${REASONS[verdict.reason] || verdict.reason}, with a confidence of ${share(verdict.confidence)}.`),
        evidenceTable(verdict.evidence),
      ),
  );
}

// Documents with how similar they are.
export function nearList(results, nothing) {
  if (!results.length) return el("p", {class: "nothing"}, nothing);
  return el(
    "ol",
    {class: "documents"},
    results.map(one =>
      el(
        "li",
        null,
        box(
          "line",
          documentLink(one.id, one.title || one.id),
          el("span", {class: "score"}, one.similarity !== null ? share(one.similarity) : many(one.distance, "bit")),
        ),
        soft(
          [
            one.title && name(one.id),
            one.url && one.url !== one.id && name(one.url),
            one.distance !== null && `${many(one.distance, "bit")} apart`,
            one.aliases.length > 0 && many(one.aliases.length, "linked copy", "linked copies"),
          ]
            .filter(Boolean)
            .flatMap((part, i) => (i ? [" · ", part] : [part])),
        ),
      ),
    ),
  );
}
