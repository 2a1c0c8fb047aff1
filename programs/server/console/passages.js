// Two texts side by side, with the passages they share. A passage has the same number and colour on both sides; its
// number leads to it on the other side.
import {box, calm, el, plain, soft} from "./dom.js";
import {many} from "./format.js";

const COLOURS = 8;
let last = 0;

function go(to) {
  to.scrollIntoView({block: "center", behavior: calm() ? "auto" : "smooth"});
  to.focus({preventScroll: true});
  const mark = to.closest("mark");
  mark.classList.add("found");
  setTimeout(() => mark.classList.remove("found"), 1600);
}

function markOf(passage, number, words, side, id) {
  const other = side === "a" ? "b" : "a";
  const button = el(
    "button",
    {
      type: "button",
      class: "number",
      id: `${id}-${side}-${number}`,
      "aria-label": `Passage ${number}, ${many(passage.words, "word")}: go to it in ${other.toUpperCase()}`,
    },
    String(number),
  );
  const mark = el("mark", {class: `colour${(number - 1) % COLOURS}`}, button, plain(words));
  mark.addEventListener("click", () => {
    if (!getSelection().isCollapsed) return;
    go(document.getElementById(`${id}-${other}-${number}`));
  });
  return mark;
}

// The text of a side as elements: marks, and what only this side has.
function parts(text, passages, side, id) {
  const order = passages
    .map((passage, i) => ({passage, number: i + 1, from: passage[`${side}From`], to: passage[`${side}To`]}))
    .sort((x, y) => x.from - y.from);
  const made = [];
  let at = 0;
  const between = to => {
    if (to <= at) return;
    const words = plain(text.slice(at, to));
    made.push(/[\p{L}\p{N}]/u.test(words) ? el("span", {class: "only"}, words) : words);
  };
  for (const {passage, number, from, to} of order) {
    between(from);
    made.push(markOf(passage, number, text.slice(from, to), side, id));
    at = to;
  }
  between(text.length);
  return made;
}

function column(title, text, passages, side, id) {
  return el(
    "section",
    {class: "side", "aria-labelledby": `${id}-${side}`},
    el("h3", {id: `${id}-${side}`}, title),
    el(
      "div",
      {class: "passages", tabindex: 0, role: "region", "aria-labelledby": `${id}-${side}`, dir: "auto"},
      parts(text, passages, side, id),
    ),
  );
}

function chooser(pair, id) {
  const choice = (value, text) =>
    el(
      "label",
      {class: "choice"},
      el("input", {
        type: "radio",
        name: `${id}-show`,
        value,
        checked: value === "shared",
        on: {change: () => pair.classList.toggle("differences", value === "differences")},
      }),
      ` ${text}`,
    );
  return el(
    "fieldset",
    {class: "choices"},
    el("legend", null, "Highlight"),
    choice("shared", "what both have"),
    choice("differences", "what only one has"),
  );
}

// a, b: {title, text}; compared: the server's comparison of them.
export function sideBySide(a, b, compared) {
  const id = `pair-${++last}`;
  const shared = compared.passages.reduce((sum, passage) => sum + passage.words, 0);
  const length = `${many(compared.passages.length, "passage")} with ${many(shared, "word")} in common.`;
  const told = compared.passages.length
    ? `${length} A number leads to the passage on the other side.`
    : "No passage is long enough to be shown as one that both have.";
  const pair = box(
    "pair",
    column(a.title, a.text, compared.passages, "a", id),
    column(b.title, b.text, compared.passages, "b", id),
  );
  return box("compared", soft(told), compared.passages.length > 0 && chooser(pair, id), pair);
}
