// Similar documents, from a similarity that the reader chooses. Below the threshold of the index a search may compare all
// documents: by default only where there are at most FEW.
import {similar, similarTo, stats} from "./api.js";
import {box, card, el, field, options} from "./dom.js";
import {nearList} from "./verdict.js";

const FEW = 20000;

export const leastSimilarity = s => (s.documents <= FEW ? 0.3 : s.near === "similarity" ? s.similarity : 0.85);

const LISTED = 10;

// A section that lists what is similar to a document ({id}), or to a body ({body}), without the document `but`.
export async function nearSection(what, signal) {
  const list = el("div", {"aria-live": "polite"});
  const s = await stats(signal),
    least = leastSimilarity(s);
  const choices = [...new Set([0.1, 0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, least])].sort((x, y) => x - y);
  const choose = el(
    "select",
    null,
    options(
      choices.map(value => [String(value), `more than ${Math.round(100 * value)} %`]),
      String(least),
    ),
  );
  async function fill() {
    const values = {limit: LISTED + (what.but ? 1 : 0), similarity: choose.value};
    const found = await (what.body ? similar(what.body, values, signal) : similarTo(what.id, values, signal));
    const others = found.results.filter(one => one.id !== what.but).slice(0, LISTED);
    list.replaceChildren(nearList(others, "No other document is that similar.", s.near === "similarity" ? s.similarity : undefined));
  }
  choose.addEventListener("change", () =>
    fill().catch(error => {
      if (error.name !== "AbortError") list.replaceChildren(el("p", {class: "problem"}, error.message));
    }),
  );
  await fill();
  return card(what.title || "The nearest documents", box("narrow", field("Similarity", choose)), list);
}
