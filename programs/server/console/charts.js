// Charts, as inline SVG. A chart is a figure with `update(...)`; it is drawn as wide as its place, with its values below
// it as a table, for readers who cannot see it or want exact values.
import {box, el, svg, table} from "./dom.js";
import {clock, count, percent} from "./format.js";

const HEIGHT = 170,
  TOP = 22,
  BOTTOM = 24;
// About what a character of a label takes, in pixels at a size of 12.
const CHARACTER = 7.2;

// A frame: heading, picture, words, table. `draw(width)` gives the picture, or null when there is nothing to show.
function frame(title, nothing) {
  const place = box("plot");
  const words = el("figcaption");
  const exact = el("div");
  const details = el("details", {class: "exact"}, el("summary", null, "As a table"), exact);
  const figure = el("figure", {class: "card chart"}, el("h2", null, title), place, words, details);
  let draw = () => null,
    shown = null;
  const redraw = () =>
    place.replaceChildren(draw(Math.max(place.clientWidth, 200)) || el("p", {class: "nothing"}, nothing));
  new ResizeObserver(redraw).observe(place);
  function update(key, makeDraw, caption, rows) {
    words.textContent = caption;
    words.hidden = details.hidden = key === "[]";
    if (key === shown) return;
    shown = key;
    draw = makeDraw;
    exact.replaceChildren(rows);
    redraw();
  }
  return {figure, update};
}

const picture = (width, height, title, ...children) =>
  svg(
    "svg",
    {class: "picture", width, height, viewBox: `0 0 ${width} ${height}`, role: "img"},
    svg("title", null, title),
    ...children,
  );

function drawBars(title, bars, width) {
  if (!bars.length) return null;
  const step = width / bars.length,
    most = Math.max(...bars.map(bar => bar.value), 1);
  const longest = Math.max(...bars.map(bar => Math.max(bar.label.length, count(bar.value).length)));
  const every = Math.ceil((longest * CHARACTER) / step);
  const shapes = bars.flatMap((bar, i) => {
    const height = bar.value ? Math.max(2, ((HEIGHT - TOP - BOTTOM) * bar.value) / most) : 0;
    const middle = step * (i + 0.5),
      thick = Math.min(step * 0.76, 64),
      top = HEIGHT - BOTTOM - height;
    return [
      svg(
        "rect",
        {class: "bar", x: middle - thick / 2, y: top, width: thick, height, rx: 2},
        svg("title", null, `${bar.label}: ${count(bar.value)}`),
      ),
      i % every === 0 && svg("text", {x: middle, y: HEIGHT - 8}, bar.label),
      i % every === 0 && bar.value > 0 && svg("text", {class: "count", x: middle, y: top - 6}, count(bar.value)),
    ];
  });
  const axis = svg("line", {class: "axis", x1: 0, x2: width, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM});
  const described = bars
    .filter(bar => bar.value)
    .map(bar => `${bar.label}: ${count(bar.value)}`)
    .join(", ");
  return picture(width, HEIGHT, `${title}. ${described}`, axis, ...shapes);
}

// heads: of the table. update([{label, value}], caption)
export function barChart(title, heads, nothing) {
  const {figure, update} = frame(title, nothing);
  return {
    figure,
    update(bars, caption) {
      update(
        JSON.stringify(bars),
        width => drawBars(title, bars, width),
        caption,
        table(
          title,
          heads,
          bars.map(bar => [bar.label, count(bar.value)]),
          [1],
        ),
      );
    },
  };
}

