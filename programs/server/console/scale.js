// How similar something is, on a scale from 0 to 100 %, with the threshold from which it is a copy.
import {svg} from "./dom.js";
import {percent, share} from "./format.js";

// The similarity from which on a document is a copy, unless something else was chosen.
export const USUAL = 0.8;

// value, threshold: 0 to 1; `what` follows the value.
export function scale(value, threshold, what = "similar") {
  const at = part => `${(100 * part).toFixed(2)}%`;
  const side = part => (part > 0.5 ? "end" : "start");
  return svg(
    "svg",
    {class: "scale", width: "100%", height: 62, role: "img"},
    svg("title", null, `${share(value)} ${what}; a copy from ${percent(threshold)} on`),
    svg("text", {class: `value ${side(value)}`, x: at(value), y: 13}, `${share(value)} ${what}`),
    svg("rect", {class: "track", x: 0, y: 22, width: "100%", height: 16, rx: 4}),
    svg("rect", {class: value >= threshold ? "fill copy" : "fill new", x: 0, y: 22, width: at(value), height: 16, rx: 4}),
    svg("line", {class: "mark", x1: at(threshold), x2: at(threshold), y1: 18, y2: 44}),
    svg("text", {class: "start", x: 0, y: 58}, "0 %"),
    svg("text", {class: `mark ${side(threshold)}`, x: at(threshold), y: 58}, `a copy from ${percent(threshold)}`),
    threshold < 0.88 && svg("text", {class: "end", x: "100%", y: 58}, "100 %"),
  );
}

const bitsOf = s => Number((/simhash(\d+)/.exec(s.recipe) || [])[1] || 64);

// The scale of what an index goes by, by its statistics; null: that was not measured on these two.
export function scaleOf({similarity, distance}, s) {
  const known = value => value !== null && value !== undefined;
  if (s.near === "similarity") return known(similarity) ? scale(similarity, s.similarity) : null;
  const bits = bitsOf(s);
  return known(distance) ? scale(1 - distance / bits, 1 - s.distance / bits, "of the bits agree") : null;
}
