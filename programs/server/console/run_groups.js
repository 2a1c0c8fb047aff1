// The groups of a run at a threshold, a page at a time; and why one of its documents is removed.
import {compare, runDocument, runGroups, runPair} from "./api.js";
import {groupSummary} from "./clusters.js";
import {announce, box, button, el, field, form, name, outcome, plain, soft} from "./dom.js";
import {count, many, percent, share} from "./format.js";
import {working} from "./problem.js";
import {digits} from "./terminal.js";
import {twoTexts} from "./two_texts.js";
import {expander} from "./verdict.js";

const FIRST_GROUPS = 8;

// The title may be the beginning of the text, cut anywhere.
export const titleOf = one =>
  one.title.length > 100 ? `${one.title.slice(0, 100).replace(/\s+\S*$/, "")} …` : one.title || one.id;

// A kept document and a copy of it, by their numbers, with the text that they share shaded.
async function bothTexts(runId, kept, copy, signal, sides = false) {
  const {a, b} = await runPair(runId, kept, copy, signal),
    compared = await compare({a: {text: a.text}, b: {text: b.text}}, signal);
  return [
    (a.cut || b.cut) && soft("Only the beginning of each text is shown."),
    twoTexts(
      {title: "the kept document", name: a.title || a.id, text: a.text},
      {title: "this copy", name: b.title || b.id, text: b.text},
      compared,
      {show: "shared", sides},
    ),
  ].filter(Boolean);
}

function copiesOf(group, runId, signal) {
  const rows = group.copies.map(copy => {
    const {toggle, place} = expander(() => bothTexts(runId, group.number, copy.number, signal));
    return el(
      "li",
      null,
      box("line", name(titleOf(copy)), box("buttons", el("span", {class: "score"}, share(copy.similarity)), toggle)),
      soft(name(copy.id)),
      place,
    );
  });
  const rest = group.size - 1 - group.copies.length;
  return [el("ul", {class: "documents"}, rows), rest > 0 && soft(`And ${count(rest)} more.`)];
}

const groupCard = (group, runId, signal) =>
  el(
    "details",
    {class: "card group", "data-number": group.number},
    groupSummary(
      group.size,
      el("h3", null, name(titleOf(group))),
      `${many(group.size, "document")}, ${count(group.size - 1)} removed. Kept: `,
      name(group.id),
    ),
    box("inner", ...copiesOf(group, runId, signal).filter(Boolean)),
  );

// Fills `list` with the groups of an answer of the server, and a button for those after them.
export function listGroups(list, found, runId, signal) {
  const rest = [...found.largest],
    shown = el("span", {class: "soft"}),
    place = box("place"),
    more = button("Show more groups", () => working(more, place, add), {class: "more"}),
    foot = el("div", null, box("buttons pages", more, shown), place);
  let next = found.next,
    listed = 0;
  const put = groups => {
    foot.before(...groups.map(group => groupCard(group, runId, signal)));
    listed += groups.length;
    shown.textContent = `${count(listed)} of ${count(found.groups)}`;
    foot.hidden = !rest.length && !next;
  };
  async function add() {
    if (!rest.length) {
      const page = await runGroups(runId, {similarity: digits(found.similarity), cursor: next}, signal);
      if (!foot.isConnected) return; // another threshold was chosen
      rest.push(...page.largest);
      next = page.next;
    }
    put(rest.splice(0));
    announce(shown.textContent);
  }
  list.replaceChildren(foot);
  put(rest.splice(0, FIRST_GROUPS));
}

// ---- why a document is removed ----

function inWords(found) {
  const at = percent(found.similarity),
    numbered = number => found.id === found.originalId && ` (document ${count(number + 1)})`;
  if (!found.kept)
    return [
      name(found.id),
      numbered(found.number),
      ` is removed at ${at}: it is ${share(found.originalSimilarity)} similar to `,
      name(found.originalId),
      numbered(found.originalNumber),
      ", which is kept.",
    ];
  return found.group
    ? [name(found.id), ` is kept at ${at}, and ${many(found.group.size - 1, "copy", "copies")} of it ${found.group.size > 2 ? "are" : "is"} removed.`]
    : [name(found.id), ` is kept: at ${at} it is not a copy of any other document.`];
}

const SUGGESTED = 5;

// Of the ids that are known, those that end in what was asked for: it may be the name of a file without its folder.
const endingIn = (asked, ids) => [...ids].filter(id => id.endsWith(`/${asked}`)).slice(0, SUGGESTED);

// A form that asks for a document by its id. threshold(): which one is chosen; ids(): a set of those that are known.
// {box, again()}; again() asks once more.
export function whyForm(runId, threshold, ids, signal) {
  const input = el("input", {type: "search", autocomplete: "off", spellcheck: "false", dir: "auto"}),
    place = box("place"),
    submit = el("button", {type: "submit"}, "Why?");
  let asked = "";
  const answer = async () => {
    const found = await runDocument(runId, {id: asked, similarity: digits(threshold()), copies: 100}, signal);
    return [
      el("h3", null, inWords(found)),
      ...(found.kept
        ? found.group
          ? copiesOf(found.group, runId, signal)
          : []
        : await bothTexts(runId, found.originalNumber, found.number, signal, !matchMedia("(max-width: 820px)").matches)),
    ];
  };
  const show = async put => {
    try {
      put(await answer());
    } catch (error) {
      if (error.kind !== "no-document") throw error;
      const meant = endingIn(asked, ids()).map(id => button(plain(id), () => (input.value = id) && ask(), {class: "link"}));
      put([
        el("h3", null, `No document in this file has the id ${plain(asked)}.`),
        meant.length && el("p", null, "Did you mean ", meant.flatMap((one, i) => (i ? [", ", one] : [one])), "?"),
      ]);
    }
  };
  const ask = () =>
    working(submit, place, async () => {
      asked = input.value.trim();
      if (asked) await show(made => outcome(place, ...made));
      else place.replaceChildren();
    });
  return {
    box: el(
      "section",
      {class: "card why"},
      form(
        {role: "search"},
        ask,
        field("Why was a document removed?", input, "Enter its id; a document without one has FILE:LINE."),
        box("buttons", submit),
      ),
      place,
    ),
    again: () => (asked ? show(made => place.replaceChildren(...made.filter(Boolean))) : undefined),
  };
}
