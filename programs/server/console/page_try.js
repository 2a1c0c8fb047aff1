// Try: is this text or page known? And add it.
import {add, check, compare, get, orNull, similar, stats} from "./api.js";
import {announce, box, button, card, el, field, form, lead, outcome, soft} from "./dom.js";
import {differences} from "./differences.js";
import {EXAMPLE, SECOND} from "./example.js";
import {sentence} from "./explain.js";
import {leastSimilarity, nearSection} from "./near.js";
import {problemCard, working} from "./problem.js";
import {rememberedText, rememberText} from "./session.js";
import {source} from "./source.js";
import {verdictCard} from "./verdict.js";

function makeForm() {
  const text = source("Text or page", 12);
  const input = (type, placeholder) => el("input", {type, placeholder, autocomplete: "off", spellcheck: "false"});
  return {text, title: input("text"), url: input("url", "https://"), id: input("text")};
}

// The document of the form; null when it is empty.
function documentOf(asked) {
  const made = {...asked.text.side()};
  for (const name of ["title", "url", "id"]) if (asked[name].value.trim()) made[name] = asked[name].value.trim();
  return Object.keys(made).some(name => name !== "id") ? made : null;
}

// The text of a document: as the index keeps it, or as it was added from this tab.
const sideOf = stored => (stored && stored.text ? {text: stored.text} : stored && rememberedText(stored.id));

// What to say and show of a verdict: the original or the nearest document, and how it and the text differ.
async function learn(body, verdict, signal) {
  const mine = body.html ? {html: body.html} : body.text ? {text: body.text} : null;
  const [s, original] = await Promise.all([
    stats(signal),
    verdict.isDuplicate ? orNull(get(verdict.originalId, signal)) : null,
  ]);
  const known = {verdict, original, stats: s, nearest: null, compared: null, other: original};
  if (!verdict.isDuplicate && mine) {
    const found = await similar({...mine}, {limit: 2, similarity: leastSimilarity(s)}, signal);
    known.nearest = found.results.find(one => one.id !== verdict.id && one.similarity !== null) || null;
    if (known.nearest) known.other = await orNull(get(known.nearest.id, signal));
  }
  const theirs = mine && sideOf(known.other);
  if (theirs) {
    known.compared = await compare({a: theirs, b: mine}, signal);
    known.texts = [known.compared.textA || theirs.text, known.compared.textB || mine.text];
  }
  return known;
}

function differencesCard({verdict, compared, texts, other, nearest}) {
  if (!other) return null;
  if (!compared)
    return verdict.isDuplicate
      ? card(
          "How the two differ",
          soft(
            "To show it, the index has to keep texts (--keep-text), and this one does not. Compare lays any two side by side.",
          ),
        )
      : null;
  const title = nearest ? "A: the nearest" : "A: the original";
  return card(
    "How the two differ",
    differences({title, text: texts[0]}, {title: "B: what you gave", text: texts[1]}, compared),
  );
}

function addCard(verdict, again) {
  const about = verdict.isDuplicate
    ? "Adding it counts it as a copy of its original."
    : "Once it is added, copies of it are found.";
  return card(
    "Remember it?",
    soft(`So far it was only looked up. ${about}`),
    el("button", {type: "button", class: "first", on: {click: again}}, "Add it"),
  );
}

async function run(asked, place, adds, signal) {
  const body = documentOf(asked);
  if (!body) {
    outcome(
      place,
      problemCard({title: "There is nothing to look up", message: "Give a text, a page, a title or a URL."}),
    );
    return;
  }
  const verdict = await (adds ? add(body, signal) : check(body, signal));
  if (adds && !verdict.isDuplicate && !verdict.known && (body.text || body.html))
    rememberText(verdict.id, body.html ? {html: body.html} : {text: body.text});
  const known = await learn(body, verdict, signal);
  const near = body.text || body.html ? await nearSection({body: {...body, id: undefined}}, signal) : null;
  const again = event => working(event.currentTarget, place, () => run(asked, place, true, signal));
  outcome(
    place,
    verdictCard({...known, added: adds}),
    differencesCard(known),
    !adds && addCard(verdict, again),
    near,
  );
  announce(sentence(known));
}

function fillIn(asked, example) {
  asked.text.set(example.text);
  asked.title.value = example.title;
  asked.url.value = example.url;
  asked.id.value = "";
}

export async function show(root, route, signal) {
  const asked = makeForm();
  const place = box("place");
  const checkIt = el("button", {type: "submit", class: "first"}, "Check");
  const addIt = button("Check and add", () => working(addIt, place, () => run(asked, place, true, signal)));
  const example = (text, what) => button(text, () => fillIn(asked, what), {class: "link"});
  root.append(
    el("h1", null, "Try"),
    lead(
      "Is this known? Paste a text or a page, or drop a file. To see how it works, fill in ",
      example("an article", EXAMPLE),
      ", add it, and then ",
      example("its second version", SECOND),
      ".",
    ),
    form(
      {class: "card"},
      () => working(checkIt, place, () => run(asked, place, false, signal)),
      asked.text.box,
      box(
        "three",
        field("Title", asked.title),
        field("URL", asked.url),
        field("Id", asked.id, "Without one, it is made from the URL or the text."),
      ),
      box("buttons", checkIt, addIt),
    ),
    place,
  );
}