function drawLine(title, values, width) {
  if (values.length < 2) return null;
  const low = HEIGHT - BOTTOM,
    most = Math.max(...values, 1);
  const x = i => 1 + ((width - 2) * (i + LINE - values.length)) / (LINE - 1),
    y = value => low - ((low - 24) * value) / most;
  const points = values.map((value, i) => `${x(i).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  return picture(
    width,
    HEIGHT,
    `${title}: now ${count(Math.round(values.at(-1)))}, at most ${count(Math.round(most))}`,
    svg("polygon", {class: "area", points: `${x(0)},${low} ${points} ${x(values.length - 1)},${low}`}),
    svg("line", {class: "axis", x1: 0, x2: width, y1: low, y2: low}),
    svg("polyline", {class: "curve", points}),
    svg("text", {class: "start count", x: 0, y: 16}, `${count(Math.round(most))} a second`),
  );
}

// How many points a line has; the newest is at the right.
export const LINE = 60;
export function lineChart(title, nothing) {
  const {figure, update} = frame(title, nothing);
  return {
    figure,
    update(values, caption) {
      update(
        JSON.stringify(values),
        width => drawLine(title, values, width),
        caption,
        table(
          title,
          ["Seconds ago", "A second"],
          values.map((value, i) => [count(2 * (values.length - 1 - i)), count(Math.round(value))]).reverse(),
          [1],
        ),
      );
    },
  };
}

// ---- the last day ----

const DAY = 24 * 3600e3;

// A history of the server as equal steps up to now, the oldest first: [{at, known, fresh, copies}], times in milliseconds.
// Nothing is known of the time in which the index was not open.
function stepsOf(history, now) {
  const size = history.step * 60e3,
    points = new Map(history.points.map(point => [Date.parse(point.time), point])),
    last = Math.floor(now / size) * size;
  return Array.from({length: DAY / size}, (_, i) => {
    const at = last - DAY + (i + 1) * size,
      {verdictsBy: by} = points.get(at) || {};
    return {at, known: Boolean(by), fresh: by ? by.unique : 0, copies: by ? by.url + by.content + by.title : 0};
  });
}

// Those that follow each other and of which nothing is known: [{from, to, why}], numbers of steps.
function gapsOf(steps) {
  const gaps = [];
  steps.forEach((step, i) => {
    if (step.known) return;
    if (gaps.at(-1)?.to === i) gaps.at(-1).to++;
    else gaps.push({from: i, to: i + 1, why: i ? "not running" : "no record"});
  });
  return gaps;
}

function drawDay(title, steps, width) {
  if (!steps.some(step => step.fresh + step.copies)) return null;
  const low = HEIGHT - BOTTOM,
    wide = width / steps.length,
    most = Math.max(...steps.map(step => step.fresh + step.copies)),
    tall = value => ((low - TOP) * value) / most,
    hours = width < 500 ? 6 : 3;
  const gaps = gapsOf(steps).flatMap(({from, to, why}) => [
    svg("rect", {class: "gap", x: wide * from, y: TOP, width: wide * (to - from), height: low - TOP}),
    wide * (to - from) > 90 && svg("text", {x: (wide * (from + to)) / 2, y: (TOP + low) / 2 + 4}, why),
  ]);
  const bars = steps.flatMap(({at, fresh, copies}, i) => {
    const bar = (kind, value, below) =>
      value > 0 &&
      svg("rect", {
        class: kind,
        x: wide * i,
        y: low - tall(value + below),
        width: Math.max(wide - 1, 1),
        height: Math.max(tall(value), 1),
      });
    const time = new Date(at),
      labelled = time.getMinutes() === 0 && time.getHours() % hours === 0 && wide * i > 20 && wide * i < width - 20;
    return [
      bar("part1", copies, 0),
      bar("part0", fresh, copies),
      labelled && svg("text", {x: wide * i, y: HEIGHT - 8}, clock(at)),
    ];
  });
  const sum = kind => steps.reduce((all, step) => all + step[kind], 0);
  return picture(
    width,
    HEIGHT,
    `${title}: ${count(sum("fresh"))} new and ${count(sum("copies"))} copies in the last day`,
    ...gaps,
    ...bars,
    svg("line", {class: "axis", x1: 0, x2: width, y1: low, y2: low}),
    svg("text", {class: "start count", x: 0, y: 14}, `at most ${count(most)} in ${(steps[1].at - steps[0].at) / 60e3} minutes`),
  );
}

const dayRows = steps =>
  steps.flatMap((step, i) => {
    const gap = gapsOf(steps).find(({from}) => from === i);
    if (gap) return [[`${clock(step.at)} to ${clock(steps[gap.to]?.at ?? Date.now())}`, gap.why, ""]];
    return step.fresh + step.copies ? [[clock(step.at), count(step.fresh), count(step.copies)]] : [];
  });

// What an index did in the last day. update(history, now), as the server gives it, and the time in milliseconds.
export function dayChart(title, nothing) {
  const {figure, update} = frame(title, nothing);
  figure.querySelector(".plot").after(legendOf([{label: "new", kind: "part0"}, {label: "copies", kind: "part1"}]));
  return {
    figure,
    update(history, now) {
      const steps = stepsOf(history, now),
        idle = !steps.some(step => step.fresh + step.copies);
      figure.querySelector(".legend").hidden = idle;
      update(
        idle ? "[]" : JSON.stringify(steps),
        width => drawDay(title, steps, width),
        `What was checked and added in the last day, in steps of ${history.step} minutes.`,
        table(title, ["From", "New", "Copies"], dayRows(steps), [1, 2]),
      );
    },
  };
}

// ---- parts of a whole ----

// [{label, kind}], the label as it is shown.
const legendOf = parts =>
  el(
    "ul",
    {class: "legend"},
    parts.map(({label, kind}) =>
      el(
        "li",
        null,
        svg("svg", {width: 12, height: 12, "aria-hidden": "true"}, svg("rect", {class: kind, width: 12, height: 12, rx: 3})),
        label,
      ),
    ),
  );

function drawParts(title, parts, width) {
  const all = parts.reduce((sum, part) => sum + part.value, 0);
  if (!all) return null;
  let x = 0;
  const shapes = parts.map(part => {
    const wide = (width * part.value) / all;
    x += wide;
    return svg(
      "rect",
      {class: part.kind, x: x - wide, y: 0, width: wide, height: 28},
      svg("title", null, `${part.label}: ${count(part.value)}`),
    );
  });
  return picture(
    width,
    28,
    `${title}. ${parts.map(part => `${part.label}: ${percent(part.value / all, 1)}`).join(", ")}`,
    ...shapes,
  );
}

// One bar of several parts, with a legend. update([{label, value, kind}], caption)
export function partsChart(title, nothing) {
  const {figure, update} = frame(title, nothing);
  let legend = legendOf([]);
  figure.querySelector(".plot").after(legend);
  return {
    figure,
    update(parts, caption) {
      const all = parts.reduce((sum, part) => sum + part.value, 0);
      const share = part => percent(part.value / all, 1);
      const now = legendOf(all ? parts.map(part => ({kind: part.kind, label: `${part.label} ${share(part)}`})) : []);
      legend.replaceWith(now);
      legend = now;
      update(
        all ? JSON.stringify(parts) : "[]",
        width => drawParts(title, parts, width),
        caption,
        all
          ? table(
              title,
              ["Verdict", "Documents", "Share"],
              parts.map(part => [part.label, count(part.value), share(part)]),
              [1, 2],
            )
          : "",
      );
    },
  };
}
