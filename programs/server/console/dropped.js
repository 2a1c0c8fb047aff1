// A file or folder that was dropped or chosen, as one file that POST /v1/runs takes. A folder becomes JSONL, a line a
// file, with its path as the id.

// Files of a folder that are not text are left out: those with these names, which need not be read, and those with a NUL.
const BINARY = /\.(png|jpe?g|gif|webp|ico|pdf|zip|gz|zst|bz2|xz|7z|tar|exe|so|o|a|bin|mp[34]|mov|avi|woff2?|ttf|otf|parquet|sqlite|docx|xlsx|pptx|odt)$/i;
const PAGE = /\.x?html?$/i;

async function filesBelow(entry, path, found) {
  if (entry.isFile) {
    found.push({path, file: await new Promise((resolve, reject) => entry.file(resolve, reject))});
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return;
    for (const one of some.sort((x, y) => (x.name < y.name ? -1 : 1)))
      if (!one.name.startsWith(".")) await filesBelow(one, `${path}/${one.name}`, found);
  }
}

async function asLines(files, name) {
  const lines = [];
  for (const {path, file} of files) {
    const text = BINARY.test(path) ? "\0" : await file.text();
    if (!text.includes("\0")) lines.push(`${JSON.stringify({id: path, [PAGE.test(path) ? "html" : "text"]: text})}\n`);
  }
  if (!lines.length) throw {title: "Nothing to read", message: "The folder has no text files."};
  return {file: new File(lines, `${name}.jsonl`), folder: name, leftOut: files.length - lines.length};
}

// {file, folder, leftOut}: `folder` is the name of the folder that it was made of, or null, `leftOut` how many of its
// files were left out.
async function fromDrop(transfer) {
  const entries = [...transfer.items].map(item => item.webkitGetAsEntry && item.webkitGetAsEntry()).filter(Boolean);
  if (entries.length === 1 && entries[0].isFile) return {file: transfer.files[0], folder: null};
  const files = [...transfer.files];
  if (!entries.length && files.length === 1) return {file: files[0], folder: null};
  const found = entries.length ? [] : files.map(file => ({path: file.name, file})),
    name = entries.length === 1 ? entries[0].name : "files";
  for (const entry of entries) await filesBelow(entry, entry.name, found);
  return asLines(found, name);
}

// Of an input, which may ask for a folder.
export async function fromInput(input) {
  const files = [...input.files];
  if (files.length === 1 && !files[0].webkitRelativePath) return {file: files[0], folder: null};
  const found = files
    .map(file => ({path: file.webkitRelativePath || file.name, file}))
    .filter(({path}) => !path.split("/").some(part => part.startsWith(".")))
    .sort((x, y) => (x.path < y.path ? -1 : 1));
  const name = found.length ? found[0].path.split("/")[0] : "files";
  return asLines(found, name);
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
