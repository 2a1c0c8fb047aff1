// What was dropped or chosen, as one body that POST /v1/runs takes: a file as it is; a folder, or several files, as a tar
// archive, so that the server reads each file as the command does.

async function filesBelow(entry, path, found) {
  if (entry.isFile) {
    found.push({path, file: await new Promise((resolve, reject) => entry.file(resolve, reject))});
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return;
    for (const one of some) await filesBelow(one, `${path}/${one.name}`, found);
  }
}

// ---- the archive ----

const BLOCK = 512,
  NAME = 100; // bytes of a name that a header has room for
const encoder = new TextEncoder();

// The header of an entry (POSIX ustar): what stands where.
function header(path, size, type) {
  const bytes = new Uint8Array(BLOCK);
  const put = (at, text) => bytes.set(encoder.encode(text), at),
    octal = (at, digits, number) => put(at, number.toString(8).padStart(digits, "0"));
  bytes.set(path.subarray(0, NAME), 0);
  octal(100, 7, 0o644);
  octal(108, 7, 0);
  octal(116, 7, 0);
  octal(124, 11, size);
  octal(136, 11, 0);
  put(148, "        "); // the checksum counts as blanks
  put(156, type);
  put(257, "ustar\u000000");
  octal(148, 6, bytes.reduce((sum, byte) => sum + byte, 0));
  bytes[154] = 0;
  return bytes;
}

const filled = size => new Uint8Array((BLOCK - (size % BLOCK)) % BLOCK);

// A record of the pax format begins with its own length, whose digits count.
function paxRecord(key, value) {
  const rest = encoder.encode(` ${key}=${value}\n`).length;
  let length = rest + String(rest).length;
  if (String(length).length + rest > length) length++;
  return encoder.encode(`${length} ${key}=${value}\n`);
}

function entryOf({path, file}) {
  const bytes = encoder.encode(path),
    pax = bytes.length > NAME ? paxRecord("path", path) : null,
    before = pax ? [header(encoder.encode("pax"), pax.length, "x"), pax, filled(pax.length)] : [];
  return [...before, header(bytes, file.size, "0"), file, filled(file.size)];
}

// {file, several, inputs, members}: the archive, as a file of the name that is shown; the names at its top, for the command; and
// the files in it, as [{path, file}]. The browser reads them while it sends the archive.
function archiveOf(found, name) {
  if (!found.length) throw {title: "Nothing to read", message: "The folder has no files."};
  const members = found.sort((x, y) => (x.path < y.path ? -1 : 1)),
    inputs = [...new Set(members.map(({path}) => path.split("/")[0]))],
    file = new File([...members.flatMap(entryOf), new Uint8Array(2 * BLOCK)], name);
  return {file, several: true, inputs, members};
}

// The same without some of its files.
export const without = ({file, members}, paths) => archiveOf(members.filter(one => !paths.includes(one.path)), file.name);

// One file, as it is.
const single = file => ({file, several: false, inputs: [file.name], members: []});

async function fromDrop(transfer) {
  const entries = [...transfer.items].map(item => item.webkitGetAsEntry && item.webkitGetAsEntry()).filter(Boolean),
    files = [...transfer.files];
  if (entries.length === 1 ? entries[0].isFile : !entries.length && files.length === 1) return single(files[0]);
  const found = entries.length ? [] : files.map(file => ({path: file.name, file})),
    name = entries.length === 1 ? entries[0].name : "files";
  for (const entry of entries) await filesBelow(entry, entry.name, found);
  return archiveOf(found, name);
}

// Of an input, which may ask for a folder.
export async function fromInput(input) {
  const files = [...input.files];
  if (files.length === 1 && !files[0].webkitRelativePath) return single(files[0]);
  const found = files.map(file => ({path: file.webkitRelativePath || file.name, file}));
  return archiveOf(found, found[0]?.path.includes("/") ? found[0].path.split("/")[0] : "files");
}

// What was dropped on another page, until page_dedup.js takes it.
let waiting = null;
export const hold = promise => {
  waiting = promise;
};
export const taken = () => {
  const held = waiting;
  waiting = null;
  return held;
};

// Opens the page that deduplicates a file, with this one.
export function deduplicate(file) {
  hold(Promise.resolve(single(file)));
  location.hash = "#/dedup";
}

// Calls `take` with a promise of what is dropped on an element.
export function takesFiles(place, take, {anywhere = false} = {}) {
  let depth = 0;
  const has = event => event.dataTransfer && [...event.dataTransfer.types].includes("Files");
  // Elements inside that take files themselves have precedence.
  const mine = event => has(event) && !event.defaultPrevented && !(anywhere && event.target.closest?.(".source, .drop"));
  const over = on => place.classList.toggle("over", on);
  const listen = (name, act) => place.addEventListener(name, event => mine(event) && act(event));
  listen("dragenter", event => {
    event.preventDefault();
    over(++depth > 0);
  });
  listen("dragover", event => event.preventDefault());
  listen("dragleave", () => over((depth = Math.max(0, depth - 1)) > 0));
  listen("drop", event => {
    event.preventDefault();
    over(((depth = 0), false));
    take(fromDrop(event.dataTransfer));
  });
}
