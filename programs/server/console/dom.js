// Makes elements. Text of documents goes in as text nodes only; there is no way here to put in markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "value") element.value = value;
    else if (name === "dir") continue;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  const {dir} = properties || {};
  element.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false));
  // Not before: with dir="auto", a browser looks for the direction again with each child.
  if (dir) element.setAttribute("dir", dir);
  return element;
}

// el("p", {class: "soft", on: {click}}, "text", element, ...); properties may be null.
export const el = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
export const svg = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

// What comes from documents, for one line: characters that control the terminal or the direction of text are shown as
// such, one for one, so that places in a text stay what they are.
export const plain = text =>
  String(text).replace(
    /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    "\ufffd",
  );
// A name of a document, isolated from the direction of the text around it; it can be seen even if it is only space.
export function name(text) {
  const shown = plain(text);
  return el("bdi", null, /[^\s\p{C}]/u.test(shown) ? shown : "(blank)");
}

// Announces it to screen readers.
export function announce(text) {
  const live = document.getElementById("live");
  live.textContent = "";
  requestAnimationFrame(() => {
    live.textContent = text;
  });
}

// A form that calls `send` in place of being sent.
export function form(properties, send, ...children) {
  const submit = event => {
    event.preventDefault();
    send();
  };
  return el("form", {novalidate: true, ...properties, on: {submit}}, ...children);
}

export const box = (kind, ...children) => el("div", {class: kind}, ...children);
export const button = (text, click, properties) => el("button", {type: "button", ...properties, on: {click}}, text);
export const soft = (...children) => el("p", {class: "soft"}, ...children);
// A sentence shown in place of what the caller may not do.
export const needs = (right, what) => el("p", {class: "soft needs"}, `${what} requires the right “${right}”, which your token does not have.`);
export const card = (title, ...children) => el("section", {class: "card"}, el("h2", null, title), ...children);
export const lead = (...children) => el("p", {class: "lead"}, ...children);

let last = 0;
// A label with its control below; the control gets an id.
export function field(label, control, help) {
  const id = control.id || `field-${++last}`;
  control.id = id;
  const about = help && el("p", {class: "help", id: `${id}-help`}, help);
  if (about) control.setAttribute("aria-describedby", about.id);
  return el("div", {class: "field"}, el("label", {for: id}, label), control, about);
}

export const options = (choices, chosen) =>
  choices.map(([value, text]) => el("option", {value, selected: value === chosen}, text));

// Facts as a list of names and values; values that are null are left out.
export function facts(rows) {
  const kept = rows.filter(row => row && row[1] !== null && row[1] !== undefined);
  return el(
    "dl",
    {class: "facts"},
    kept.map(([title, ...values]) => el("div", null, el("dt", null, title), el("dd", null, ...values))),
  );
}

// The roles are explicit because style sheets give some tables another layout.
export function table(caption, heads, rows, numbers = []) {
  const kind = i => (numbers.includes(i) ? "number" : null);
  const row = cells => el("tr", {role: "row"}, cells);
  return el(
    "table",
    {role: "table"},
    el("caption", null, caption),
    el(
      "thead",
      {role: "rowgroup"},
      row(heads.map((head, i) => el("th", {scope: "col", role: "columnheader", class: kind(i)}, head))),
    ),
    el(
      "tbody",
      {role: "rowgroup"},
      rows.map(cells =>
        row(
          cells.map((cell, i) =>
            i
              ? el("td", {role: "cell", class: kind(i)}, cell)
              : el("th", {scope: "row", role: "rowheader", class: kind(i)}, cell),
          ),
        ),
      ),
    ),
  );
}

// Shows the result of a form, and moves the focus to its heading.
export function outcome(root, ...children) {
  root.replaceChildren(...children.flat().filter(Boolean));
  const heading = root.querySelector("h2, h3");
  if (!heading) return;
  heading.tabIndex = -1;
  heading.focus({preventScroll: true});
  heading.scrollIntoView({block: "start", behavior: calm() ? "auto" : "smooth"});
}

export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// A figure with its label; set(text, note) changes it. kind: the class of a chart's part, for its colour.
export function tile(label, kind) {
  const value = el("b", null, "–"),
    note = el("span", {class: "note"});
  return {
    box: box("card tile", el("span", {class: kind && `swatch ${kind}`}, label), value, note),
    set(text, more = "") {
      value.textContent = text;
      note.textContent = more;
    },
  };
}
