// Two texts as two bars, one above the other, and a band for each passage that both have, from where it is in the first
// to where it is in the second. What no band covers, only one of the two has.
import {box, svg} from "./dom.js";

// The picture is as wide as its place: units across are thousandths of a text.
const WIDE = 1000,
  BAR = 14,
  GAP = 30,
  HEIGHT = 2 * BAR + GAP;
// What is marked can be seen, however short it is.
const LEAST = 2.5;
// Narrow bands that are drawn; the picture of very many looks the same with fewer.
const MOST_NARROW = 500;

// Where the words of a text begin and end.
function wordsWithin(text) {
  let from = 0,
    to = text.length;
  const isWord = at => /[\p{L}\p{M}\p{N}\ud800-\udfff]/u.test(text[at]);
  while (from < to && !isWord(from)) from++;
  while (from < to && !isWord(to - 1)) to--;
  return [from, to];
}

const rect = (from, to, y) => `M${from} ${y}H${to}V${y + BAR}H${from}Z`;
const band = ([a, b], [c, d]) => {
  const top = BAR,
    middle = HEIGHT / 2,
    low = HEIGHT - BAR;
  return `M${a} ${top}C${a} ${middle} ${c} ${middle} ${c} ${low}H${d}C${d} ${middle} ${b} ${middle} ${b} ${top}Z`;
};

// Bands without some of the narrow ones, where there are very many.
function thinned(list) {
  const every = Math.ceil(list.length / MOST_NARROW);
  return list.filter(([, [from, to]], i) => to - from >= LEAST || i % every === 0);
}

// Whether one of the ranges, in order, has a place in it.
function covers(ranges, place) {
  let low = 0,
    high = ranges.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ranges[middle][0] <= place) low = middle + 1;
    else high = middle;
  }
  return low > 0 && ranges[low - 1][1] > place;
}

// a, b: {label, text}; passages: as the server gives them, `moved` those that are not in the same order in both; changes,
// and stops, which the buttons lead to: [{number, a: [from, to], b: [from, to]}], places in the texts. go(number) is
// called with the stop that is nearest to a click. Gives {made, mark(number)}.
export function alignment(a, b, {passages, moved, changes, stops, go}) {
  const across = (text, [from, to]) =>
    [from, to].map(place => Math.round((100 * WIDE * place) / (text.length || 1)) / 100);
  const seen = ([from, to]) => {
    const grown = Math.max(0, LEAST - (to - from)) / 2;
    return [Math.max(0, from - grown), Math.min(WIDE, to + grown)];
  };
  const rangesOf = p => [across(a.text, [p.aFrom, p.aTo]), across(b.text, [p.bFrom, p.bTo])];
  const low = BAR + GAP,
    shared = passages.map(rangesOf),
    parts = (kind, list) => [
      svg("path", {class: `bands ${kind}`, d: thinned(list).map(([one, other]) => band(one, other)).join("")}),
      svg("path", {class: kind, d: list.map(([one, other]) => rect(...one, 0) + rect(...other, low)).join("")}),
    ];
  // Changes that are too short to be seen between two passages; what moved is no change.
  const short = (text, side, y) => {
    const known = shared.map(one => one[side]).sort((x, y) => x[0] - y[0]);
    return changes
      .map(change => across(text, side ? change.b : change.a))
      .filter(([from, to]) => to > from && to - from < LEAST && !covers(known, (from + to) / 2))
      .map(range => rect(...seen(range), y))
      .join("");
  };
  const current = svg("path", {class: "current"});
  const picture = svg(
    "svg",
    {class: "alignment", viewBox: `0 0 ${WIDE} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true"},
    svg("path", {class: "only-a", d: rect(...across(a.text, wordsWithin(a.text)), 0)}),
    svg("path", {class: "only-b", d: rect(...across(b.text, wordsWithin(b.text)), low)}),
    parts("both", shared),
    parts("moved", moved.map(rangesOf)),
    svg("path", {class: "only-a", d: short(a.text, 0, 0)}),
    svg("path", {class: "only-b", d: short(b.text, 1, low)}),
    current,
  );
  picture.addEventListener("click", event => {
    const {left, top, width, height} = picture.getBoundingClientRect(),
      [side, text] = event.clientY - top < height / 2 ? ["a", a.text] : ["b", b.text],
      place = (text.length * (event.clientX - left)) / width;
    const away = stop => Math.max(stop[side][0] - place, place - stop[side][1], 0);
    if (stops.length) go(stops.reduce((best, stop) => (away(stop) < away(best) ? stop : best)).number);
  });
  const mark = number => {
    const marked = stops
      .filter(stop => stop.number === number)
      .map(stop => [seen(across(a.text, stop.a)), seen(across(b.text, stop.b))]);
    const outline = ([one, other]) => rect(...one, 0) + rect(...other, low) + band(one, other);
    current.setAttribute("d", marked.map(outline).join(""));
  };
  return {made: box("aligned", box("end-a", a.label), picture, box("end-b", b.label)), mark};
}
