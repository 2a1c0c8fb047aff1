// A group as a cluster of dots: the kept document in the middle, those that are removed around it. A group that grows
// while a file is analysed, or with the threshold, gets more dots.
import {box, el, plain, svg} from "./dom.js";
import {count, many} from "./format.js";

const DOT = 5,
  APART = 6;
// Up to this size the dots around the kept one are a ring, beyond it a spiral without gaps, as in sunflowers.
const RING = 7,
  TURN = Math.PI * (3 - Math.sqrt(5));
// Dots of a group that are drawn; the number below says how many there are.
const MOST = 120;

// Where a dot is, from the middle of the kept one, which is number 0.
function placeOf(i, size) {
  const angle = size <= RING ? (2 * Math.PI * i) / (size - 1) : i * TURN,
    away = i && (size <= RING ? 2 * DOT + 3 : APART * Math.sqrt(i + 2));
  return [away * Math.cos(angle), away * Math.sin(angle)];
}

// The cluster of a group of `size` documents, of which `before` have been shown before.
function dots(size, before = size) {
  const places = Array.from({length: Math.min(size, MOST)}, (_, i) => placeOf(i, size)),
    edge = (axis, least) => Math[least](...places.map(place => place[axis])) + (least === "min" ? -1 : 1) * (DOT + 2),
    [left, top] = [edge(0, "min"), edge(1, "min")],
    [width, height] = [edge(0, "max") - left, edge(1, "max") - top];
  return svg(
    "svg",
    {class: "cluster", width, height, viewBox: `${left} ${top} ${width} ${height}`, "aria-hidden": "true"},
    places.map(([cx, cy], i) =>
      svg("circle", {class: `${i ? "goes" : "keeps"}${i >= before ? " fresh" : ""}`, cx, cy, r: i ? DOT : DOT + 1.5}),
    ),
  );
}

// What a list of groups shows of each: a cluster, a heading and a sentence.
export const groupSummary = (size, heading, ...about) =>
  el("summary", null, box("dots", dots(size)), el("div", null, heading, el("span", {class: "soft"}, about)));

// {box, update(groups, titleOf)}; open(group) is called when a cluster is pressed.
export function clusters(open) {
  const place = el("ul", {class: "clusters", "aria-label": "The largest groups"});
  let sizes = new Map();
  return {
    box: place,
    update(groups, titleOf) {
      place.replaceChildren(
        ...groups.map(group => {
          const title = `${plain(titleOf(group))}: ${many(group.size, "document")}`;
          return el(
            "li",
            null,
            el(
              "button",
              {type: "button", title, "aria-label": title, on: {click: () => open(group)}},
              dots(group.size, sizes.get(group.number) ?? 0),
              el("span", null, count(group.size)),
            ),
          );
        }),
      );
      sizes = new Map(groups.map(group => [group.number, group.size]));
    },
  };
}
