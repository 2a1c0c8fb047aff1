// The files and records of a run that could not be read, each with the reason.
import {card, el, name, soft, table} from "./dom.js";
import {count, many} from "./format.js";

const place = ({file, line}) => [name(file), line === null ? "" : `, record ${count(line)}`];

// null: all were read.
export function unreadCard({unread, bad, archive}) {
  const made = unread.length && table(
    "What could not be read",
    [archive ? "File" : "Record", "Reason"],
    unread.map(one => [place(one), name(one.why)]),
  );
  if (!made) return null;
  made.classList.add("unread");
  return card(
    `Not read: ${many(Math.max(bad, unread.length), archive ? "file or record" : "record", archive ? "files or records" : "records")}`,
    el("div", {class: "scrolls"}, made),
    bad > unread.length && soft(`The first ${count(unread.length)} are shown.`),
  );
}

// Whether the command reads what the server does not, so that it may give another result.
export const commandReadsMore = ({unread}) => unread.some(one => one.onlyHere);
