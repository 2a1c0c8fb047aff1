// Two texts and how they relate: shared text, shaded, or differences, marked; in one text or
// side by side, with a strip that shows where it lies, and buttons that lead from one place to the next.
//
// A view of the two is {kind, stops, marks, about(), lay(list, wide), at(number)}: how many places there are to go to,
// where they lie from 0 to 1, a sentence, how it is laid out, and the elements of a place.
import {diffOf, hunksOf, wordCount} from "./diff.js";
import {announce, box, button, calm, el, name, plain, svg} from "./dom.js";
import {count, many} from "./format.js";

// How many differences are laid out at a time.
const STEP = 150;
let last = 0;

const capital = text => text[0].toUpperCase() + text.slice(1);
const unseen = text => el("span", {class: "unseen"}, text);

// ---- differences ----

// A stretch that is left out; pressing it shows it.
function fold(text, both) {
  if (!text) return null;
  const shown = many(wordCount(text), "word");
  const folded = el("button", {type: "button", class: "fold"}, `… ${shown} the same …`);
  folded.setAttribute("aria-label", `${shown} the same: show them`);
  const place = box("folded", folded);
  folded.addEventListener("click", () => {
    const open = el("span", {class: "opened", tabindex: -1}, plain(text));
    place.replaceChildren(open, both ? open.cloneNode(true) : "");
    place.classList.add("open");
    open.focus({preventScroll: true});
  });
  return place;
}

function hunkOf(hunk, a, b, wide) {
  // White space around it is not marked.
  const marked = (tag, side, text) => {
    const [, before, words, after] = /^(\s*)(.*?)(\s*)$/s.exec(text);
    return text && [before, words && el(tag, null, unseen(`only in ${side.title}: `), plain(words)), after];
  };
  const removed = text => marked("del", a, text),
    added = text => marked("ins", b, text);
  const line = part => el("p", {dir: "auto"}, hunk.runs.map(part));
  if (!wide)
    return box(
      "hunk",
      line(run => (run.kind === "same" ? plain(run.b) : [removed(run.a), run.a && run.b && " ", added(run.b)])),
    );
  return box(
    "hunk columns",
    line(run => (run.kind === "same" ? plain(run.a) : removed(run.a))),
    line(run => (run.kind === "same" ? plain(run.b) : added(run.b))),
  );
}

function differences(a, b, passages) {
  const runs = diffOf(a.text, b.text, passages),
    {hunks, last: rest} = hunksOf(runs);
  let list,
    wide,
    laid = 0;
  function layOut(upTo) {
    const some = hunks.slice(laid, upTo);
    laid = Math.max(laid, Math.min(upTo, hunks.length));
    list.querySelector(".more")?.remove();
    list.append(...some.flatMap(hunk => [fold(hunk.skipped, wide), hunkOf(hunk, a, b, wide)]).filter(Boolean));
    if (laid < hunks.length)
      list.append(
        button(`Show more: ${count(hunks.length - laid)} differences`, () => layOut(laid + STEP), {class: "more"}),
      );
    else list.append(...[fold(hunks.length ? rest : b.text, wide)].filter(Boolean));
  }
  return {
    kind: "differences",
    stops: hunks.length,
    marks: hunks.flatMap((hunk, number) => hunk.changes.map(change => ({...change, number}))),
    about() {
      const changes = runs.filter(run => run.kind === "change"),
        words = side => changes.reduce((sum, run) => sum + wordCount(run[side]), 0),
        sides = [["del", a, words("a")], ["ins", b, words("b")]].filter(([, , number]) => number);
      if (!sides.length) return ["The words are the same."];
      return sides.flatMap(([tag, side, number], i) => [
        i ? ", " : "",
        el(tag, null, many(number, "word")),
        ` only in ${side.title}`,
      ]);
    },
    lay(place, sides) {
      list = place;
      wide = sides;
      laid = 0;
      layOut(STEP);
    },
    at(number) {
      if (number >= laid) layOut(number + 1);
      return [list.querySelectorAll(".hunk")[number]];
    },
  };
}

