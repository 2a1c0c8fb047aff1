// The fields of a file of records (CSV, TSV, JSONL, JSON), read from its beginning, and a form that asks which of them
// has the text and which the id.
import {box, card, el, field, form, name, options, plain, soft, table} from "./dom.js";

// What the server takes for the text if no field is chosen.
const KNOWN = ["text", "html"];
// Characters that are read, records that are looked at, and values that are shown.
const READ = 64 << 10,
  RECORDS = 20,
  SHOWN = 2;

// The first characters of a file, unpacked where the browser can.
async function beginningOf(file) {
  const packed = /\.(gz|gzip)$/i.test(file.name);
  let stream = file.slice(0, READ).stream();
  if (packed) stream = stream.pipeThrough(new DecompressionStream("gzip"));
  const reader = stream.getReader(),
    decoder = new TextDecoder();
  let text = "";
  try {
    while (text.length < READ) {
      const {done, value} = await reader.read();
      if (done) break;
      text += decoder.decode(value, {stream: true});
    }
  } catch {
    // Only the beginning of a compressed file is read: an error at its end is expected.
  }
  reader.cancel().catch(() => {});
  return text;
}

// Rows of cells; the last one, which may be cut, is left out unless it is the only one.
function rowsOf(text) {
  const rows = [[]];
  const tab = text.indexOf("\t"),
    line = text.indexOf("\n"),
    delimiter = tab >= 0 && (line < 0 || tab < line) ? "\t" : ",";
  const cell = new RegExp(`"((?:[^"]|"")*)"[^${delimiter}\n]*|([^${delimiter}\r\n]*)`, "y");
  for (let at = 0; rows.length <= RECORDS + 2; ) {
    cell.lastIndex = at;
    const [whole, quoted, bare] = cell.exec(text);
    rows.at(-1).push(quoted === undefined ? bare : quoted.replaceAll('""', '"'));
    at += whole.length;
    if (text[at] === "\r") at++;
    if (at >= text.length) break;
    if (text[at++] === "\n") rows.push([]);
  }
  return rows.length > 1 ? rows.slice(0, -1) : rows;
}

// The objects at the top of a text, whether one a line or in an array.
function objectsOf(text) {
  const found = [];
  let depth = 0,
    from = 0;
  for (const {0: token, index} of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}]/gs)) {
    if (token === "{" && depth++ === 0) from = index;
    if (token !== "}" || --depth !== 0) continue;
    try {
      found.push(JSON.parse(text.slice(from, index + 1)));
    } catch {
      return found;
    }
    if (found.length === RECORDS) break;
  }
  return found;
}

// [name, value] of an object, those of objects in it as paths.
const flat = (object, path = "") =>
  Object.entries(object).flatMap(([key, value]) =>
    value && typeof value === "object" && !Array.isArray(value)
      ? flat(value, `${path}${key}.`)
      : [[path + key, value === null ? "" : typeof value === "string" ? value : JSON.stringify(value)]],
  );

function recordsOf(text, name) {
  if (/\.(csv|tsv|tab)$/i.test(name)) {
    const [heads, ...rows] = rowsOf(text);
    return rows.length ? rows.map(row => heads.map((head, i) => [head, row[i] || ""])) : [heads.map(head => [head, ""])];
  }
  return /^\s*\[?\s*\{/.test(text) ? objectsOf(text).map(object => flat(object)) : [];
}

// [{name, values}], the values of the first records; null: it is no file of records, or packed in a way that only the
// server can unpack.
export async function fieldsOf(file) {
  const text = (await beginningOf(file)).replace(/^\ufeff/, ""),
    found = new Map();
  for (const record of recordsOf(text, file.name.replace(/\.(gz|gzip)$/i, "")))
    for (const [key, value] of record) found.set(key, [...(found.get(key) || []), value]);
  return found.size ? [...found].map(([key, values]) => ({name: key, values})) : null;
}

// The fields that the server takes by itself: {text, id}, each undefined where it finds none.
export function usualFields(fields) {
  const has = name => fields.some(one => one.name === name);
  return {text: KNOWN.find(has), id: has("id") ? "id" : undefined};
}

// ---- the form ----

// How long its values are on average, as the browser has seen them, or the server.
const length = one =>
  one.values.length ? one.values.reduce((sum, value) => sum + value.length, 0) / one.values.length : one.bytes || 0;
const longest = fields => fields.reduce((best, one) => (length(one) > length(best) ? one : best));
const beginning = value => (value.length > 120 ? `${value.slice(0, 120)} …` : value);

function fieldTable(fields, chosen) {
  const rows = fields.map((one, i) => {
    const input = el("input", {type: "radio", name: "text-field", id: `text-field-${i}`, checked: one.name === chosen}),
      values = [...new Set(one.values.filter(Boolean))].slice(0, SHOWN);
    return [
      el("label", {class: "choice"}, input, " ", name(one.name)),
      values.length ? values.map(value => el("div", {class: "sample"}, name(beginning(value)))) : soft("–"),
    ];
  });
  const made = table("Its fields, and what its first records have in them", ["Field", "First values"], rows);
  made.classList.add("fields");
  return made;
}

// Asks which of the fields of a file has the text, and which the id; take({textKey, idKey}) is called with what was
// chosen, undefined for the default. chosen: what was chosen before, or {}.
export function chooser(file, fields, chosen, take) {
  const usual = usualFields(fields),
    list = fieldTable(fields, chosen.textKey ?? usual.text ?? longest(fields).name),
    ids = fields.map(one => [one.name, plain(one.name)]);
  const id = el(
    "select",
    null,
    options(usual.id ? ids : [["", "the number of the line"], ...ids], chosen.idKey ?? usual.id ?? ""),
  );
  const unlessUsual = (picked, one) => (picked === one || picked === "" ? undefined : picked);
  const submit = () => {
    const at = [...list.querySelectorAll("input")].findIndex(input => input.checked);
    take({textKey: unlessUsual(fields[at].name, usual.text), idKey: unlessUsual(id.value, usual.id)});
  };
  return card(
    "Which field has the text?",
    el("p", null, !usual.text && ["No field of ", name(file.name), " is called text or html. "], "Copies are found by this field alone."),
    form(
      null,
      submit,
      box("scrolls", list),
      box("narrow", field("The id of a document", id)),
      box("buttons", el("button", {type: "submit", class: "first"}, "Find copies")),
    ),
  );
}
