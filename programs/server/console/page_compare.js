// Compare two texts: texts or pages side by side, and every measure on them.
import {compare} from "./api.js";
import {announce, box, button, card, el, field, form, lead, options, outcome, soft, table} from "./dom.js";
import {EXAMPLE, SECOND} from "./example.js";
import {inWords, likeness, measureRows, within} from "./explain.js";
import {scale, USUAL} from "./scale.js";
import {folded, verdictSection} from "./verdict.js";
import {problemCard, working} from "./problem.js";
import {source} from "./source.js";
import {twoTexts} from "./two_texts.js";

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
  const made = table("How similar they are", ["Measure", "Value", "Meaning"], rows);
  made.classList.add("measures");
  return folded("All measures", made);
}

async function run(asked, place, signal) {
  const a = asked.a.side(),
    b = asked.b.side();
  if (!a || !b) {
    outcome(place, problemCard({title: "One side is empty", message: "Enter a text or a page on both sides."}));
    return;
  }
  const compared = await compare({a, b, recipe: asked.recipe.value, minWords: Number(asked.words.value) || 5}, signal);
  const left = {title: "A", text: compared.textA || a.text || ""},
    right = {title: "B", text: compared.textB || b.text || ""};
  const said = likeness(compared, USUAL),
    copies = compared.sameDigest || compared.similarity >= USUAL;
  outcome(
    place,
    verdictSection(
      said,
      copies,
      compared.similarity !== null && scale(compared.similarity, USUAL),
      compared.shinglesShared > 0 && soft(within(compared, "A", "B")),
      measures(compared),
    ),
    card(
      "The two texts",
      twoTexts(left, right, compared, {sides: !matchMedia("(max-width: 820px)").matches}),
    ),
  );
  announce(inWords(said));
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
    el("h1", null, "Compare two texts"),
    lead(
      "How similar two texts or pages are, and what they share. Nothing is stored. To try it, fill in ",
      el("span", {class: "together"}, button("two versions of an article", fillIn, {class: "link"}), "."),
    ),
    form(
      {class: "card"},
      () => working(submit, place, () => run(asked, place, signal)),
      box("two", asked.a.box, asked.b.box),
      box("three", field("Recipe", asked.recipe), field("Shortest passage, in words", asked.words)),
      box("buttons", submit),
    ),
    place,
  );
}
