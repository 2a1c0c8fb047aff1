// A document: its details, its copies, similar documents; and a button that removes it.
import {get, orNull, remove, stats} from "./api.js";
import {confirm} from "./dialogs.js";
import {box, card, el, facts, name, needs, plain, soft} from "./dom.js";
import {verdictOf} from "./explain.js";
import {count, many, time} from "./format.js";
import {bothTexts, copiesCard} from "./members.js";
import {nearSection} from "./near.js";
import {working} from "./problem.js";
import {scaleOf} from "./scale.js";
import {forgetText, may, session} from "./session.js";
import {evidenceTable, folded, verdictSection} from "./verdict.js";

// Only addresses of the web become links.
function address(url) {
  if (!url) return null;
  return /^https?:\/\//i.test(url)
    ? el("a", {href: url, rel: "noreferrer noopener", target: "_blank"}, name(url))
    : name(url);
}

function about(d) {
  const kept = Object.entries(d.fields).map(([key, value]) => [
    key,
    plain(typeof value === "object" ? JSON.stringify(value) : value),
  ]);
  return card(
    "Details",
    facts([
      ["Id", name(d.id)],
      ["URL", address(d.url)],
      ["Canonical URL", d.canonicalUrl && d.canonicalUrl !== d.url ? name(d.canonicalUrl) : null],
      ["Added", time(d.added)],
      ["Expires", d.expires ? time(d.expires) : "never"],
      ["Words", count(d.words)],
      ["Copies", d.originalId ? null : d.duplicates ? `${count(d.duplicates)}, the last ${time(d.lastDuplicate)}` : "none"],
      ["Fingerprint", el("code", null, d.fingerprint)],
      ["Digest", d.digest && el("code", null, d.digest)],
      ["Number", count(d.number)],
      ...kept,
    ]),
  );
}

async function copyOf(d, signal) {
  if (!d.originalId) return "";
  const [original, s] = await Promise.all([orNull(get(d.originalId, signal)), stats(signal)]),
    {compared, made} = original
      ? await bothTexts(original, d, "differences", signal)
      : {compared: null, made: soft("Its original, ", name(d.originalId), ", is no longer in the index.")};
  return verdictSection(
    verdictOf({verdict: {isDuplicate: true, reason: d.reason, evidence: d.evidence}, original, compared}),
    true,
    d.reason === "content_hash" && scaleOf(d.evidence, s),
    made,
    folded("Measures", evidenceTable(d.evidence)),
  );
}

async function removeDocument(d, signal) {
  const copies = d.copies
    ? ` ${many(d.copies, "copy", "copies")} will be removed with it.`
    : "";
  if (
    !(await confirm(
      "Remove this document?",
      `Copies of it that come later will count as new documents.${copies} This cannot be undone.`,
      "Remove",
    ))
  )
    return;
  await remove(d.id, signal);
  forgetText(d.id);
  session.said = `Removed: ${plain(d.title || d.url || d.id)}.`;
  location.hash = "#/find";
}

export async function show(root, route, signal) {
  const d = await get(route.rest, signal);
  const place = box("place");
  const button = el(
    "button",
    {type: "button", class: "danger", on: {click: () => working(button, place, () => removeDocument(d, signal))}},
    "Remove this document",
  );
  root.append(
    el("p", {class: "back"}, el("a", {href: "#/find"}, "Find another")),
    el("h1", null, name(d.title || d.url || d.id)),
    await copyOf(d, signal),
    about(d),
  );
  root.append(await copiesCard(d, await stats(signal), signal));
  root.append(await nearSection({id: d.id, title: "Similar documents"}, signal));
  if (d.text)
    root.append(
      el(
        "section",
        {class: "card"},
        el("h2", {id: "kept-text"}, "Text"),
        el(
          "div",
          {class: "text", tabindex: 0, role: "region", "aria-labelledby": "kept-text", dir: "auto"},
          plain(d.text),
        ),
      ),
    );
  root.append(may("write") ? box("buttons", button) : needs("write", "Removing a document"), place);
}