// ---- shared text ----

// Passages in the order of a side, none within another: [{number, from, to}].
function inOrder(passages, side) {
  const order = passages
    .map((passage, number) => ({number, from: passage[`${side}From`], to: passage[`${side}To`]}))
    .sort((x, y) => x.from - y.from);
  let at = 0;
  return order.flatMap(one => {
    const from = Math.max(one.from, at);
    at = Math.max(at, one.to);
    return from < one.to ? [{...one, from}] : [];
  });
}

// The text of a side as elements: passages are shaded, and have numbers that lead to the other side when `go` is given.
function shadedText(text, order, go) {
  const made = [];
  let at = 0;
  const between = to => to > at && made.push(plain(text.slice(at, to)));
  for (const {number, from, to} of order) {
    const leads =
      go &&
      el(
        "button",
        {
          type: "button",
          class: "number",
          "aria-label": `Passage ${number + 1}: go to it in the other text`,
          on: {click: event => go(number, event.currentTarget)},
        },
        String(number + 1),
      );
    between(from);
    made.push(
      el("mark", {"data-number": number}, leads || unseen("in both: "), plain(text.slice(from, to)), unseen(" (end)")),
    );
    at = to;
  }
  between(text.length);
  return made;
}

function shared(a, b, compared, go) {
  // Numbered as they follow each other in B.
  const passages = [...compared.passages].sort((x, y) => x.bFrom - y.bFrom),
    orders = {a: inOrder(passages, "a"), b: inOrder(passages, "b")},
    length = b.text.length || 1;
  let list;
  return {
    kind: "shared",
    stops: orders.b.length,
    marks: orders.b.map(({from, to}, number) => ({at: from / length, size: (to - from) / length, number})),
    about() {
      if (!passages.length) return ["No shared passage is long enough to be shown."];
      const words = passages.reduce((sum, passage) => sum + passage.words, 0);
      return [
        el("mark", null, `${count(Math.min(words, compared.wordsB))} of ${many(compared.wordsB, "word")}`),
        ` of ${b.title} are also in ${a.title}, in ${many(passages.length, "passage")}.`,
      ];
    },
    lay(place, sides) {
      list = place;
      // Leads from the number of a passage to that on the other side.
      const lead = (number, from) => {
        const stop = orders.b.findIndex(one => one.number === number),
          numbers = [...list.querySelectorAll(`mark[data-number="${number}"] .number`)];
        if (stop >= 0) go(stop);
        numbers.find(one => one !== from)?.focus({preventScroll: true});
      };
      const side = (one, order) =>
        el(
          "div",
          {class: "side", role: "region", tabindex: 0, "aria-label": capital(one.title), dir: "auto"},
          shadedText(one.text, order, sides && lead),
        );
      list.append(...(sides ? [side(a, orders.a), side(b, orders.b)] : [side(b, orders.b)]));
    },
    at: stop => [...list.querySelectorAll(`mark[data-number="${orders.b[stop].number}"]`)],
  };
}

// ---- both views, and what leads through them ----

// Where the marks of a view lie, from the beginning of the text to its end.
function strip(view, go) {
  const rects = view.marks.map(({at, size}) =>
    svg("rect", {x: `${(100 * at).toFixed(2)}%`, y: 0, width: `${Math.max(100 * size, 0.5).toFixed(2)}%`, height: 14}),
  );
  const made = svg("svg", {class: `strip ${view.kind}`, width: "100%", height: 14, "aria-hidden": "true"}, rects);
  made.addEventListener("click", event => {
    const {left, width} = made.getBoundingClientRect(),
      at = (event.clientX - left) / width;
    const [near] = [...view.marks].sort((x, y) => Math.abs(x.at - at) - Math.abs(y.at - at));
    if (near) go(near.number);
  });
  const mark = number => rects.forEach((rect, i) => rect.classList.toggle("current", view.marks[i].number === number));
  return {made, mark};
}

