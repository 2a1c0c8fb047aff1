// A form that makes a new index.
import {createIndex} from "./api.js";
import {announce, el, field, options} from "./dom.js";
import {working} from "./problem.js";

const PRESETS = [["general", "general: documents of any kind"], ["crawl", "crawl: pages, 30 days, little memory"], ["article", "article: by the words, in any order"]];
const COPIES = [["skip", "are counted"], ["link", "are remembered by URL"], ["store", "are stored"]];

function bodyOf(form) {
  return {preset: form.preset.value, keepText: form.keep.checked, onDuplicate: form.copies.value};
}

// choose(name): shows the index that was made.
export function createForm(choose, signal) {
  const form = {
    name: el("input", {type: "text", required: true, pattern: "[a-z0-9_\\-]{1,64}", autocomplete: "off", spellcheck: "false"}),
    preset: el("select", null, options(PRESETS, "general")),
    copies: el("select", null, options(COPIES, "skip")),
    keep: el("input", {type: "checkbox"}),
  };
  const place = el("div", {class: "place"}), button = el("button", {type: "submit"}, "Make it");
  return el("details", {class: "make"}, el("summary", null, "Make a new index"),
    el("form", {on: {submit(event) {
      event.preventDefault();
      working(button, place, async () => {
        const made = await createIndex(form.name.value, bodyOf(form), signal);
        announce(`The index ${made.name} is made`);
        choose(made.name, false);
      });
    }}},
    el("div", {class: "three"},
      field("Name", form.name, "Of a-z, 0-9, _ and -."), field("Preset", form.preset), field("Copies", form.copies)),
    el("label", {class: "choice"}, form.keep, " Keep texts, to show differences"),
    el("div", {class: "buttons"}, button)), place);
}
