// The threshold of a run: a slider below a chart of how many documents each hundredth removes, with the numbers that
// follow it. The bars from the threshold on are the documents that are removed.
import {box, el, svg} from "./dom.js";
import {count, many, percent} from "./format.js";

const HEIGHT = 170,
  TOP = 34,
  FLOOR = HEIGHT - 2;
// Half of the slider's thumb: its middle is as far from the ends of the slider. What the bar of 100 % may take beyond it.
const THUMB = 11,
  BEYOND = 22;
// About what a character takes, in pixels.
const CHARACTER = 8;

// The lowest threshold that the run has a result for and that is not below `value`.
export const stepAt = (run, value) =>
  run.thresholds.find(step => step.similarity > value - 0.0001) || run.thresholds.at(-1);

// The threshold from which on all are there: where very many documents are similar, only the run's own may be below it.
export function lowest({thresholds: [first, second]}) {
  return second && second.similarity - first.similarity > 0.011 ? second.similarity : first.similarity;
}

// [{similarity, documents}]: what is removed when the threshold is lowered to a step, and not above it. A document that
// goes may make another one stay.
const barsOf = thresholds =>
  thresholds.map(({similarity, removed}, i) => ({
    similarity,
    documents: Math.max(0, removed - (i + 1 < thresholds.length ? thresholds[i + 1].removed : 0)),
  }));

const inWords = ({similarity, removed}, documents) =>
  `${percent(similarity)}: ${count(removed)} of ${count(documents)} removed`;

function draw({thresholds, documents}, chosen, width) {
  const first = Math.floor(100 * thresholds[0].similarity + 0.0001) / 100,
    bars = barsOf(thresholds),
    x = value => THUMB + ((width - 2 * THUMB) * (value - first)) / (1 - first || 1),
    wide = Math.min((width - 2 * THUMB) / (100 * (1 - first) || 1), BEYOND);
  // Exact copies may be many more than all others: their bar is cut, and has its number.
  const others = Math.max(...bars.slice(0, -1).map(bar => bar.documents), 0),
    most = Math.max(1, Math.min(Math.max(others, bars.at(-1).documents), 3 * others || Infinity)),
    tall = value => (value ? Math.max(2, ((FLOOR - TOP) * Math.min(value, most)) / most) : 0);
  const at = x(chosen.similarity),
    near = thresholds[0].removed - chosen.removed;
  const goes = `${count(chosen.removed)} removed`,
    stays = `${count(near)} more at ${percent(first)}`,
    right = at + 8 + CHARACTER * goes.length < width + BEYOND;
  return svg(
    "svg",
    {class: "picture", width: width + BEYOND, height: HEIGHT, viewBox: `0 0 ${width + BEYOND} ${HEIGHT}`, role: "img"},
    svg("title", null, `Documents removed, by threshold. ${inWords(chosen, documents)}`),
    bars.map(({similarity, documents: value}) =>
      svg(
        "rect",
        {
          class: similarity > chosen.similarity - 0.0001 ? "goes" : "stays",
          x: (x(similarity) + 0.5).toFixed(1),
          y: (FLOOR - tall(value)).toFixed(1),
          width: Math.max(wide - 1.5, 1).toFixed(1),
          height: tall(value).toFixed(1),
        },
        svg("title", null, `${percent(similarity)}: ${many(value, "document")}`),
      ),
    ),
    bars.at(-1).documents > most &&
      svg("text", {class: "end count", x: x(1) + wide, y: TOP - 4}, count(bars.at(-1).documents)),
    svg("line", {class: "axis", x1: THUMB, x2: width + BEYOND - THUMB, y1: FLOOR, y2: FLOOR}),
    svg("line", {class: "threshold", x1: at, x2: at, y1: 4, y2: HEIGHT}),
    svg("text", {class: right ? "start goes" : "end goes", x: right ? at + 8 : at - 8, y: 16}, goes),
    right && near > 0 && at > 16 + CHARACTER * stays.length && svg("text", {class: "end", x: at - 8, y: 16}, stays),
  );
}

// {box, value(): from 0 to 1, update(run, chosen)}; change() is called with every move; `chosen` is a step of the run.
export function thresholdControl(usual, change) {
  const slider = el("input", {type: "range", id: "threshold", min: 50, max: 100, step: 1, value: 100 * usual, on: {input: change}}),
    value = el("output", {class: "score"}),
    plot = box("plot"),
    from = el("span"),
    about = el("p", {class: "soft"});
  let redraw = () => {};
  new ResizeObserver(() => redraw()).observe(plot);
  // The chart can be pressed, too.
  const follow = event => {
    const {left} = slider.getBoundingClientRect(),
      part = (event.clientX - left - THUMB) / (slider.clientWidth - 2 * THUMB);
    slider.value = Math.floor(+slider.min + part * (100 - slider.min) + 0.001);
    change();
  };
  plot.addEventListener("pointerdown", event => {
    plot.setPointerCapture(event.pointerId);
    follow(event);
  });
  plot.addEventListener("pointermove", event => plot.hasPointerCapture(event.pointerId) && follow(event));
  return {
    box: box(
      "thresholds",
      box("line", el("h2", null, "Threshold"), value),
      el("label", {for: slider.id}, "Remove a document if it is at least this similar to one that is kept"),
      box("histogram", plot, slider),
      box("line ends", from, el("span", null, "same words")),
      el("p", {class: "help"}, "Each bar counts the documents that this threshold removes and a higher one keeps."),
      about,
    ),
    value: () => Number(slider.value) / 100,
    update(run, chosen) {
      const least = lowest(run);
      slider.min = Math.floor(100 * run.thresholds[0].similarity + 0.0001);
      value.textContent = percent(chosen.similarity);
      slider.setAttribute("aria-valuetext", inWords(chosen, run.documents));
      from.textContent = percent(run.thresholds[0].similarity);
      about.textContent = least > 0.5 ? `Too many documents are similar for lower thresholds: they start at ${percent(least)}.` : "";
      about.hidden = !about.textContent;
      redraw = () => plot.replaceChildren(draw(run, chosen, Math.max(slider.clientWidth, 200)));
      redraw();
    },
  };
}
