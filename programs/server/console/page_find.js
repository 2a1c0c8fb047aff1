// Find: a document by its id, its URL or its title.
import {check, get, orNull, stats} from "./api.js";
import {announce, el, field, name, outcome} from "./dom.js";
import {many, percent, share} from "./format.js";
import {problemCard, working} from "./problem.js";
import {documentLink} from "./verdict.js";

function found(stored, how) {
  return el("section", {class: "card"}, el("h2", null, how),
    el("ul", {class: "documents"}, el("li", null,
      el("div", {class: "line"}, documentLink(stored.id, stored.title || stored.id)),
      el("p", {class: "soft"}, name(stored.id), stored.url && stored.url !== stored.id && [" · ", name(stored.url)],
        ` · ${many(stored.duplicates, "copy", "copies")}`))));
}

async function byTitle(title, signal) {
  const verdict = await check({title}, signal);
  if (verdict.reason !== "title_similarity") return null;
  const stored = await orNull(get(verdict.originalId, signal));
  return stored && found(stored, `Found by its title, ${share(verdict.evidence.titleSimilarity)} the same`);
}

async function nothing(signal) {
  const s = await stats(signal);
  const about = s.titles
    ? `Ids have to be exact. URLs may be spelled in any way that leads to the same page. A title has to be at least ${percent(s.titleSimilarity)} the same, and have ten characters.`
    : "Ids have to be exact. URLs may be spelled in any way that leads to the same page. This index does not look at titles.";
  return el("section", {class: "card"}, el("h2", null, "Nothing was found"), el("p", {class: "soft"}, about));
}

async function run(wanted, place, signal) {
  const stored = await orNull(get(wanted, signal));
  const how = stored && (stored.id === wanted ? "Found by its id" : "Found by its URL");
  const shown = stored ? found(stored, how) : await byTitle(wanted, signal) || await nothing(signal);
  outcome(place, shown);
  announce(shown.querySelector("h2").textContent);
}

export async function show(root, route, signal) {
  const input = el("input", {type: "search", autocomplete: "off", spellcheck: "false", dir: "auto", value: route.query.get("q") || ""});
  const place = el("div", {class: "place"}), button = el("button", {type: "submit", class: "first"}, "Find");
  const look = () => working(button, place, async () => {
    const wanted = input.value.trim();
    if (!wanted) outcome(place, problemCard({title: "There is nothing to look for", message: "Give an id, a URL or a title."}));
    else await run(wanted, place, signal);
  });
  root.append(el("h1", null, "Find"), el("p", {class: "lead"}, "A document by its id, its URL or its title."),
    el("form", {class: "card", role: "search", on: {submit(event) {
      event.preventDefault();
      history.replaceState(null, "", `#/find?q=${encodeURIComponent(input.value.trim())}`);
      look();
    }}}, field("Id, URL or title", input), el("div", {class: "buttons"}, button)), place);
  if (input.value) await look();
}
