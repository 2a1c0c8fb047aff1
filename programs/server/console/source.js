// A place for a text or a page: typed, pasted, chosen as a file or dropped.
import {readFile} from "./api.js";
import {announce, box, button, el, field, name, options} from "./dom.js";
import {deduplicate} from "./dropped.js";
import {hasSeveral, isPacked} from "./fields.js";
import {many} from "./format.js";
import {problemCard} from "./problem.js";

const KINDS = [
  ["auto", "Text or page: detect"],
  ["text", "Text"],
  ["html", "Page (HTML)"],
];
const ENDINGS = ".txt,.md,.html,.htm,.xhtml,.docx,.gz,.zst,.bz2,.xz,text/*";

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

// {box, area, side(), set(text)}; side() gives {text} or {html}, or null when it is empty.
export function source(label, rows = 10) {
  const area = el("textarea", {rows, spellcheck: "false", dir: "auto"});
  const kind = el("select", {"aria-label": `${label}: kind`}, options(KINDS, "auto"));
  const counted = el("span", {class: "soft counted"}, "0 words");
  let from = null; // the name of the file that the text is of
  const changed = () => {
    offer.replaceChildren();
    counted.replaceChildren(
      `${many(wordsOf(area.value), "word")}${area.value && isPage() ? ", a page" : ""}`,
      ...(from === null ? [] : [", from ", name(from)]),
    );
  };
  const isPage = () => (kind.value === "auto" ? looksLikePage(area.value) : kind.value === "html");
  const offer = el("div", {class: "offer", role: "status"});
  const set = (text, as = "auto", file = null) => {
    from = file;
    area.value = text;
    kind.value = as;
    changed();
  };
  // The document of a file, as the server and the command read it; null: it has several.
  const only = async chosen => {
    if (await hasSeveral(chosen)) return null;
    const {documents, more} = await readFile(chosen, {limit: 1});
    return more ? null : documents[0];
  };
  const load = (chosen, {text, html}) => {
    const isHtml = html !== null,
      shown = isHtml ? html : text;
    set(shown, looksLikePage(shown) === isHtml ? "auto" : isHtml ? "html" : "text", chosen.name);
    announce(`${chosen.name} loaded`);
  };
  const offerSeveral = chosen =>
    offer.replaceChildren(
      el("p", null, name(chosen.name), " contains several documents."),
      box(
        "buttons",
        button("Deduplicate this file", () => deduplicate(chosen), {class: "first"}),
        !isPacked(chosen) && button("Use it as one text", async () => load(chosen, {text: await chosen.text(), html: null})),
      ),
    );
  let latest;
  const take = async chosen => {
    latest = chosen;
    offer.replaceChildren(el("p", {class: "soft"}, "Reading ", name(chosen.name)));
    const answer = await only(chosen).catch(error => error);
    if (latest !== chosen) return;
    if (answer instanceof Error) offer.replaceChildren(problemCard({title: "This file cannot be read", message: `${chosen.name}: ${answer.message}`}));
    else if (answer) load(chosen, answer);
    else offerSeveral(chosen);
  };
  const file = el("input", {type: "file", class: "unseen", tabindex: -1, "aria-hidden": "true", accept: ENDINGS});
  file.addEventListener("change", () => {
    const [chosen] = file.files;
    file.value = ""; // so that the same file can be chosen again
    if (chosen) take(chosen);
  });
  area.addEventListener("input", () => {
    from = null;
    changed();
  });
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
    set,
  };
}
