// The fields of a file of records (CSV, TSV, JSONL, JSON), read from its beginning, and a form that asks which of them
// have the text and which the id.
import {box, button, card, el, field, form, name, options, plain, soft, table} from "./dom.js";
import {count, many} from "./format.js";
import {problemCard} from "./problem.js";

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

const PACKED = /\.(gz|gzip|zst|zstd|bz2|xz)$/i;
export const isPacked = file => PACKED.test(file.name);
const DELIMITERS = ["\t", ",", ";", "|"];

// What separates the cells of a CSV file: of these, the first that its header has outside of quotes.
function delimiterOf(text) {
  const found = new Set();
  let quoted = false,
    before = ",";
  for (const sign of text) {
    if (sign === '"' && (quoted || before === '"' || DELIMITERS.includes(before))) quoted = !quoted;
    else if (!quoted && sign === "\n") break;
    else if (!quoted && DELIMITERS.includes(sign)) found.add(sign);
    before = sign;
  }
  return DELIMITERS.find(one => found.has(one)) || ",";
}

// Rows of cells; the last one, which may be cut, is left out unless it is the only one.
function rowsOf(text, delimiter) {
  const rows = [[]];
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

const isTableName = name => /\.(csv|tsv|tab)$/i.test(name);

// The ending of the file of kept documents: rows of a table stay rows.
export function endingOf(name) {
  const bare = name.replace(PACKED, "");
  return !isTableName(bare) ? ".jsonl" : /\.csv$/i.test(bare) ? ".csv" : ".tsv";
}
// Its name without the endings of its format and its compression.
export const stemOf = name => name.replace(PACKED, "").replace(/(.)\.[^.]*$/, "$1");

function recordsOf(text, name) {
  if (isTableName(name)) {
    const [heads, ...rows] = rowsOf(text, /\.csv$/i.test(name) ? delimiterOf(text) : "\t");
    return rows.length ? rows.map(row => heads.map((head, i) => [head, row[i] || ""])) : [heads.map(head => [head, ""])];
  }
  return /^\s*\[?\s*\{/.test(text) ? objectsOf(text).map(object => flat(object)) : [];
}

const firstRecords = async file =>
  recordsOf((await beginningOf(file)).replace(/^\ufeff/, ""), file.name.replace(/\.(gz|gzip)$/i, ""));

// Whether a file is one of several documents, by its name or its beginning.
export const hasSeveral = async file =>
  /\.(csv|tsv|tab|jsonl|ndjson|warc|arc|mbox)$/i.test(file.name.replace(PACKED, "")) || (await firstRecords(file)).length > 1;

// [{name, values}], the values of the first records; null: it is no file of records, or packed in a way that only the
// server can unpack.
async function fieldsOf(file) {
  const found = new Map();
  for (const record of await firstRecords(file))
    for (const [key, value] of record) found.set(key, [...(found.get(key) || []), value]);
  return found.size ? [...found].map(([key, values]) => ({name: key, values})) : null;
}

// Files of an archive whose fields are looked at.
const LOOKED_AT = 20;
const RECORDS_NAME = /\.(csv|tsv|tab|jsonl|ndjson|json)$/i;

// Of several files, [{path, file}]: {fields, tables, lacks}, the fields of those with names of records, null if none is a
// file of records; these files, as [{path, fields, isRows}]; and whether one of them has no field that the server takes for
// the text.
export async function fieldsOfSeveral(files) {
  const found = new Map(),
    isTable = ({file}) => files.length === 1 || RECORDS_NAME.test(file.name.replace(PACKED, "")),
    tables = [];
  for (const {path, file} of files.filter(isTable).slice(0, LOOKED_AT)) {
    const fields = await fieldsOf(file);
    if (fields) tables.push({path, fields, isRows: isTableName(file.name.replace(PACKED, ""))});
    for (const {name, values} of fields || []) found.set(name, [...(found.get(name) || []), ...values]);
  }
  return {
    fields: found.size ? [...found].map(([key, values]) => ({name: key, values})) : null,
    tables,
    lacks: lacking(tables, []).length > 0,
  };
}

// The tables without the fields that were chosen; none: the usual ones. A table of rows needs all of them, another file one.
function lacking(tables, picked) {
  const has = ({fields, isRows}) => {
    const is = key => fields.some(one => one.name === key);
    return !picked.length ? usualFields(fields).text : isRows ? picked.every(is) : picked.some(is);
  };
  return tables.filter(one => !has(one));
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

// The names of the fields that a key stands for: a field of this name, or several.
export const keyFields = (key, fields) =>
  fields.some(one => one.name === key) ? [key] : key.split(",").map(one => one.trim());

function fieldTable(fields, chosen) {
  const rows = fields.map((one, i) => {
    const input = el("input", {type: "checkbox", id: `text-field-${i}`, checked: chosen.includes(one.name)}),
      values = [...new Set(one.values.filter(Boolean))].slice(0, SHOWN);
    return [
      el("label", {class: "choice"}, input, " ", name(one.name)),
      values.length ? values.map(value => el("div", {class: "sample"}, name(beginning(value)))) : soft("–"),
    ];
  });
  const made = table("The fields, with values of the first records", ["Field", "First values"], rows);
  made.classList.add("fields");
  return made;
}

// Why a choice of fields cannot be used; null: it can.
function refusalOf(picked) {
  if (!picked.length) return "Choose one or more fields.";
  const comma = picked.find(one => one.includes(","));
  return picked.length > 1 && comma !== undefined
    ? `A field with a comma in its name cannot be combined with others: ${plain(comma)}`
    : null;
}

// The names of the first few files.
const FILES_NAMED = 3;
const filesNamed = tables => [
  tables.slice(0, FILES_NAMED).flatMap(({path}, i) => (i ? [", ", name(path)] : [name(path)])),
  tables.length > FILES_NAMED && ` and ${many(tables.length - FILES_NAMED, "more file")}`,
  tables.length > 1 ? " have" : " has",
];

// Says which of several files lack the fields that were chosen, and offers to leave them out.
function lackCards(lack, picked, isAll, leaveOut) {
  const wanted = picked.length > 1 ? ["none or not all of the fields ", name(picked.join(", "))] : ["no field named ", picked.length ? name(picked[0]) : "text or html"],
    one = lack.length === 1;
  return [
    problemCard({title: "A field is missing", message: [filesNamed(lack), " ", wanted, "."]}),
    !isAll && button(one ? "Leave this file out" : `Leave these ${count(lack.length)} files out`, leaveOut),
  ];
}

// Asks which of the fields of a file have the text, and which the id; take({textKey, idKey}) is called with what was
// chosen, undefined for the default. `what`, as page_dedup.js has it, has what was chosen before, or no keys. leaveOut(paths,
// keys) is called to do without some of several files.
export function chooser(what, take, leaveOut) {
  const {file, fields, keys: chosen, several, tables = [], members = []} = what;
  const usual = usualFields(fields),
    list = fieldTable(fields, keyFields(chosen.textKey ?? usual.text ?? longest(fields).name, fields)),
    place = box("place"),
    ids = fields.map(one => [one.name, plain(one.name)]);
  const id = el(
    "select",
    null,
    options(usual.id ? ids : [["", "the line number"], ...ids], chosen.idKey ?? usual.id ?? ""),
  );
  const unlessUsual = (picked, one) => (picked === one || picked === "" ? undefined : picked);
  const keysOf = picked => ({textKey: unlessUsual(picked.join(","), usual.text), idKey: unlessUsual(id.value, usual.id)});
  // Whether one of several files lacks what was chosen, which is said then.
  const lacks = picked => {
    const own = picked.length === 1 && picked[0] === usual.text ? [] : picked,
      lack = members.length ? lacking(tables, own) : [],
      paths = lack.map(one => one.path);
    if (lack.length) place.replaceChildren(...lackCards(lack, own, lack.length === members.length, () => leaveOut(paths, keysOf(picked))).filter(Boolean));
    return lack.length > 0;
  };
  const submit = () => {
    const boxes = [...list.querySelectorAll("input")],
      picked = fields.filter((_, i) => boxes[i].checked).map(one => one.name),
      refusal = refusalOf(picked);
    if (refusal) place.replaceChildren(problemCard({title: "Which field contains the text?", message: refusal}));
    else if (!lacks(picked)) take(keysOf(picked));
  };
  if (usual.text && !chosen.textKey) lacks([usual.text]);
  return card(
    "Which field contains the text?",
    el("p", null, !usual.text && ["No field of ", several ? "these files" : name(file.name), " is named text or html. "], "Only the text is compared. If you choose several fields, their values are joined."),
    form(
      null,
      submit,
      box("scrolls", list),
      box("narrow", field("Document id", id)),
      box("buttons", el("button", {type: "submit", class: "first"}, "Find copies")),
    ),
    place,
  );
}
