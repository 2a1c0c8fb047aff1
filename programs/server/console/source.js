// A place for a text or a page: typed, pasted, chosen as a file or dropped.
import {announce, box, button, el, field, name, options} from "./dom.js";
import {hasSeveral} from "./fields.js";
import {many} from "./format.js";

const KINDS = [
  ["auto", "Text or page: detect"],
  ["text", "Text"],
  ["html", "Page (HTML)"],
];
const ENDINGS = ".txt,.md,.html,.htm,.xhtml,text/*";

const looksLikePage = text => /^\s*(<!doctype|<html|<head|<body|<!--|<(article|div|p|h1|main|section)\b)/i.test(text);
const wordsOf = text => (text.match(/[\p{L}\p{N}]+/gu) || []).length;

function takesDrops(place, take) {
  place.addEventListener("dragover", event => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    place.classList.add("over");
  });
  place.addEventListener("dragleave", () => place.classList.remove("over"));
  place.addEventListener("drop", event => {
    place.classList.remove("over");
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    take(event.dataTransfer.files[0]);
  });
}

// {box, area, side(), set(text)}; side() gives {text} or {html}, or null when it is empty. several(file): is offered for a
// file of several documents, before it is taken for one.
export function source(label, rows = 10, several = null) {
  const area = el("textarea", {rows, spellcheck: "false", dir: "auto"});
  const kind = el("select", {"aria-label": `${label}: kind`}, options(KINDS, "auto"));
  const counted = el("span", {class: "soft"}, "0 words");
  const changed = () => {
    offer.replaceChildren();
    counted.textContent = `${many(wordsOf(area.value), "word")}${area.value && isPage() ? ", a page" : ""}`;
  };
  const isPage = () => (kind.value === "auto" ? looksLikePage(area.value) : kind.value === "html");
  const offer = el("div", {class: "offer", role: "status"});
  const read = async chosen => {
    area.value = await chosen.text();
    announce(`${chosen.name} loaded`);
    changed();
  };
  const take = async chosen => {
    if (!several || !(await hasSeveral(chosen))) return read(chosen);
    offer.replaceChildren(
      el("p", null, name(chosen.name), " contains several documents."),
      box(
        "buttons",
        button("Deduplicate this file", () => several(chosen), {class: "first"}),
        button("Use it as one text", () => read(chosen)),
      ),
    );
  };
  const file = el("input", {type: "file", class: "unseen", tabindex: -1, "aria-hidden": "true", accept: ENDINGS});
  file.addEventListener("change", () => {
    const [chosen] = file.files;
    file.value = ""; // so that the same file can be chosen again
    if (chosen) take(chosen);
  });
  area.addEventListener("input", changed);
  kind.addEventListener("change", changed);
  const place = box(
    "source",
    field(label, area),
    box(
      "under",
      kind,
      button("Choose a file", () => file.click(), {class: "plain"}),
      file,
      counted,
    ),
    offer,
  );
  takesDrops(place, take);
  return {
    box: place,
    area,
    side: () => (area.value.trim() ? {[isPage() ? "html" : "text"]: area.value} : null),
    set(text) {
      area.value = text;
      changed();
    },
  };
}
