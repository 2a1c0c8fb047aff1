// A verdict with its evidence, and lists of documents.
import {box, el, name, soft, table} from "./dom.js";
import {evidenceRows, headline, reasonInWords, REASONS} from "./explain.js";
import {many, share} from "./format.js";

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

function mood(verdict) {
  if (verdict.isDuplicate || verdict.known) return "copy";
  return "new";
}

// `added`: it was added, not only checked.
export function verdictCard(verdict, added) {
  const told = verdict.isDuplicate;
  const said =
    added && (verdict.known ? "It is there already." : told ? "It was counted as a copy of its original." : "It was added.");
  return el(
    "section",
    {class: `card verdict ${mood(verdict)}`, "aria-labelledby": "verdict"},
    el("h2", {id: "verdict"}, headline(verdict)),
    said && el("p", {class: "said"}, said),
    told && el("p", null, reasonInWords(verdict.reason, verdict.evidence)),
    told &&
      el(
        "dl",
        {class: "facts"},
        el("div", null, el("dt", null, "Original"), el("dd", null, documentLink(verdict.originalId))),
        el("div", null, el("dt", null, "Reason"), el("dd", null, REASONS[verdict.reason] || verdict.reason)),
        el(
          "div",
          null,
          el("dt", null, "Confidence"),
          el(
            "dd",
            null,
            el("meter", {min: 0, max: 1, value: verdict.confidence, "aria-label": "Confidence"}),
            ` ${share(verdict.confidence)}`,
          ),
        ),
      ),
    !told && verdict.id && added && el("p", null, "Its id is ", documentLink(verdict.id), "."),
    told && evidenceTable(verdict.evidence),
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
