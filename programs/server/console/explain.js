// Verdicts, measures and settings, in words.
import {plain} from "./dom.js";
import {bytes, count, many, percent, seconds, share} from "./format.js";

export const REASONS = {
  exact_url: "the same URL",
  content_hash: "the content",
  title_similarity: "the title",
};

// One sentence on why a stored document is a copy.
export function reasonInWords(reason, evidence) {
  const e = evidence || {};
  if (reason === "exact_url") return "Its canonical URL is the same.";
  if (reason === "title_similarity")
    return `Their titles are ${share(e.titleSimilarity)} similar.`;
  if (e.sameDigest) return "It has exactly the same words; case, punctuation and spacing are ignored.";
  if (e.similarity !== null && e.similarity !== undefined)
    return `They share ${share(e.similarity)} of their runs of words.`;
  return `Their fingerprints differ in only ${many(e.distance, "bit")}.`;
}

// How near a document is that is not a copy: below the `threshold`.
export const nearness = (one, threshold) =>
  one.similarity !== null ? share(one.similarity, threshold) : `${many(one.distance, "bit")} apart`;

// ---- verdicts ----
//
// A verdict is {kind, parts}: a word, and a sentence whose parts are texts, {figure}, which is the number that matters,
// and {stored}, a document, or null where it is only known that there is one.

const passagesIn = compared => many(compared.passages.length, "shared passage");

// `known` as verdictCard takes it.
export function verdictOf({verdict, original, nearest, least, compared, stats}) {
  const e = verdict.evidence;
  if (verdict.known) return {kind: "Known", parts: ["It was already added under this id."]};
  if (!verdict.isDuplicate) {
    const kind = verdict.replaced ? "New version" : "New";
    if (nearest) {
      const figure = nearness(nearest, stats.near === "similarity" ? stats.similarity : undefined);
      return {kind, parts: ["The nearest is ", {stored: nearest}, ": ", {figure}, figure.endsWith("%") ? " similar." : "."]};
    }
    if (verdict.replaced) return {kind, parts: ["It replaced the earlier version."]};
    if (least === null) return {kind, parts: ["Neither its URL nor its title is known."]};
    return {kind, parts: [`No known document is more than ${percent(least)} similar.`]};
  }
  const of = {stored: original};
  const parts = () => {
    if (e.sameDigest) return ["The same words as ", of, "."];
    if (verdict.reason === "exact_url") return ["The same URL as ", of, "."];
    if (verdict.reason === "title_similarity")
      return ["Its title is ", {figure: share(e.titleSimilarity)}, " similar to that of ", of, "."];
    if (compared && compared.containmentAB !== null)
      return [{figure: share(compared.containmentAB)}, " of ", of, ` is here: ${passagesIn(compared)}.`];
    if (e.similarity !== null) return [{figure: share(e.similarity)}, " similar to ", of, "."];
    return [{figure: many(e.distance, "bit")}, " from ", of, "."];
  };
  return {kind: "Copy", parts: parts()};
}

const nameOf = stored => (stored ? plain(stored.title || stored.url || stored.id) : "a known document");

export const inWords = ({kind, parts}) =>
  `${kind}: ${parts.map(part => (typeof part === "string" ? part : (part.figure ?? nameOf(part.stored)))).join("")}`;

// [name, value, what it means] of each measure; those that were not taken are left out.
export function evidenceRows(e) {
  const known = value => value !== null && value !== undefined;
  return [
    [
      "Same URL",
      e.sameUrl ? "yes" : "no",
      "Canonical URLs are compared, without tracking parameters, fragments and the like.",
    ],
    ["Same words", e.sameDigest ? "yes" : "no", "The digests of all words are compared."],
    known(e.similarity) && [
      "Similarity",
      share(e.similarity),
      e.verified
        ? "Runs of words in both, as a share of those in either; counted, not estimated."
        : "Runs of words in both, as a share of those in either.",
    ],
    known(e.containment) && ["Containment", share(e.containment), "The share of this document’s runs of words that the other one contains."],
    known(e.distance) && [
      "Distance",
      many(e.distance, "bit"),
      "Bits of the fingerprints that differ; few for similar content.",
    ],
    known(e.titleSimilarity) && [
      "Title similarity",
      share(e.titleSimilarity),
      "1 minus the share of characters that would have to change.",
    ],
  ].filter(Boolean);
}

const part = value => (value === null ? "–" : share(value));
const number = (value, digits) => (value === null ? "–" : digits ? value.toFixed(digits) : count(value));

// What each measure of a comparison means.
const MEASURES = {
  similarity: "Jaccard: runs of words in both, as a share of those in either.",
  containmentAB: "Containment: the share of A's runs of words that are in B.",
  containmentBA: "The same the other way round: high on one side only means that one contains the other.",
  distance: "Bits of the fingerprints that differ: about half of them for unrelated texts.",
  signatureSimilarity: "The similarity, estimated from two MinHash signatures of 128 slots.",
  cosine: "Of the vectors of word counts: 1 for the same words equally often, in any order.",
  angle: "Between those vectors: 0° the same, 90° no word in common.",
  euclidean: "Between those vectors; grows with the length of the texts.",
  editDistance: "Characters to insert, delete or replace (Levenshtein), case and punctuation aside.",
  indelDistance: "Characters to insert or delete.",
  editSimilarity: "1 less the edit distance as a share of the longer text.",
  sameDigest: "Whether the digests of all words are the same.",
  words: "In A and in B.",
  shingles: "Distinct runs of words: in A, in B, and in both.",
};

