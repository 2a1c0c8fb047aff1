// A run as a command line: with doppel, and with a curl that gives the kept documents.
import {announce, button} from "./dom.js";
import {endingOf, stemOf} from "./fields.js";
import {session} from "./session.js";

// For the shell. Names of fields come from documents: a terminal may take control characters in them for keys that are
// pressed, so these are escaped.
const escaped = character =>
  /[\\']/.test(character) ? `\\${character}` : `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
const quote = text =>
  /^[\w./:=@%,+-]+$/.test(text)
    ? text
    : /[\u0000-\u001f\u007f]/.test(text)
      ? `$'${text.replace(/[\u0000-\u001f\u007f\\']/g, escaped)}'`
      : `'${text.replaceAll("'", "'\\''")}'`;
// A file whose name begins with - would be an option.
const path = name => quote(name.startsWith("-") ? `./${name}` : name);

// A threshold in full: the server knows hundredths, and the run's own.
export const digits = threshold =>
  Math.abs(100 * threshold - Math.round(100 * threshold)) < 1e-6 ? threshold.toFixed(2) : String(threshold);

export const chosenKeys = keys => Object.fromEntries(Object.entries(keys).filter(([, key]) => key));

const asOptions = pairs => pairs.flatMap(([option, key]) => (key ? [option, quote(key)] : []));

// Names as the last arguments of a command.
const operands = names => [...(names.some(one => one.startsWith("-")) ? ["--"] : []), ...names.map(quote)];

// The name of an output, which must not be that of an input.
const output = (name, inputs) => (inputs.includes(name) ? `new-${name}` : name);

// what: {file, several, inputs, keys, format}, as page_dedup.js has them.
export function asCommand({file, several, inputs = [file.name], keys, format}, threshold) {
  const kept = output(`kept${several ? `.${format}` : endingOf(file.name)}`, inputs),
    options = ["--similarity", digits(threshold), ...asOptions([["--text-key", keys.textKey], ["--id-key", keys.idKey]])],
    outputs = ["-o", kept, "--removed", output("removed.jsonl", inputs)];
  if (!several) return ["doppel dedup", path(file.name), ...outputs, ...options].join(" ");
  const names = operands(inputs);
  return ["doppel dedup", ...(names[0] === "--" ? [...outputs, ...options, ...names] : [...names, ...outputs, ...options])].join(" ");
}

export function asCurl({file: {name}, several, inputs, keys, format}, threshold) {
  const token = session.token ? " -H 'Authorization: Bearer TOKEN'" : "",
    values = new URLSearchParams({name, answer: "kept", similarity: digits(threshold), ...chosenKeys(keys)}),
    to = `'${location.origin}/v1/runs?${values}'`;
  if (several)
    return `tar -cf - ${operands(inputs).join(" ")} | curl -f -T - -X POST -H 'Content-Type: application/x-tar'${token} ${to} -o ${path(output(`${stemOf(name)}-kept.${format}`, inputs))}`;
  const glob = /[[\]{}]/.test(name) ? " -g" : ""; // curl would take the name for a pattern
  return `curl -f${glob} -T ${path(name)} -X POST -H 'Content-Type: application/octet-stream'${token} ${to} -o ${path(`${stemOf(name)}-kept${endingOf(name)}`)}`;
}

export const asOverlap = ({file, several, inputs}) =>
  ["doppel overlap", ...(several ? operands(inputs) : [path(file.name)])].join(" ");

// text(): what is copied; where the browser does not allow that, `line` shows it, to be selected.
export function copyButton(text, what, line) {
  const made = button(`Copy as ${what}`, async () => {
    try {
      await navigator.clipboard.writeText(text());
      made.textContent = "Copied";
    } catch {
      line.textContent = text();
      made.textContent = "Select and copy the line above";
    }
    announce(made.textContent);
    setTimeout(() => {
      made.textContent = `Copy as ${what}`;
    }, 2000);
  });
  return made;
}
