// A verdict: one sentence, a scale with the threshold, what was measured folded away; and lists of documents.
import {box, el, name, soft, table} from "./dom.js";
import {evidenceRows, nearness, REASONS, verdictOf, within} from "./explain.js";
import {many, share} from "./format.js";
import {working} from "./problem.js";
import {scaleOf} from "./scale.js";

export const documentLink = (id, text) => el("a", {href: `#/document/${encodeURIComponent(id)}`}, name(text || id));

export function evidenceTable(evidence) {
  const rows = evidenceRows(evidence).map(([title, value, meaning]) => [
    title,
    value,
    el("span", {class: "soft"}, meaning),
  ]);
  const made = table("How similar they are", ["Measure", "Value", "Meaning"], rows);
  made.classList.add("measures");
  return made;
}

export const folded = (title, ...children) =>
  el("details", {class: "measured"}, el("summary", null, title), ...children);

// A button that shows and hides a place: {toggle, place}. make() gives a promise of its elements, when it is first shown.
export function expander(make) {
  const place = box("inner"),
    toggle = el("button", {type: "button", class: "small", "aria-expanded": "false"}, "Show");
  toggle.addEventListener("click", () => {
    const open = toggle.getAttribute("aria-expanded") === "false";
    toggle.setAttribute("aria-expanded", String(open));
    toggle.textContent = open ? "Hide" : "Show";
    place.hidden = !open;
    if (!open || place.childElementCount) return;
    working(toggle, place, async () => place.replaceChildren(...(await make())));
  });
  return {toggle, place};
}

// A card that begins with a verdict, as explain.js has them; `copy` says which of two colours it has.
export function verdictSection({kind, parts}, copy, ...children) {
  const said = parts.map(part => {
    if (typeof part === "string") return part;
    if (part.figure) return el("b", {class: "figure"}, part.figure);
    return part.stored ? documentLink(part.stored.id, part.stored.title || part.stored.url) : "a known document";
  });
  return el(
    "section",
    {class: `card verdict ${copy ? "copy" : "new"}`, "aria-labelledby": "verdict"},
    el("h2", {id: "verdict"}, el("span", {class: "kind"}, kind), " ", el("span", {class: "sentence"}, said)),
    ...children,
  );
}

// Everything that is known about an answer: {verdict, original, compared, nearest, least, stats, said, note}. `original` is what it
// is a copy of, as stored; `nearest` the most similar document that it is no copy of, of those that are more similar than
// `least`; `compared` what the server says of that document and this one; `said` an element, what was done; `note` a
// sentence. Each may be null.
export function verdictCard(known) {
  const {verdict, original, nearest, stats, said, note, compared} = known,
    copy = verdict.isDuplicate || verdict.known;
  const measured = verdict.isDuplicate ? verdict.reason === "content_hash" && verdict.evidence : nearest;
  const other = nearest ? "the nearest" : "the original",
    shared = compared && !compared.sameDigest && within(compared, other, "this text", verdict.reason === "content_hash");
  return verdictSection(
    verdictOf(known),
    copy,
    measured && scaleOf(measured, stats),
    said,
    shared && el("p", {class: "soft"}, shared),
    verdict.isDuplicate && !original && el("p", null, "The original is ", documentLink(verdict.originalId), "."),
    note && soft(note),
    verdict.isDuplicate &&
      folded(
        "Measures",
        soft(`Found by ${REASONS[verdict.reason] || verdict.reason}, with a confidence of ${share(verdict.confidence)}.`),
        evidenceTable(verdict.evidence),
      ),
  );
}

// Documents with how similar they are.
// threshold: from which similarity on they are copies of it.
export function nearList(results, nothing, threshold) {
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
          el("span", {class: "score"}, nearness(one, threshold)),
        ),
        soft(
          [
            one.title && name(one.id),
            one.url && one.url !== one.id && name(one.url),
            one.similarity !== null && one.distance !== null && `${many(one.distance, "bit")} apart`,
            one.duplicates > 0 && `${many(one.duplicates, "copy", "copies")} seen`,
          ]
            .filter(Boolean)
            .flatMap((part, i) => (i ? [" · ", part] : [part])),
        ),
      ),
    ),
  );
}
