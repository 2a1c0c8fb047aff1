// Two texts and how they relate: shared text, shaded, or differences, marked; in one text or side by side, with a picture
// of both that shows where it lies, and buttons, or the keys n and p, that lead from one place to the next.
//
// A view of the two is {kind, stops, places, about(), lay(list, wide), at(number)}: how many places there are to go to,
// where they lie in the two texts, a sentence, how it is laid out, and the elements of a place.
import {alignment} from "./alignment.js";
import {diffOf, firstWords, hunksOf, lastWords, wordCount} from "./diff.js";
import {announce, box, button, calm, el, name, plain} from "./dom.js";
import {count, many} from "./format.js";

// About how many parts of differences are laid out at a time: browsers take a second for ten thousand.
const STEP = 300;
// Words of a change that are shown at once, and of a longer one those of its beginning and its end. What moved is known
// from elsewhere.
const SHOWN = {most: 300, beginning: 120, end: 30},
  SHOWN_MOVED = {most: 40, beginning: 14, end: 6};
// Numbers and words that are only heard take browsers longer than the text itself.
const MOST_NUMBERED = 1000;
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

// A change; the middle of a long one is left out, and pressing it shows it.
function changed(tag, side, text, moved) {
  const words = wordCount(text),
    kind = {class: moved ? "moved" : null},
    {most, beginning, end} = moved ? SHOWN_MOVED : SHOWN,
    heard = unseen(moved ? `moved, in ${side.title}: ` : `only in ${side.title}: `);
  if (words <= most) return el(tag, kind, heard, plain(text));
  const head = firstWords(text, beginning),
    tail = lastWords(text, end);
  const more = button(
    `… ${many(words - beginning - end, "more word")} …`,
    () => made.replaceChildren(heard, plain(text)),
    {class: "link"},
  );
  const made = el(tag, kind, heard, plain(head), " ", more, " ", plain(tail));
  return made;
}

// A part of a text as pieces of what moved, and of what is only there: [{text, moved}]. Signs between words that moved, and
// those right after them, moved with them.
function pieces(text, at, moved) {
  const end = at + text.length,
    made = [];
  let from = at;
  const push = (to, isMoved) => {
    const piece = text.slice(from - at, Math.max(from, to) - at),
      last = made.at(-1),
      own = !last?.moved || wordCount(piece) ? 0 : to < end ? piece.length : piece.search(/\s|$/);
    if (own) last.text += piece.slice(0, own);
    if (own < piece.length) made.push({text: piece.slice(own), moved: isMoved});
    from = Math.max(from, to);
  };
  for (const range of moved)
    if (range.to > from && range.from < end) {
      push(range.from, false);
      push(Math.min(range.to, end), true);
    }
  push(end, false);
  return made;
}

function hunkOf(hunk, a, b, wide) {
  // White space around it is not marked, nor are signs without words.
  const marked = (tag, side, text, at) =>
    text &&
    pieces(text, at, side.moved).map(piece => {
      const words = piece.text.trim(),
        from = piece.text.indexOf(words);
      if (!wordCount(words)) return plain(piece.text);
      return [piece.text.slice(0, from), changed(tag, side, words, piece.moved), piece.text.slice(from + words.length)];
    });
  const removed = run => marked("del", a, run.a, run.aAt),
    added = run => marked("ins", b, run.b, run.bAt);
  const line = part => el("p", {dir: "auto"}, hunk.runs.map(part));
  if (!wide)
    return box(
      "hunk",
      line(run => (run.kind === "same" ? plain(run.b) : [removed(run), run.a && run.b && " ", added(run)])),
    );
  return box(
    "hunk columns",
    line(run => (run.kind === "same" ? plain(run.a) : removed(run))),
    line(run => (run.kind === "same" ? plain(run.b) : added(run))),
  );
}

