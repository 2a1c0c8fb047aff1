// How two texts differ, for people: in one text or side by side, with equal stretches folded, a strip that shows where
// the differences lie, and buttons that lead from one to the next.
import {diffOf, hunksOf, wordCount} from "./diff.js";
import {announce, box, button, calm, el, plain, svg} from "./dom.js";
import {count, many} from "./format.js";

// So many differences are laid out at a time.
const STEP = 150;
let last = 0;

// A stretch that is left out; pressing it shows it.
function fold(text, both) {
  if (!text) return null;
  const shown = many(wordCount(text), "word");
  const folded = el("button", {type: "button", class: "fold"}, `… ${shown} the same …`);
  folded.setAttribute("aria-label", `${shown} the same: show them`);
  const place = box("folded", folded);
  folded.addEventListener("click", () => {
    const open = el("span", {class: "opened", tabindex: -1}, plain(text));
    place.replaceChildren(open, both && open.cloneNode(true));
    place.classList.add("open");
    open.focus({preventScroll: true});
  });
  return place;
}

const gone = text => text && el("del", null, el("span", {class: "unseen"}, "only in A: "), plain(text));
const fresh = text => text && el("ins", null, el("span", {class: "unseen"}, "only in B: "), plain(text));

const inline = hunk =>
  box(
    "hunk",
    el(
      "p",
      {dir: "auto"},
      hunk.runs.map(run => (run.kind === "same" ? plain(run.b) : [gone(run.a), run.a && run.b && " ", fresh(run.b)])),
    ),
  );

const columns = hunk =>
  box(
    "hunk columns",
    el("p", {dir: "auto"}, hunk.runs.map(run => (run.kind === "same" ? plain(run.a) : gone(run.a)))),
    el("p", {dir: "auto"}, hunk.runs.map(run => (run.kind === "same" ? plain(run.b) : fresh(run.b)))),
  );

// Where the differences lie, from the beginning of the text to its end; `go(number)` shows one.
function strip(hunks, go) {
  const changes = hunks.flatMap((hunk, number) => hunk.changes.map(change => ({...change, number})));
  const marks = changes.map(({at, size}) =>
    svg("rect", {x: `${(100 * at).toFixed(2)}%`, y: 0, width: `${Math.max(100 * size, 0.5).toFixed(2)}%`, height: 14}),
  );
  const made = svg("svg", {class: "strip", width: "100%", height: 14, "aria-hidden": "true"}, marks);
  made.addEventListener("click", event => {
    const at = (event.clientX - made.getBoundingClientRect().left) / made.getBoundingClientRect().width;
    const [near] = [...changes].sort((x, y) => Math.abs(x.at - at) - Math.abs(y.at - at));
    if (near) go(near.number);
  });
  return {strip: made, mark: number => marks.forEach((mark, i) => mark.classList.toggle("current", changes[i].number === number))};
}

function inWords(runs, number) {
  const changes = runs.filter(run => run.kind === "change");
  const removed = changes.reduce((sum, run) => sum + wordCount(run.a), 0),
    added = changes.reduce((sum, run) => sum + wordCount(run.b), 0);
  if (!changes.length) return "No word differs.";
  return `${many(number, "difference")}: ${many(removed, "word")} only in A, ${count(added)} only in B.`;
}

// a, b: {title, text}; compared: the server's comparison of them. sides: side by side at first.
export function differences(a, b, compared, {sides = false} = {}) {
  const id = `differences-${++last}`;
  const runs = diffOf(a.text, b.text, compared.passages);
  const {hunks, last: rest} = hunksOf(runs);
  const list = el("div", {class: "hunks", role: "region", tabindex: 0, "aria-labelledby": `${id}-about`});
  const where = el("span", {class: "soft where"});
  let current = -1,
    wide = sides,
    laid = 0;
  const heads = box("heads columns", el("b", null, a.title), el("b", null, b.title));
  const view = box("differences");

  function layOut(upTo) {
    const some = hunks.slice(laid, upTo);
    laid = Math.max(laid, Math.min(upTo, hunks.length));
    list.querySelector(".more")?.remove();
    list.append(...some.flatMap(hunk => [fold(hunk.skipped, wide), wide ? columns(hunk) : inline(hunk)]).filter(Boolean));
    if (laid < hunks.length)
      list.append(button(`Show more: ${count(hunks.length - laid)} differences follow`, () => layOut(laid + STEP), {class: "more"}));
    else list.append(...[fold(hunks.length ? rest : b.text, wide)].filter(Boolean));
  }
  function draw() {
    list.replaceChildren();
    view.classList.toggle("sides", wide);
    laid = 0;
    layOut(STEP);
    if (current >= 0) go(current);
  }
  const bar = strip(hunks, number => go(number));
  function go(number) {
    current = (number + hunks.length) % hunks.length;
    if (current >= laid) layOut(current + 1);
    const hunk = list.querySelectorAll(".hunk")[current];
    list.querySelector(".hunk.current")?.classList.remove("current");
    hunk.classList.add("current");
    list.scrollTo({top: hunk.offsetTop - list.offsetTop - 40, behavior: calm() ? "auto" : "smooth"});
    bar.mark(current);
    where.textContent = `${count(current + 1)} of ${count(hunks.length)}`;
    announce(`Difference ${current + 1} of ${hunks.length}`);
  }
  const way = el("button", {type: "button", class: "small plain", "aria-pressed": String(wide)}, "Side by side");
  way.addEventListener("click", () => {
    wide = !wide;
    way.setAttribute("aria-pressed", String(wide));
    draw();
  });
  const tools = box(
    "tools",
    el("span", {id: `${id}-about`}, inWords(runs, hunks.length)),
    box(
      "buttons",
      where,
      hunks.length > 1 && button("Previous", () => go(current < 0 ? hunks.length - 1 : current - 1), {class: "small"}),
      hunks.length > 1 && button("Next", () => go(current + 1), {class: "small"}),
      hunks.length > 0 && way,
    ),
  );
  view.append(tools, hunks.length > 0 ? bar.strip : "", heads, list);
  draw();
  return view;
}
