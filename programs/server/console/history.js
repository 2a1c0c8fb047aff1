// What an index has done, by the hour, as this browser has seen it: kept over reloads of the page and restarts of the
// server. Counters of the server begin at 0 when it starts; what is between two looks at them is added up here.
import {session} from "./session.js";

const HOUR = 3600 * 1000;
export const HOURS = 24;
const key = () => `doppel.history.${session.index || ""}`;

function read() {
  try {
    const kept = JSON.parse(localStorage.getItem(key()));
    return kept && typeof kept.hours === "object" && kept.hours ? kept : {hours: {}};
  } catch {
    return {hours: {}};
  }
}

function write(kept) {
  try {
    localStorage.setItem(key(), JSON.stringify(kept));
  } catch {
    // Without storage it lasts as long as the page.
  }
}

let held = {key: null, kept: null};

// Adds what was done since the last look, whichever page or server that was; gives [{label, value}], the oldest first;
// none while nothing was done.
export function remember(s) {
  if (held.key !== key()) held = {key: key(), kept: read()};
  const {kept} = held,
    done = s.checks + s.adds,
    hour = Math.floor(Date.now() / HOUR);
  // A server that was started since has done all of it since then.
  const started = Date.now() - 1000 * s.uptimeSeconds,
    again = !kept.last || Math.abs(kept.last.started - started) > 5000 || done < kept.last.done;
  const known = kept.last || s.uptimeSeconds < 3600;
  const since = again ? (known ? done : 0) : done - kept.last.done;
  kept.last = {started, done};
  kept.hours[hour] = (Number(kept.hours[hour]) || 0) + since;
  for (const old of Object.keys(kept.hours)) if (old <= hour - HOURS) delete kept.hours[old];
  write(kept);
  const hours = Array.from({length: HOURS}, (_, i) => {
    const at = hour - HOURS + 1 + i;
    return {label: `${String(new Date(at * HOUR).getHours()).padStart(2, "0")} h`, value: Number(kept.hours[at]) || 0};
  });
  return hours.some(one => one.value) ? hours : [];
}
