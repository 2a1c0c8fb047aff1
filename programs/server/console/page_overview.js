// Overview: what the index holds and does, live.
import {history, stats} from "./api.js";
import {barChart, dayChart, LINE, lineChart, partsChart} from "./charts.js";
import {box, el, table, tile} from "./dom.js";
import {count, least, many, microseconds, percent, percentile, rate, seconds, short, used} from "./format.js";

const EVERY = 2000;
// Minutes of a step of the last day, and milliseconds after which it is looked at again though nothing was done.
const STEP = 15,
  AGAIN = 60000;

// Rates from two polls; null until there are two, and when the server was restarted.
function rates(before, now) {
  if (!before || now.uptimeSeconds <= before.uptimeSeconds || now.checks < before.checks || now.adds < before.adds)
    return null;
  const passed = now.uptimeSeconds - before.uptimeSeconds;
  return {checks: (now.checks - before.checks) / passed, adds: (now.adds - before.adds) / passed};
}

const bitsLabel = i => (i < 2 ? String(i) : `${least(i)}–${2 * least(i) - 1}`);
const distanceBars = histogram => used(histogram, 0, 3).map(({i, n}) => ({label: bitsLabel(i), value: n}));
const timeBars = histogram =>
  used(histogram).map(({i, n}) => ({label: i === 0 ? "0 µs" : microseconds(least(i)), value: n}));

function timesTable(s) {
  const row = (name, h) => [
    name,
    short(h.count),
    ...[0.5, 0.9, 0.99].map(part => (h.count ? microseconds(percentile(h, part)) : "–")),
  ];
  return table(
    "Since the index was opened",
    ["Work", "Count", "Median", "90 %", "99 %"],
    [row("Checks", s.checkTime), row("Adds", s.addTime), row("Commits", s.commitTime)],
    [1, 2, 3, 4],
  );
}

// First steps, shown while the index is empty.
function welcome() {
  const link = (page, text) => el("a", {href: `#/${page}`}, text);
  return el(
    "section",
    {class: "card welcome", hidden: true},
    el("h2", null, "This index is empty"),
    el("p", null, link("check", "Check two versions of an article"), " to see what a verdict looks like;"),
    el("p", null, link("dedup", "drop a file"), " on any page to see which of its documents are copies;"),
    el("p", null, "or ", link("compare", "compare two texts"), "."),
  );
}

function makeParts() {
  return {
    welcome: welcome(),
    documents: tile("Documents"),
    checks: tile("Checks a second"),
    adds: tile("Adds a second"),
    copies: tile("Copies found"),
    verdicts: partsChart("Verdicts by reason", "Nothing has been checked or added since the start."),
    line: lineChart("Checks and adds a second", "The chart starts in a moment."),
    distances: barChart(
      "Distance of copies by content",
      ["Bits that differ", "Copies"],
      "No copy has been found by its content since the start.",
    ),
    times: barChart("How long checks take", ["At least", "Checks"], "Nothing has been checked since the start."),
    day: dayChart("The last day", "Nothing was checked or added in the last day."),
    exact: box("card"),
  };
}

function showTiles(p, s, now) {
  const v = s.verdictsBy,
    asked = v.unique + v.url + v.content + v.title;
  p.welcome.hidden = asked > 0 || s.documents > 0;
  p.documents.set(short(s.documents), s.copies ? `and ${many(s.copies, "copy", "copies")}` : "originals");
  p.checks.set(rate(now && now.checks), `${count(s.checks)} since the start`);
  p.adds.set(rate(now && now.adds), `${count(s.adds)} since the start`);
  p.copies.set(asked ? percent(1 - v.unique / asked, 1) : "–", "of checks and adds since the start");
}

function showCharts(p, s, points) {
  const v = s.verdictsBy;
  p.verdicts.update(
    [
      {label: "new", value: v.unique, kind: "part0"},
      {label: "same URL", value: v.url, kind: "part3"},
      {label: "content", value: v.content, kind: "part1"},
      {label: "title", value: v.title, kind: "part2"},
    ],
    `Of checks and adds since the index was opened, ${seconds(s.uptimeSeconds)} ago.`,
  );
  p.line.update(points, "The last two minutes.");
  p.distances.update(
    distanceBars(s.distances),
    "Copies found by content, by the number of fingerprint bits that differ.",
  );
  p.times.update(timeBars(s.checkTime), "Checks by duration; each bar starts at the time below it.");
}

function live(p, state, signal) {
  const points = [];
  let before = null,
    key = "",
    looked = 0;
  async function poll() {
    const s = await stats(signal);
    const now = rates(before, s);
    if (now) points.push(now.checks + now.adds);
    if (points.length > LINE) points.shift();
    if (!before || before.checks !== s.checks || before.adds !== s.adds || Date.now() - looked > AGAIN) {
      looked = Date.now();
      p.day.update(await history(STEP, signal), looked);
    }
    before = s;
    showTiles(p, s, now);
    showCharts(p, s, [...points]);
    const times = JSON.stringify([s.checkTime, s.addTime, s.commitTime]);
    if (times !== key) p.exact.replaceChildren(el("h2", null, "Times"), timesTable(s));
    key = times;
    state.textContent = "Updated every two seconds";
  }
  return poll;
}

export async function show(root, route, signal) {
  const p = makeParts(),
    state = el("span", {class: "soft"}, "Loading");
  let paused = false;
  const pause = el(
    "button",
    {
      type: "button",
      class: "plain",
      on: {
        click() {
          paused = !paused;
          pause.textContent = paused ? "Resume" : "Pause";
          state.textContent = paused ? "Paused" : "Updated every two seconds";
        },
      },
    },
    "Pause",
  );
  root.append(
    box("title", el("h1", null, "Overview"), box("state", state, pause)),
    p.welcome,
    box("tiles", p.documents.box, p.checks.box, p.adds.box, p.copies.box),
    p.day.figure,
    p.verdicts.figure,
    box("two even", p.line.figure, p.distances.figure),
    box("two even", p.times.figure, p.exact),
  );
  const poll = live(p, state, signal);
  await poll();
  let under = false;
  const timer = setInterval(async () => {
    if (paused || under || document.hidden) return;
    under = true;
    await poll().catch(error => {
      if (error.name !== "AbortError") state.textContent = error.title || String(error);
      if (error.status === 401) clearInterval(timer); // or it would ask for a token again and again
    });
    under = false;
  }, EVERY);
  signal.addEventListener("abort", () => clearInterval(timer));
}
