// Compare: two texts or pages side by side, and every measure on them.
import {compare} from "./api.js";
import {announce, el, field, options, outcome, table} from "./dom.js";
import {EXAMPLE, SECOND} from "./example.js";
import {likeness, measureRows} from "./explain.js";
import {sideBySide} from "./passages.js";
import {problemCard, working} from "./problem.js";
import {source} from "./source.js";

const RECIPES = [["page", "page: runs of 5 words"], ["article", "article: single words"], ["literal", "literal: runs of 5 words, murmur3"]];

function measures(compared) {
  const rows = measureRows(compared).map(([title, value, meaning]) => [title, value, el("span", {class: "soft"}, meaning)]);
  const made = table("How alike they are", ["Measure", "Value", "Meaning"], rows);
  made.classList.add("measures");
  return el("section", {class: "card"}, el("h2", null, "Every measure"), made);
}

async function run(form, place, signal) {
  const a = form.a.side(), b = form.b.side();
  if (!a || !b) {
    outcome(place, problemCard({title: "One side is empty", message: "Give a text or a page on both sides."}));
    return;
  }
  const compared = await compare({a, b, recipe: form.recipe.value, minWords: Number(form.words.value) || 5}, signal);
  outcome(place,
    el("section", {class: "card"}, el("h2", null, likeness(compared)),
      sideBySide({title: "A", text: compared.textA || a.text || ""}, {title: "B", text: compared.textB || b.text || ""}, compared)),
    measures(compared));
  announce(likeness(compared));
}

export async function show(root, route, signal) {
  const form = {
    a: source("A", 9), b: source("B", 9),
    recipe: el("select", null, options(RECIPES, "page")),
    words: el("input", {type: "number", min: 1, max: 1000, value: 5}),
  };
  const place = el("div", {class: "place"}), button = el("button", {type: "submit", class: "first"}, "Compare");
  const fillIn = () => {
    form.a.set(EXAMPLE.text);
    form.b.set(SECOND.text);
  };
  root.append(el("h1", null, "Compare"),
    el("p", {class: "lead"}, "Two texts or pages, side by side. Nothing is remembered. To see how it works, fill in ",
      el("button", {type: "button", class: "link", on: {click: fillIn}}, "two versions of an article"), "."),
    el("form", {class: "card", novalidate: true, on: {submit(event) {
      event.preventDefault();
      working(button, place, () => run(form, place, signal));
    }}},
    el("div", {class: "two"}, form.a.box, form.b.box),
    el("div", {class: "three"}, field("Recipe", form.recipe), field("Passages of at least so many words", form.words)),
    el("div", {class: "buttons"}, button)),
    place);
}
