// What figures mean, in words.
import {plain} from "./dom.js";
import {bytes, count, many, percent, seconds, share} from "./format.js";

export const REASONS = {
  exact_url: "the same URL",
  content_hash: "the content",
  title_similarity: "the title",
};

// One sentence on why a document is a copy.
export function reasonInWords(reason, evidence) {
  const e = evidence || {};
  if (reason === "exact_url") return "It has the same URL in canonical form.";
  if (reason === "title_similarity")
    return `Their titles are ${share(e.titleSimilarity)} similar.`;
  if (e.sameDigest) return "It has exactly the same words; case, punctuation and spaces do not count.";
  if (e.similarity !== null && e.similarity !== undefined)
    return `The two share ${share(e.similarity)} of their runs of words.`;
  return `Their fingerprints differ in only ${many(e.distance, "bit")}.`;
}

const called = stored => (stored ? `“${plain(stored.title || stored.url || stored.id)}”` : "a document that is known");

export const nearness = one => (one.similarity !== null ? share(one.similarity) : `${many(one.distance, "bit")} apart`);

// A verdict in one sentence; `known` is as verdictCard takes it.
export function sentence({verdict, original, nearest, least}) {
  const e = verdict.evidence;
  if (verdict.known) return "Known: it was added before under this id.";
  if (!verdict.isDuplicate) {
    const lead = verdict.replaced ? "A new version: it replaced the old one" : "New";
    if (nearest) return `${lead}; the nearest is ${called(nearest)} (${nearness(nearest)}).`;
    if (verdict.replaced) return `${lead}.`;
    return least === null
      ? "New: neither its URL nor its title is known."
      : `New: no known document is more than ${percent(least)} similar.`;
  }
  if (e.sameDigest) return `A copy: the same words as ${called(original)}.`;
  if (verdict.reason === "exact_url") return `A copy: the same URL as ${called(original)}.`;
  if (verdict.reason === "title_similarity")
    return `A copy: its title is ${share(e.titleSimilarity)} similar to that of ${called(original)}.`;
  if (e.similarity !== null) return `A copy: ${share(e.similarity)} similar to ${called(original)}.`;
  return `A copy: ${many(e.distance, "bit")} from ${called(original)}.`;
}

// [name, value, what it means] of each thing that was measured; what was not is left out.
export function evidenceRows(e) {
  const known = value => value !== null && value !== undefined;
  return [
    [
      "Same URL",
      e.sameUrl ? "yes" : "no",
      "Canonical forms are compared: without tracking parameters, fragments and the like.",
    ],
    ["Same words", e.sameDigest ? "yes" : "no", "The digests of all words are compared."],
    known(e.similarity) && [
      "Similarity",
      share(e.similarity),
      e.verified
        ? "Runs of words in both, as a share of those in either; counted, not estimated."
        : "Runs of words in both, as a share of those in either.",
    ],
    known(e.containment) && ["Containment", share(e.containment), "The share of this document that the other one contains."],
    known(e.distance) && [
      "Distance",
      many(e.distance, "bit"),
      "Bits of the fingerprints that differ; few for similar content.",
    ],
    known(e.titleSimilarity) && [
      "Title similarity",
      share(e.titleSimilarity),
      "1 less the share of characters that have to be changed.",
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

// How similar two texts are, in a sentence; by which threshold the scale below it says.
export function likeness(c, threshold) {
  if (c.sameDigest) return "Copies: A and B have exactly the same words.";
  if (!c.shinglesShared && !c.passages.length) return "Not copies: A and B have nothing in common.";
  if (c.similarity === null) return "A and B have a passage in common.";
  if (c.similarity >= threshold) return `Copies: A and B are ${share(c.similarity)} similar.`;
  const [most, of, where] =
    (c.containmentAB || 0) >= (c.containmentBA || 0) ? [c.containmentAB, "A", "B"] : [c.containmentBA, "B", "A"];
  const within = most >= threshold ? `, but ${share(most)} of ${of} is in ${where}` : "";
  return `Not copies: A and B are ${share(c.similarity)} similar${within}.`;
}

// How much of each the other has.
export const within = (c, a, b) =>
  c.containmentAB === null || c.containmentBA === null
    ? null
    : `${share(c.containmentAB)} of ${a} is in ${b}, and ${share(c.containmentBA)} of ${b} in ${a}.`;

// ---- an index ----

const PRESETS = {
  general: "for documents of any kind",
  crawl: "for crawlers: little memory, only slightly changed pages, 30 days",
  article: "for articles: by their words, whatever the order",
};
export const presetInWords = preset => (preset ? `${preset}, ${PRESETS[preset] || "a preset"}` : "settings of its own");

export function recipeInWords(recipe) {
  const parts = Object.fromEntries(recipe.split(":").map(pair => pair.split("=")));
  if (!parts.words) return recipe;
  const runs = parts.words === "1" ? "single words" : `runs of ${parts.words} words`;
  const first = parts.chars ? ` of the first ${count(+parts.chars)} characters` : "";
  return `Fingerprints of ${runs}${first}, hashed by ${parts.hash}, weighted by ${parts.weight}`;
}

export const nearInWords = s =>
  s.near === "similarity"
    ? `A copy shares at least ${percent(s.similarity)} of the passages`
    : `A copy's fingerprint differs in at most ${many(s.distance, "bit")}`;

export const DUPLICATES = {
  skip: "are only counted at their original",
  link: "are remembered by id, URL and title under their original",
  store: "are stored like any document, but never as originals",
};
export const DURABILITY = {
  batch: "An add is answered once it is on disk; simultaneous adds share one commit",
  each: "An add is answered once it is on disk; each has its own commit",
  none: "An add is answered at once, and on disk within a second",
};

export function planInWords(s) {
  const bands = /^(\d+)x(\d+)$/.exec(s.plan);
  if (bands) return `${bands[1]} bands of ${bands[2]} rows: documents that agree in one band are compared`;
  return s.plan;
}

export const rememberedFor = ttl => (ttl ? seconds(ttl) : "for ever");
// Of few documents it says nothing: what is set aside counts more.
export const perDocument = (size, documents) => (documents >= 10000 ? `${bytes(size / documents)} a document` : null);