// Every measure of a comparison: [name, value, what it means].
export function measureRows(c) {
  return [
    ["Similarity", part(c.similarity), MEASURES.similarity],
    ["A in B", part(c.containmentAB), MEASURES.containmentAB],
    ["B in A", part(c.containmentBA), MEASURES.containmentBA],
    ["Distance", c.distance === null ? "–" : `${count(c.distance)} of ${c.bits}`, MEASURES.distance],
    ["Signature similarity", part(c.signatureSimilarity), MEASURES.signatureSimilarity],
    ["Cosine", number(c.cosine, 4), MEASURES.cosine],
    ["Angle", c.angle === null ? "–" : `${c.angle.toFixed(1)}°`, MEASURES.angle],
    ["Euclidean distance", number(c.euclidean, 2), MEASURES.euclidean],
    ["Edit distance", number(c.editDistance), MEASURES.editDistance],
    ["Edits without replacing", number(c.indelDistance), MEASURES.indelDistance],
    ["Edit similarity", part(c.editSimilarity), MEASURES.editSimilarity],
    ["Same words", c.sameDigest ? "yes" : "no", MEASURES.sameDigest],
    ["Words", `${count(c.wordsA)} and ${count(c.wordsB)}`, MEASURES.words],
    ["Runs of words", [c.shinglesA, c.shinglesB, c.shinglesShared].map(count).join(", "), MEASURES.shingles],
    ["Fingerprints", `${c.fingerprintA} ${c.fingerprintB}`, `By the recipe ${c.recipe}.`],
  ];
}

const nothingShared = c => !c.shinglesShared && !c.passages.length;

// Words of a passage, about a paragraph, that is mentioned even where the texts are no copies: phrases that unrelated texts
// share are shorter.
const LONG_PASSAGE = 50;

// How similar two texts are, as a verdict.
export function likeness(c, threshold) {
  const longest = Math.max(0, ...c.passages.map(passage => passage.words)),
    apart = longest < LONG_PASSAGE ? "Not copies" : `Not copies, but they share a passage of ${many(longest, "word")}`;
  const figure = c.similarity === null ? null : share(c.similarity, threshold);
  if (c.sameDigest) return {kind: "Copies", parts: ["A and B have exactly the same words."]};
  if (nothingShared(c)) return {kind: "Not copies", parts: ["A and B have nothing in common."]};
  if (c.similarity === null) return {kind: apart, parts: ["A and B have a passage in common."]};
  if (c.similarity >= threshold)
    return {kind: "Copies", parts: ["A and B are ", {figure}, ` similar: ${passagesIn(c)}.`]};
  const [most, of, where] =
    (c.containmentAB || 0) >= (c.containmentBA || 0) ? [c.containmentAB, "A", "B"] : [c.containmentBA, "B", "A"];
  const within = most >= threshold ? `, but ${share(most)} of ${of} is in ${where}` : "";
  return {kind: apart, parts: ["A and B are ", {figure}, ` similar${within}: ${passagesIn(c)}.`]};
}

// How much of each is in the other; `said`: the share of A is already known.
export function within(c, a, b, said = false) {
  if (c.containmentAB === null || c.containmentBA === null) return null;
  if (nothingShared(c)) return "The two texts have nothing in common.";
  const back = share(c.containmentBA);
  return said ? `${back} of ${b} is in ${a}.` : `${share(c.containmentAB)} of ${a} is in ${b}, and ${back} of ${b} in ${a}.`;
}

// ---- an index ----

const PRESETS = {
  general: "for documents of any kind",
  crawl: "for crawlers: little memory, only slightly changed pages, 30 days",
  article: "for articles: by their first 5,000 characters",
};
export const presetInWords = preset => (preset ? `${preset}, ${PRESETS[preset] || "a preset"}` : "settings of its own");

export function recipeInWords(recipe) {
  const parts = Object.fromEntries(recipe.split(":").map(pair => pair.split("=")));
  if (!parts.words) return recipe;
  const runs = parts.words === "1" ? "single words" : `runs of ${parts.words} words`;
  const first = parts.first ? ` of the first ${count(+parts.first)} characters` : "";
  return `Fingerprints of ${runs}${first}, hashed by ${parts.hash}, weighted by ${parts.weight}`;
}

export const nearInWords = s =>
  s.near === "similarity"
    ? `A copy shares at least ${percent(s.similarity)} of its runs of words with the original`
    : `A copy's fingerprint differs in at most ${many(s.distance, "bit")}`;

export const DUPLICATES = {
  skip: "are only counted (skip)",
  link: "are linked to their original, without their texts (link)",
  store: "are stored like any document, but never become originals (store)",
};
export const DURABILITY = {
  batch: "An add is answered once it is on disk; simultaneous adds share a commit (batch)",
  each: "An add is answered once it is on disk; each has its own commit (each)",
  none: "An add is answered at once, and is on disk within a second (none)",
};

export function planInWords(s) {
  const bands = /^(\d+)x(\d+)$/.exec(s.plan);
  if (bands) return `${bands[1]} bands of ${bands[2]} rows: documents that agree in one band are compared`;
  return s.plan;
}

export const rememberedFor = ttl => (ttl ? seconds(ttl) : "for ever");
// With few documents, most of the memory is reserved space, so the quotient means nothing.
export const perDocument = (size, documents) => (documents >= 10000 ? `${bytes(size / documents)} a document` : null);