function differences(a, b, runs, {hunks, last: rest}) {
  // The hunks from `from` up to `to` are laid out.
  let list, wide, from, to;
  const parts = (first, end) =>
    hunks.slice(first, end).flatMap(hunk => [fold(hunk.skipped, wide), hunkOf(hunk, a, b, wide)].filter(Boolean));
  // How many hunks at a place are laid out together: those before it, or from it on.
  const next = (at, step) => {
    let end = at,
      left = STEP;
    for (let i = step < 0 ? at - 1 : at; hunks[i] && left > 0; i += step) {
      left -= hunks[i].runs.length;
      end += step;
    }
    return end;
  };
  const more = (number, kind, act) => button(`Show ${kind}: ${many(number, "difference")}`, act, {class: "more"});
  function layOut(first, end) {
    for (const edge of list.querySelectorAll(":scope > .more")) edge.remove();
    list.prepend(...parts(first, from));
    list.append(...parts(to, end));
    from = first;
    if (from) list.prepend(more(from, "earlier", () => layOut(next(from, -1), to)));
    if (end < hunks.length) list.append(more(hunks.length - end, "more", () => layOut(from, next(to, 1))));
    else if (to < end || !end) list.append(...[fold(hunks.length ? rest : b.text, wide)].filter(Boolean));
    to = end;
  }
  // Begins with a hunk, with nothing laid out before.
  function begin(number) {
    list.replaceChildren();
    from = to = number;
    layOut(number, next(number, 1));
  }
  return {
    kind: "differences",
    stops: hunks.length,
    places: hunks.flatMap((hunk, number) => hunk.changes.map(change => ({...change, number}))),
    about() {
      const changes = runs.filter(run => run.kind === "change"),
        inA = changes.flatMap(run => pieces(run.a, run.aAt, a.moved)),
        inB = changes.flatMap(run => pieces(run.b, run.bAt, b.moved)),
        words = (list, moved) => list.reduce((sum, one) => sum + (one.moved === moved ? wordCount(one.text) : 0), 0);
      const parts = [
        ["del", null, words(inA, false), ` only in ${a.title}`],
        ["ins", null, words(inB, false), ` only in ${b.title}`],
        ["ins", "moved", words(inB, true), " moved"],
      ].filter(([, , number]) => number);
      if (!parts.length) return ["The words are the same."];
      return parts.flatMap(([tag, kind, number, where], i) => [
        i ? ", " : "",
        el(tag, {class: kind}, many(number, "word")),
        where,
      ]);
    },
    lay(place, sides) {
      list = place;
      wide = sides;
      begin(0);
    },
    at(number) {
      if (number === to) layOut(from, next(to, 1));
      else if (number === from - 1) layOut(next(from, -1), to);
      else if (number < from || number > to) begin(number);
      return [list.querySelectorAll(".hunk")[number - from]];
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
// Where there are very many, only the shades are left.
function shadedText(text, order, go) {
  const made = [],
    isSaid = order.length <= MOST_NUMBERED;
  let at = 0;
  const between = to => to > at && made.push(plain(text.slice(at, to)));
  for (const {number, from, to} of order) {
    const leads =
      go &&
      isSaid &&
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
      el("mark", {"data-number": number}, leads || (isSaid && unseen("in both: ")), plain(text.slice(from, to)), isSaid && unseen(" (end)")),
    );
    at = to;
  }
  between(text.length);
  return made;
}

// Places that belong together in two panes, in pixels from the top: the ends of passages that are in the same order in
// both.
function levels(one, other) {
  const marksOf = pane => [...pane.querySelectorAll("mark")].map(mark => [mark.dataset.number, mark]),
    there = new Map(marksOf(other)),
    found = [[0, 0]];
  const add = (top, beside) => {
    const [above, other] = found.at(-1);
    if (top > above && beside > other) found.push([top, beside]);
  };
  for (const [number, here] of marksOf(one)) {
    const mark = there.get(number);
    if (!mark || mark.offsetTop < found.at(-1)[1]) continue;
    add(here.offsetTop, mark.offsetTop);
    add(here.offsetTop + here.offsetHeight, mark.offsetTop + mark.offsetHeight);
  }
  const [above, beside] = found.at(-1);
  return [...found, [Math.max(one.scrollHeight, above + 1), Math.max(other.scrollHeight, beside + 1)]];
}

// The pane that the reader scrolls; null: none, as when a button leads to a passage.
let leading = null;

// Scrolls each of two panes with the other: what both have stays level.
function scrollTogether(a, b) {
  for (const [one, other] of [[a, b], [b, a]]) {
    let known = [],
      wide = 0;
    for (const touch of ["wheel", "pointerdown", "touchstart", "keydown"])
      one.addEventListener(touch, () => (leading = one), {passive: true});
    one.addEventListener("scroll", () => {
      if (leading !== one) return;
      if (wide !== one.clientWidth) known = levels(one, other);
      wide = one.clientWidth;
      const height = one.clientHeight / 3,
        at = one.scrollTop + height,
        next = Math.max(1, known.findIndex(([top]) => top > at)),
        [[from, beside], [to, until]] = [known[next - 1], known[next]];
      other.scrollTop = beside + ((at - from) * (until - beside)) / (to - from) - height;
    });
  }
}

function shared(a, b, compared, go) {
  // Numbered as they follow each other in B.
  const passages = [...compared.passages].sort((x, y) => x.bFrom - y.bFrom),
    orders = {a: inOrder(passages, "a"), b: inOrder(passages, "b")};
  let list;
  return {
    kind: "shared",
    stops: orders.b.length,
    places: orders.b.map(({number: passage}, number) => {
      const {aFrom, aTo, bFrom, bTo} = passages[passage];
      return {number, a: [aFrom, aTo], b: [bFrom, bTo]};
    }),
    about() {
      if (!passages.length) return ["The two share no passage that is long enough to be shown."];
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
      const panes = sides ? [side(a, orders.a), side(b, orders.b)] : [side(b, orders.b)];
      list.append(...panes);
      if (sides) scrollTogether(...panes);
    },
    at: stop => [...list.querySelectorAll(`mark[data-number="${orders.b[stop].number}"]`)],
  };
}

// ---- both views, and what leads through them ----

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

const head = one => el("b", null, capital(one.title), one.name && [": ", name(one.name)]);

// Whether lines were broken at a width, as in mail and in licences: more than a third go on in lower case. (Of lines of
// code, less than a quarter do.)
function isBroken(text) {
  const breaks = text.match(/\n(?=[^\S\n]*\S)/g) || [],
    within = text.match(/(?<=^.{50,100})\n(?=[^\S\n]*\p{Ll})/gmu) || [];
  return 3 * within.length > breaks.length;
}
// Such a text with its lines joined. Its characters keep their places.
const joined = text => text.replace(/(?<=^.{50,100})\n(?=[^\S\n]*[\p{L}\p{N}("'“‘])/gmu, " ");

// What both views are made of: the sides, each with its label and the ranges that moved, and how they differ.
function prepare(one, other, {passages}) {
  const [broken, otherBroken] = [one, other].map(({text}) => isBroken(text)),
    textA = broken ? joined(one.text) : one.text,
    textB = otherBroken ? joined(other.text) : other.text,
    {runs, moved} = diffOf(textA, textB, passages),
    hunked = hunksOf(runs),
    sideOf = (made, text, side) => ({...made, text, label: head(made), moved: inOrder(moved, side).map(({from, to}) => ({from, to}))});
  return {
    a: sideOf(one, textA, "a"),
    b: sideOf(other, textB, "b"),
    isFlowing: broken || otherBroken,
    passages,
    moved,
    runs,
    hunked,
    changes: hunked.hunks.flatMap(hunk => hunk.changes),
  };
}

const toolbar = (id, show, choose, ...buttons) =>
  box(
    "tools",
    el(
      "div",
      {class: "choices", role: "radiogroup", "aria-label": "Show"},
      choice(id, "shared", "shared text", show, choose("shared")),
      choice(id, "differences", "differences", show, choose("differences")),
    ),
    box("buttons", ...buttons),
  );

// Prepares the place of a view. Differences scroll together, as one region; of shared text, each side is a region.
function clear(place, kind, wide, about) {
  const region = {role: "region", tabindex: 0, "aria-labelledby": about.id};
  place.replaceChildren();
  place.className = kind === "shared" ? `shaded${wide ? " columns" : ""}` : `hunks${wide ? " sides" : ""}`;
  for (const [property, value] of Object.entries(region))
    if (kind === "shared") place.removeAttribute(property);
    else place.setAttribute(property, value);
}

// one, other: {title, text, name}, `title` as it stands in a sentence ("the original"), `name` that of the document, or
// nothing; compared: the server's comparison of them. show: "shared" or "differences" at first; sides: side by side.
export function twoTexts(one, other, compared, {show = "differences", sides = false} = {}) {
  const id = `texts-${++last}`,
    {a, b, isFlowing, passages, moved, runs, hunked, changes} = prepare(one, other, compared),
    make = {differences: () => differences(a, b, runs, hunked), shared: () => shared(a, b, compared, go)},
    made = {};
  let kind = show,
    wide = sides,
    current,
    picture = box("aligned"),
    mark;
  const about = el("p", {class: "about", id: `${id}-about`}),
    where = el("span", {class: "soft where"}),
    heads = box("heads columns", el("b", null, capital(a.title)), el("b", null, capital(b.title))),
    place = el("div");
  const view = () => (made[kind] ||= make[kind]());
  const steps = [
    button("Previous", () => move(-1), {class: "small", title: "Key: p", "aria-keyshortcuts": "p"}),
    button("Next", () => move(1), {class: "small", title: "Key: n", "aria-keyshortcuts": "n"}),
  ];
  function draw() {
    const v = view();
    current = -1;
    const drawn = alignment(a, b, {passages, moved, changes, stops: v.places, go});
    picture.replaceWith(drawn.made);
    picture = drawn.made;
    mark = drawn.mark;
    about.replaceChildren(...v.about());
    where.textContent = "";
    for (const step of steps) step.hidden = v.stops < 2;
    heads.hidden = !wide;
    clear(place, kind, wide, about);
    v.lay(place, wide);
  }
  function go(number) {
    const v = view();
    current = (number + v.stops) % v.stops;
    const elements = v.at(current);
    leading = null;
    for (const before of place.querySelectorAll(".current")) before.classList.remove("current");
    for (const element of elements) {
      element.classList.add("current");
      bringUp(element);
    }
    mark(current);
    where.textContent = `${count(current + 1)} of ${count(v.stops)}`;
    announce(`${kind === "shared" ? "Passage" : "Difference"} ${current + 1} of ${v.stops}`);
  }
  const move = step => go(current < 0 && step < 0 ? view().stops - 1 : current + step);
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
  const whole = box(`texts${isFlowing ? " flowing" : ""}`, toolbar(id, show, choose, where, ...steps, way), about, picture, heads, place);
  whole.addEventListener("keydown", event => {
    const step = {n: 1, p: -1}[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey || view().stops < 2) return;
    event.preventDefault();
    move(step);
  });
  return whole;
}
