// A form that creates a new index.
import {createIndex} from "./api.js";
import {announce, box, el, field, form, options} from "./dom.js";
import {working} from "./problem.js";

const PRESETS = [
  ["general", "general: documents of any kind"],
  ["crawl", "crawl: web pages, 30 days, little memory"],
  ["article", "article: articles, by pairs of words"],
];
const COPIES = [
  ["skip", "skip: only counted"],
  ["link", "link: linked to their original"],
  ["store", "store: stored like any document"],
];

function makeForm() {
  const name = {type: "text", required: true, pattern: "[a-z0-9_\\-]{1,64}", autocomplete: "off", spellcheck: "false"};
  return {
    name: el("input", name),
    preset: el("select", null, options(PRESETS, "general")),
    copies: el("select", null, options(COPIES, "skip")),
    keep: el("input", {type: "checkbox"}),
  };
}

// choose(name): shows the new index.
export function createForm(choose, signal) {
  const asked = makeForm();
  const place = box("place");
  const submit = el("button", {type: "submit"}, "Create");
  const make = async () => {
    const body = {preset: asked.preset.value, keepText: asked.keep.checked, onDuplicate: asked.copies.value};
    const made = await createIndex(asked.name.value, body, signal);
    announce(`Index ${made.name} created`);
    choose(made.name, false);
  };
  return el(
    "details",
    {class: "make"},
    el("summary", null, "Create an index"),
    form(
      {novalidate: false},
      () => working(submit, place, make),
      box(
        "three",
        field("Name", asked.name, "Characters: a-z, 0-9, _ and -."),
        field("Preset", asked.preset),
        field("Copies", asked.copies),
      ),
      el("label", {class: "choice"}, asked.keep, " Keep texts, to show differences"),
      box("buttons", submit),
    ),
    place,
  );
}