// Scrolls an element to the middle of what scrolls around it, and leaves the page where it is.
function bringUp(element) {
  const place = element.closest(".side, .hunks"),
    {top, height} = element.getBoundingClientRect();
  place.scrollBy({
    top: top - place.getBoundingClientRect().top - Math.max(20, (place.clientHeight - height) / 2),
    behavior: calm() ? "auto" : "smooth",
  });
}

function choice(id, value, text, chosen, act) {
  const input = el("input", {type: "radio", name: `${id}-show`, value, checked: value === chosen, on: {change: act}});
  return el("label", {class: "choice"}, input, ` ${text}`);
}

// a, b: {title, text, name}, `title` as it stands in a sentence ("the original"), `name` that of the document, or
// nothing; compared: the server's comparison of them. show: "shared" or "differences" at first; sides: side by side.
export function twoTexts(a, b, compared, {show = "differences", sides = false} = {}) {
  const id = `texts-${++last}`,
    make = {differences: () => differences(a, b, compared.passages), shared: () => shared(a, b, compared, go)},
    made = {};
  let kind = show,
    wide = sides,
    current,
    bar;
  const about = el("p", {class: "about", id: `${id}-about`}),
    where = el("span", {class: "soft where"}),
    stripPlace = el("div"),
    heads = box("heads"),
    place = el("div");
  const view = () => (made[kind] ||= make[kind]());
  const steps = [
    button("Previous", () => go(current < 0 ? view().stops - 1 : current - 1), {class: "small"}),
    button("Next", () => go(current + 1), {class: "small"}),
  ];
  const head = one => el("b", null, capital(one.title), one.name && [": ", name(one.name)]);

  function draw() {
    const v = view();
    current = -1;
    bar = strip(v, go);
    about.replaceChildren(...v.about());
    where.textContent = "";
    for (const step of steps) step.hidden = v.stops < 2;
    stripPlace.replaceChildren(v.stops ? bar.made : "");
    heads.replaceChildren(...(wide ? [head(a), head(b)] : kind === "shared" ? [head(b)] : []));
    heads.className = wide ? "heads columns" : "heads";
    place.replaceChildren();
    place.className = kind === "shared" ? `shaded${wide ? " columns" : ""}` : `hunks${wide ? " sides" : ""}`;
    for (const [property, value] of [["role", "region"], ["tabindex", 0], ["aria-labelledby", about.id]])
      if (kind === "shared") place.removeAttribute(property);
      else place.setAttribute(property, value);
    v.lay(place, wide);
  }
  function go(number) {
    const v = view();
    current = (number + v.stops) % v.stops;
    const elements = v.at(current);
    for (const before of place.querySelectorAll(".current")) before.classList.remove("current");
    for (const element of elements) {
      element.classList.add("current");
      bringUp(element);
    }
    bar.mark(current);
    where.textContent = `${count(current + 1)} of ${count(v.stops)}`;
    announce(`${kind === "shared" ? "Passage" : "Difference"} ${current + 1} of ${v.stops}`);
  }
  const choose = value => () => {
    kind = value;
    draw();
  };
  const way = el("button", {type: "button", class: "small plain", "aria-pressed": String(wide)}, "Side by side");
  way.addEventListener("click", () => {
    wide = !wide;
    way.setAttribute("aria-pressed", String(wide));
    draw();
  });
  draw();
  return box(
    "texts",
    box(
      "tools",
      el(
        "div",
        {class: "choices", role: "radiogroup", "aria-label": "Show"},
        choice(id, "shared", "shared text", show, choose("shared")),
        choice(id, "differences", "differences", show, choose("differences")),
      ),
      box("buttons", where, ...steps, way),
    ),
    about,
    stripPlace,
    heads,
    place,
  );
}
