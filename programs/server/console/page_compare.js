// Compare: two texts or pages side by side, and every measure on them.
import {compare} from "./api.js";
import {announce, box, button, el, field, form, lead, options, outcome, table} from "./dom.js";
import {EXAMPLE, SECOND} from "./example.js";
import {likeness, measureRows} from "./explain.js";
import {differences} from "./differences.js";
import {sideBySide} from "./passages.js";
import {scale} from "./scale.js";
import {folded} from "./verdict.js";
import {problemCard, working} from "./problem.js";
import {source} from "./source.js";

const RECIPES = [
  ["page", "page: runs of 5 words"],
  ["article", "article: single words"],
  ["literal", "literal: runs of 5 words, murmur3"],
];

function measures(compared) {
  const rows = measureRows(compared).map(([title, value, meaning]) => [
    title,
    value,
    el("span", {class: "soft"}, meaning),
  ]);
  const made = table("How alike they are", ["Measure", "Value", "Meaning"], rows);
  made.classList.add("measures");
  return folded("Every measure", made);
}

// The passages, which may stand in another order; made when they are asked for.
function shared(left, right, compared) {
  if (!compared.passages.length) return null;
  const details = folded(`The passages that both have, ${compared.passages.length} of them, in any order`);
  details.addEventListener(
    "toggle",
    () => details.childElementCount < 2 && details.append(sideBySide(left, right, compared)),
  );
  return details;
}

async function run(asked, place, signal) {
  const a = asked.a.side(),
    b = asked.b.side();
  if (!a || !b) {
    outcome(place, problemCard({title: "One side is empty", message: "Give a text or a page on both sides."}));
    return;
  }
  const compared = await compare({a, b, recipe: asked.recipe.value, minWords: Number(asked.words.value) || 5}, signal);
  const left = {title: "A", text: compared.textA || a.text || ""},
    right = {title: "B", text: compared.textB || b.text || ""};
  outcome(
    place,
    el(
      "section",
      {class: "card"},
      el("h2", null, likeness(compared)),
      compared.similarity !== null && scale(compared.similarity, 0.8),
      differences(left, right, compared, {sides: !matchMedia("(max-width: 820px)").matches}),
      shared(left, right, compared),
      measures(compared),
    ),
  );
  announce(likeness(compared));
}

function makeForm() {
  return {
    a: source("A", 9),
    b: source("B", 9),
    recipe: el("select", null, options(RECIPES, "page")),
    words: el("input", {type: "number", min: 1, max: 1000, value: 5}),
  };
}

export async function show(root, route, signal) {
  const asked = makeForm();
  const place = box("place");
  const submit = el("button", {type: "submit", class: "first"}, "Compare");
  const fillIn = () => {
    asked.a.set(EXAMPLE.text);
    asked.b.set(SECOND.text);
  };
  root.append(
    el("h1", null, "Compare"),
    lead(
      "Two texts or pages, side by side. Nothing is remembered. To see how it works, fill in ",
      button("two versions of an article", fillIn, {class: "link"}),
      ".",
    ),
    form(
      {class: "card"},
      () => working(submit, place, () => run(asked, place, signal)),
      box("two", asked.a.box, asked.b.box),
      box("three", field("Recipe", asked.recipe), field("Passages of at least this many words", asked.words)),
      box("buttons", submit),
    ),
    place,
  );
}
