// Check a document: is this text or page known? And add it.
import {add, check, compare, get, orNull, remove, similar, stats} from "./api.js";
import {announce, box, button, card, el, field, form, lead, needs, outcome, soft} from "./dom.js";
import {EXAMPLE, SECOND} from "./example.js";
import {inWords, verdictOf} from "./explain.js";
import {leastSimilarity, nearSection} from "./near.js";
import {problemCard, working} from "./problem.js";
import {forgetText, may, rememberedText, rememberText} from "./session.js";
import {source} from "./source.js";
import {twoTexts} from "./two_texts.js";
import {documentLink, verdictCard} from "./verdict.js";

function makeForm() {
  const text = source("Text or page", 8);
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

// Why a document and the one that it was compared with are not laid side by side; null: there is no other one.
function whyNoTexts(mine, {verdict, other, stats: s}) {
  if (!mine) return "No text was given, so only the URL and the title were compared.";
  if (!other || !verdict.isDuplicate) return null;
  if (other.words === 0) return "The original was added without text, so there is nothing to compare with.";
  return s.keepText
    ? "The text of the original is not kept, so the differences cannot be shown."
    : "This index does not keep texts (--keep-text), so the differences cannot be shown. Compare shows any two texts side by side.";
}

// What to say and show of a verdict: the original or the nearest document, and how it and the text differ.
async function learn(body, verdict, signal) {
  const mine = body.html ? {html: body.html} : body.text ? {text: body.text} : null;
  const [s, original] = await Promise.all([
    stats(signal),
    verdict.isDuplicate ? orNull(get(verdict.originalId, signal)) : null,
  ]);
  const known = {verdict, original, stats: s, nearest: null, least: null, compared: null, other: original};
  if (!verdict.isDuplicate && mine) {
    known.least = leastSimilarity(s);
    const found = await similar({...mine}, {limit: 2, similarity: known.least}, signal);
    known.nearest = found.results.find(one => one.id !== verdict.id) || null;
    if (known.nearest) known.other = await orNull(get(known.nearest.id, signal));
  }
  const theirs = mine && sideOf(known.other);
  if (!theirs) known.note = whyNoTexts(mine, known);
  if (theirs) {
    known.compared = await compare({a: theirs, b: mine}, signal);
    known.texts = [known.compared.textA || theirs.text, known.compared.textB || mine.text];
  }
  return known;
}

function differencesCard({compared, texts, other, nearest}) {
  if (!compared) return null;
  const title = nearest ? "the nearest" : "the original";
  return card(
    "How the two differ",
    twoTexts({title, name: other.title || other.id, text: texts[0]}, {title: "this one", text: texts[1]}, compared),
  );
}

// The stored copy of a verdict, if it was stored by this add, after the document of the number `last`; else null: it was
// only counted.
async function storedCopy({verdict, stats: s}, last, signal) {
  if (!verdict.isDuplicate || s.onDuplicate === "skip" || verdict.id === verdict.originalId) return null;
  const stored = await orNull(get(verdict.id, signal));
  return stored && stored.id === verdict.id && stored.originalId && stored.number > last ? stored : null;
}

// What an add did, in a sentence, with Undo where it stored something.
async function addedLine(known, last, signal) {
  const {verdict} = known,
    place = box("place"),
    link = documentLink(verdict.id);
  if (verdict.known) return el("p", {class: "said"}, "Nothing was added: it is already in the index, as ", link, ".");
  if (verdict.replaced) return el("p", {class: "said"}, "It replaced the earlier version, as ", link, ".");
  const copy = verdict.isDuplicate,
    stored = await storedCopy(known, last, signal);
  if (copy && !stored)
    return el(
      "p",
      {class: "said"},
      verdict.id === verdict.originalId
        ? "The same document again: counted as a copy of its original, and not stored again."
        : "Counted as a copy of its original, and not stored itself.",
    );
  const line = box("line added", el("p", {class: "said"}, copy ? "Counted as a copy of its original, and stored as " : "Added as ", link, "."));
  const undo = button("Undo", () =>
    working(undo, place, async () => {
      await remove(verdict.id, signal);
      forgetText(verdict.id);
      const said = `Removed.${copy ? " Its original still counts it as a copy." : ""}`;
      line.replaceChildren(el("p", {class: "said"}, said));
      announce(said);
    }),
  );
  line.append(undo);
  return box("adding", line, place);
}

function addCard(verdict, again) {
  if (!may("write")) return null;
  const about = verdict.isDuplicate
    ? "Add it to count it as a copy of its original."
    : "Add it, and later copies will be recognised.";
  return card(
    "Add it?",
    soft(`So far it was only checked. ${about}`),
    el("button", {type: "button", class: "first", on: {click: again}}, "Add it"),
  );
}

async function run(asked, place, adds, signal) {
  const body = documentOf(asked);
  if (!body) {
    outcome(
      place,
      problemCard({title: "Nothing to check", message: "Enter a text, a page, a title or a URL."}),
    );
    return;
  }
  if (!asked.url.checkValidity()) {
    outcome(place, problemCard({title: "This URL is not complete", message: "An address begins with https://"}));
    return;
  }
  const last = adds ? (await stats(signal)).last : 0;
  const verdict = await (adds ? add(body, signal) : check(body, signal));
  if (adds && !verdict.isDuplicate && !verdict.known && (body.text || body.html))
    rememberText(verdict.id, body.html ? {html: body.html} : {text: body.text});
  const known = await learn(body, verdict, signal);
  const near = body.text || body.html ? await nearSection({body: {...body, id: undefined}, but: verdict.id}, signal) : null;
  const again = event => working(event.currentTarget, place, () => run(asked, place, true, signal));
  outcome(
    place,
    verdictCard({...known, said: adds ? await addedLine(known, last, signal) : null}),
    differencesCard(known),
    !adds && addCard(verdict, again),
    near,
  );
  announce(inWords(verdictOf(known)));
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
    el("h1", null, "Check a document"),
    lead(
      "Is it a copy of a known document? Paste a text or a page, or drop a file. To try it, fill in ",
      el("span", {class: "together"}, example("an article", EXAMPLE), ","),
      " add it, and then ",
      el("span", {class: "together"}, example("its second version", SECOND), "."),
    ),
    form(
      {class: "card"},
      () => working(checkIt, place, () => run(asked, place, false, signal)),
      asked.text.box,
      box(
        "three",
        field("Title", asked.title),
        field("URL", asked.url),
        field("Id", asked.id, "If empty, it is made from the URL or the text."),
      ),
      box("buttons", checkIt, may("write") && addIt),
      !may("write") && needs("write", "Adding a document"),
    ),
    place,
  );
}
