// How similar something is, on a scale from 0 to 100 %, with the threshold from which it is a copy.
import {svg} from "./dom.js";
import {percent, share} from "./format.js";

// The threshold of an index, by its statistics: 0 to 1.
export const thresholdOf = s => (s.near === "similarity" ? s.similarity : 1 - s.distance / bitsOf(s));
export const bitsOf = s => Number((/simhash(\d+)/.exec(s.recipe) || [])[1] || 64);

// What was measured on a pair, as one share; null: nothing was.
export function measured(evidence, s) {
  if (evidence.sameUrl && evidence.similarity === null) return 1;
  if (evidence.similarity !== null) return evidence.similarity;
  return evidence.distance === null ? null : 1 - evidence.distance / bitsOf(s);
}

export function scale(value, threshold, label = "Similarity") {
  const at = part => `${(100 * part).toFixed(2)}%`;
  return svg(
    "svg",
    {class: "scale", width: "100%", height: 46, role: "img"},
    svg("title", null, `${label}: ${share(value)}; a copy from ${percent(threshold)} on`),
    svg("rect", {class: "track", x: 0, y: 6, width: "100%", height: 16, rx: 8}),
    svg("rect", {class: value >= threshold ? "fill copy" : "fill new", x: 0, y: 6, width: at(value), height: 16, rx: 8}),
    svg("line", {class: "mark", x1: at(threshold), x2: at(threshold), y1: 1, y2: 28}),
    svg("text", {class: "start", x: 0, y: 42}, "0 %"),
    svg("text", {class: threshold > 0.5 ? "mark end" : "mark start", x: at(threshold), y: 42}, `a copy from ${percent(threshold)}`),
    threshold < 0.88 && svg("text", {class: "end", x: "100%", y: 42}, "100 %"),
  );
}
