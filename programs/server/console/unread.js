// The files and records of a run that could not be read, each with the reason.
import {button, card, el, name, soft, table} from "./dom.js";
import {count, many} from "./format.js";

const placeOf = ({file, line}) => [name(file), line === null ? "" : `, record ${count(line)}`];

const FIRST = 10; // that are shown until more are asked for

// null: all were read.
export function unreadCard({unread, bad, archive}) {
  if (!unread.length) return null;
  const place = el("div", {class: "scrolls"}),
    rows = unread.map(one => [placeOf(one), name(one.why)]);
  const lay = shown => {
    const made = table("What could not be read", [archive ? "File" : "Record", "Reason"], shown);
    made.classList.add("unread");
    place.replaceChildren(made);
  };
  lay(rows.slice(0, FIRST));
  const more = rows.length > FIRST && button(`Show ${count(rows.length)}`, () => {
    lay(rows);
    more.remove();
  }, {class: "more"});
  return card(
    `Not read: ${many(Math.max(bad, unread.length), archive ? "file or record" : "record", archive ? "files or records" : "records")}`,
    place,
    more,
    bad > unread.length && soft(`Reasons are known for ${count(unread.length)} of them.`),
  );
}

// Whether the command reads what the server does not, so that it may give another result.
export const commandReadsMore = ({unread}) => unread.some(one => one.commandMayRead);
