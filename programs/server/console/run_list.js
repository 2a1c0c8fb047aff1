// The runs that the server holds, from this tab, other tabs and programs: each can be opened or deleted.
import {deleteRun, orNull, runs} from "./api.js";
import {confirm} from "./dialogs.js";
import {announce, box, button, card, el, name, plain, soft} from "./dom.js";
import {clock, count, many, time} from "./format.js";
import {working} from "./problem.js";
import {session} from "./session.js";

// Deletes a run if the user agrees; resolves with whether it was deleted.
export async function deleteAsked(id, file, signal) {
  if (!(await confirm(`Delete ${plain(file)}?`, "Its results are deleted too, here and in other tabs.", "Delete"))) return false;
  await orNull(deleteRun(id, signal));
  if (session.run === id) session.run = null;
  announce("Deleted");
  return true;
}

const STATES = {
  receiving: () => "being sent",
  analysing: () => "being analysed",
  done: run => `${many(run.documents, "document")}, ${count(run.removed)} removed`,
  failed: () => "failed",
};

function row(run, gone, signal) {
  const place = box("place"),
    erase = button("Delete", () =>
      working(erase, place, async () => {
        if (await deleteAsked(run.id, run.name, signal)) gone();
      }),
    );
  erase.className = "small";
  erase.setAttribute("aria-label", `Delete ${run.name}`);
  return el(
    "li",
    null,
    box("line", el("a", {href: `#/dedup/${run.id}`}, name(run.name)), box("buttons", erase)),
    soft(
      [
        STATES[run.state](run),
        run.created && `sent ${time(run.created)}`,
        run.expires && `will be deleted at ${clock(run.expires)}`,
      ]
        .filter(Boolean)
        .join(" · "),
    ),
    place,
  );
}

// A card with the list; "" if there are none.
export async function runList(signal) {
  const found = (await runs(signal)).runs;
  if (!found.length) return "";
  const list = el("ul", {class: "documents"}),
    made = card("Files on this server", list);
  list.append(
    ...found.map(run => {
      const one = row(run, () => (list.childElementCount > 1 ? one.remove() : made.remove()), signal);
      return one;
    }),
  );
  return made;
}
