// A similarity on a scale from 0 to 100 %, with the threshold from which it makes a copy.
import {svg} from "./dom.js";
import {percent, share} from "./format.js";

// The default threshold.
export const USUAL = 0.8;

// value, threshold: 0 to 1; `what` follows the value.
export function scale(value, threshold, what = "similar") {
  const at = part => `${(100 * part).toFixed(2)}%`,
    side = part => (part > 0.5 ? "end" : "start"),
    kind = value >= threshold ? "copy" : "new";
  return svg(
    "svg",
    {class: `scale ${kind}`, width: "100%", height: 66, role: "img"},
    svg("title", null, `${share(value, threshold)} ${what}; a copy from ${percent(threshold)}`),
    svg("text", {class: `value ${side(value)}`, x: at(value), y: 14}, `${share(value, threshold)} ${what}`),
    svg("rect", {class: "track", x: 0, y: 26, width: "100%", height: 12, rx: 6}),
    svg("rect", {class: "copies", x: at(threshold), y: 26, width: at(1 - threshold), height: 12, rx: 6}),
    svg("rect", {class: "fill", x: 0, y: 26, width: at(value), height: 12, rx: 6}),
    svg("line", {class: "mark", x1: at(threshold), x2: at(threshold), y1: 21, y2: 47}),
    svg("circle", {class: "knob", cx: at(value), cy: 32, r: 9}),
    svg("text", {class: "start", x: 0, y: 61}, "0 %"),
    svg("text", {class: `mark ${side(threshold)}`, x: at(threshold), y: 61}, `a copy from ${percent(threshold)}`),
    threshold < 0.88 && svg("text", {class: "end", x: "100%", y: 61}, "100 %"),
  );
}

const bitsOf = s => Number((/simhash(\d+)/.exec(s.recipe) || [])[1] || 64);

// The scale of the measure that an index decides by, from its statistics; null: it was not taken on these two.
export function scaleOf({similarity, distance}, s) {
  const known = value => value !== null && value !== undefined;
  if (s.near === "similarity") return known(similarity) ? scale(similarity, s.similarity) : null;
  const bits = bitsOf(s);
  return known(distance) ? scale(1 - distance / bits, 1 - s.distance / bits, "of the bits agree") : null;
}
