// Index: its settings, contents and maintenance; all indexes of the server.
import {backup, compact, dropIndex, expire, indexes, stats} from "./api.js";
import {confirm} from "./dialogs.js";
import {announce, box, card, el, facts, needs, soft, table} from "./dom.js";
import {
  DUPLICATES,
  DURABILITY,
  nearInWords,
  perDocument,
  planInWords,
  presetInWords,
  recipeInWords,
  rememberedFor,
} from "./explain.js";
import {bytes, count, many, percent, seconds, time} from "./format.js";
import {createForm} from "./create_index.js";
import {working} from "./problem.js";
import {may, session} from "./session.js";

function titlesInWords(s) {
  if (!s.titles) return "are not compared";
  const veto = s.titleVeto ? ", unless the texts are quite different" : "";
  return `A document whose title is at least ${percent(s.titleSimilarity)} similar is a copy${veto}`;
}

function made(s) {
  return card(
    "How it finds copies",
    facts([
      ["Preset", presetInWords(s.preset)],
      ["Recipe", recipeInWords(s.recipe), el("br"), el("code", null, s.recipe)],
      ["Near", nearInWords(s)],
      ["Short texts", `With fewer than ${many(s.minWords, "word")}, a text is a copy only if its words are the same`],
      ["Titles", titlesInWords(s)],
      ["Plan", planInWords(s)],
      ["Copies", DUPLICATES[s.onDuplicate] || s.onDuplicate],
      ["Texts", s.keepText ? "are kept, compressed" : "are not kept"],
      ["Remembered", rememberedFor(s.ttl)],
      ["Durability", DURABILITY[s.durability] || s.durability],
    ]),
  );
}

function sizes(s) {
  const memory = size => [bytes(size), perDocument(size, s.documents)].filter(Boolean).join(", ");
  return card(
    "Contents",
    facts([
      ["Documents", `${count(s.documents)} and ${many(s.copies, "copy", "copies")}`],
      ["Added", s.oldest ? `${time(s.oldest)} to ${time(s.newest)}` : "none yet"],
      ["On disk", `${bytes(s.diskBytes)}, of which ${bytes(s.freeBytes)} are free`],
      ["In memory", memory(s.memoryBytes)],
      ["Keys in memory", `${bytes(s.keysBytes)} for ids, URLs and digests`],
      ["Content in memory", `${bytes(s.nearBytes)} for fingerprints or signatures`],
      ["Titles in memory", bytes(s.titleBytes)],
      ["Commits", `${count(s.commits)}${s.failedCommits ? `, and ${count(s.failedCommits)} that failed` : ""}`],
      ["Damaged records", s.damaged ? count(s.damaged) : "none"],
      ["Opened", `${seconds(s.uptimeSeconds)} ago, in ${s.openSeconds.toFixed(1)} s`],
      ["Version", s.version],
    ]),
  );
}

function action(right, title, text, verb, work) {
  if (!may(right)) return box("action", el("h3", null, title), soft(text), needs(right, "This"));
  const place = box("place");
  const act = el("button", {type: "button"}, verb);
  act.addEventListener("click", () =>
    working(act, place, async () => {
      const said = await work();
      if (!said) return;
      place.replaceChildren(el("p", {class: "done"}, said));
      announce(said);
    }),
  );
  return box("action", el("h3", null, title), soft(text), act, place);
}

function actions(signal) {
  return card(
    "Maintenance",
    box(
      "three",
      action(
        "admin",
        "Back up",
        "Writes a complete copy to the server's backup folder, while the server keeps running.",
        "Back up now",
        async () => {
          const answer = await backup(signal);
          return `Backed up to ${answer.name}, ${bytes(answer.bytes)}.`;
        },
      ),
      action(
        "write",
        "Remove expired documents",
        "They no longer match; this frees their space at once.",
        "Remove expired",
        async () => `${many((await expire(signal)).expired, "document")} removed.`,
      ),
      action("admin", "Compact", "Makes the file as small as possible. The index stays in use.", "Compact", async () => {
        if (
          !(await confirm(
            "Compact this index?",
            "The index stays in use. A large one takes a while.",
            "Compact",
          ))
        )
          return null;
        await compact(signal);
        return "Compacted.";
      }),
    ),
  );
}

function choose(name, isDefault) {
  session.index = isDefault ? null : name;
  document.dispatchEvent(new Event("index"));
}

async function drop(one, signal) {
  if (
    !(await confirm(
      `Drop the index ${one.name}?`,
      `${many(one.documents, "document")} will be deleted. This cannot be undone.`,
      "Drop it",
    ))
  )
    return;
  await dropIndex(one.name, signal);
  if (session.index === one.name) session.index = null;
  document.dispatchEvent(new Event("index"));
}

function all(list, current, signal) {
  const place = box("place");
  const rows = list.map((one, i) => [
    one.name,
    count(one.documents),
    bytes(one.diskBytes),
    box(
      "buttons",
      one.name === current
        ? el("span", {class: "soft"}, "shown")
        : el(
            "button",
            {
              type: "button",
              class: "small",
              "aria-label": `Show the index ${one.name}`,
              on: {click: () => choose(one.name, i === 0)},
            },
            "Show",
          ),
      i > 0 &&
        may("admin") &&
        el(
          "button",
          {
            type: "button",
            class: "small",
            "aria-label": `Drop the index ${one.name}`,
            on: {click: event => working(event.currentTarget, place, () => drop(one, signal))},
          },
          "Drop",
        ),
    ),
  ]);
  const listed = table("The indexes of this server", ["Name", "Documents", "Size", "Actions"], rows, [1, 2]);
  listed.classList.add("indexes");
  return card("All indexes", listed, place, may("admin") ? createForm(choose, signal) : needs("admin", "Creating and dropping indexes"));
}

export async function show(root, route, signal) {
  const [s, list] = await Promise.all([stats(signal), indexes(signal)]);
  root.append(
    el("h1", null, `Index ${s.index}`),
    box("two", made(s), sizes(s)),
    actions(signal),
    all(list.indexes, s.index, signal),
  );
}
