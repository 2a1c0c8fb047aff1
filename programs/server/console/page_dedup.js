// Deduplicate a file: the server analyses a file or folder while it is sent. Groups appear as they are found, a slider
// shows what each threshold would remove, and the result can be downloaded.
import {compare, createRun, deleteRun, download, getRun, repeatRun, runEvents, runExamples, runFile, runGroups} from "./api.js";
import {clusters} from "./clusters.js";
import {announce, box, button, calm, card, el, lead, name, needs, outcome, soft, svg, tile} from "./dom.js";
import {fromInput, taken, takesFiles, without} from "./dropped.js";
import {chooser, fieldsOfSeveral, keyFields, usualFields} from "./fields.js";
import {bytes, clock, count, many, percent, share} from "./format.js";
import {problemCard, working} from "./problem.js";
import {listGroups, titleOf, whyForm} from "./run_groups.js";
import {deleteAsked, runList} from "./run_list.js";
import {USUAL} from "./scale.js";
import {may, session} from "./session.js";
import {asCommand, asCurl, asOverlap, chosenKeys, copyButton, digits} from "./terminal.js";
import {lowest, stepAt, thresholdControl} from "./threshold.js";
import {twoTexts} from "./two_texts.js";
import {commandReadsMore, unreadCard} from "./unread.js";

// Milliseconds after which the server is asked about a file that is still being sent, and after the last move of the
// slider.
const FIRST_WAIT = 400,
  SLIDER_WAIT = 150;

function newId() {
  const random = crypto.getRandomValues(new Uint8Array(16));
  return [...random].map(byte => byte.toString(16).padStart(2, "0")).join("");
}

// ---- parts of the page ----

async function exampleCard(example, threshold, signal) {
  const copies = example.similarity >= threshold;
  const {a, b} = example;
  const compared = await compare({a: {text: a.text}, b: {text: b.text}}, signal);
  return el(
    "section",
    {class: `card example ${copies ? "copy" : "new"}`},
    el(
      "h3",
      null,
      `${share(example.similarity, threshold)} similar: `,
      copies ? "copies of each other" : "not copies of each other",
    ),
    (a.cut || b.cut) && soft("Only the beginning of each text is shown."),
    twoTexts(
      {title: "the first", name: a.id, text: a.text},
      {title: "the second", name: b.id, text: b.text},
      compared,
    ),
  );
}

// How much is kept, and how much removed.
function split() {
  const bar = kind => svg("rect", {class: kind, y: 0, height: 12});
  const [keeps, goes] = [bar("keeps"), bar("goes")];
  return {
    picture: svg("svg", {class: "split", width: "100%", height: 12, "aria-hidden": "true"}, keeps, goes),
    update(kept) {
      keeps.setAttribute("width", `${(100 * kept).toFixed(2)}%`);
      goes.setAttribute("x", `${(100 * kept).toFixed(2)}%`);
      goes.setAttribute("width", `${(100 * (1 - kept)).toFixed(2)}%`);
    },
  };
}

// ---- a run ----

function makeView() {
  return {
    state: el("p", {class: "soft", role: "status"}, "Sending"),
    bar: el("progress", {max: 1, "aria-label": "How much of the file has been sent"}),
    documents: tile("Documents"),
    kept: tile("Kept", "keeps"),
    removed: tile("Removed", "goes"),
    groups: tile("Groups"),
    split: split(),
    examples: el("div"),
    pairs: el("section", {hidden: true}),
    keys: box("line keys"),
    at: el("p", {class: "at", role: "status"}),
    trouble: box("place"),
    list: el("div"),
    unread: el("div"),
    why: el("div"),
  };
}

// The server also says which parameter of a request would help.
const whyFailed = run => run.why.replace(/(?:\. Use|;) textKey=.*?( \(and \d+ more files? like it\))?$/s, "$1.");

function inWords(run, what) {
  const files = run.archive ? "files" : "file",
    read =
    (run.bad ? ` ${many(run.bad, run.archive ? "file or record" : "record", run.archive ? "files or records" : "records")} could not be read.` : "") +
    (run.empty ? ` ${many(run.empty, "document")} ${run.empty === 1 ? "has no words and is" : "have no words and are"} kept.` : "");
  if (run.state === "failed") return whyFailed(run);
  if (run.state === "done")
    return `${bytes(run.received)} analysed.${read} The ${files} will be deleted at ${clock(run.expires)}, or earlier if you delete ${run.archive ? "them" : "it"} or drop another file.`;
  if (run.state === "receiving") return `${bytes(run.received)} of ${bytes(what.file.size)} sent; ${many(run.documents, "document")} analysed so far.`;
  return `Upload complete; ${many(run.documents, "document")} analysed so far.`;
}

// A run, from the upload of its file or from when it is opened again. `what` is {file, several,
// inputs, members, fields, tables, less, keys, format}, of which dropped.js gives the first four, fields.js `fields` and
// `tables`; `less`: files of a folder were left out; `file` has only a name and a size, and there are no members, if the
// browser no longer has it; `fields` is null if they are not known; `keys` are the fields with the text and the id;
// `format` is that of the kept documents. ask(what, id) lets the user choose the fields.
class Watch {
  constructor(what, root, ask, signal, id = newId()) {
    this.what = what;
    this.ask = ask;
    this.signal = signal;
    this.id = id;
    this.run = null;
    this.arrived = false; // all of the file is on the server
    this.ids = new Set((what.members || []).map(one => one.path)); // of documents, as far as they are known
    this.view = makeView();
    this.threshold = USUAL;
    this.layOut(root);
  }

  layOut(root) {
    const v = this.view;
    let timer;
    v.threshold = thresholdControl(USUAL, () => {
      this.chosen();
      clearTimeout(timer);
      timer = setTimeout(async () => {
        try {
          await this.showThreshold();
          v.trouble.replaceChildren();
        } catch (error) {
          if (error.name !== "AbortError") v.trouble.replaceChildren(problemCard(error));
        }
      }, SLIDER_WAIT);
    });
    v.clusters = clusters(group => this.openGroup(group));
    v.pairs.append(el("h2", null, "Pairs near the threshold"), soft("Just below it and just above it."), v.examples);
    this.result = el("div", {hidden: true});
    this.result.append(
      el(
        "section",
        {class: "card run"},
        box("tiles", v.documents.box, v.kept.box, v.removed.box, v.groups.box),
        v.split.picture,
        v.threshold.box,
        v.at,
        v.clusters.box,
        v.trouble,
      ),
      (this.ready = el("section", {class: "card", hidden: true})),
      v.pairs,
      v.why,
      el("section", null, el("h2", null, "Groups, largest first"), v.list),
    );
    root.replaceChildren(
      el("section", {class: "card"}, el("h2", null, name(this.what.file.name)), box("sending", v.bar, v.state), v.keys),
      v.unread,
      this.result,
    );
  }

  // A function that lets the user choose other fields of the file; null: it has no fields, or they are not known.
  askAgain() {
    if (!may("write")) return null;
    const {what, run} = this,
      fields = what.fields || (run && run.fields.map(one => ({name: one.name, values: [], bytes: one.meanBytes})));
    if (!fields || !fields.length) return null;
    return () => this.ask({...what, fields}, this.arrived ? this.id : null);
  }

  // Shows which fields are read, with a button to choose others.
  showKeys() {
    const {textKey, idKey, fields} = this.run,
      again = this.askAgain();
    if (!again) return;
    const usual = usualFields(fields);
    const shown = keyFields(textKey || usual.text || "text", fields);
    this.view.keys.replaceChildren(
      el(
        "span",
        {class: "soft"},
        shown.length > 1 ? "Text fields: " : "Text field: ",
        name(shown.join(", ")),
        idKey || usual.id ? [". Id field: ", name(idKey || usual.id)] : ". Id: the line number",
        ".",
      ),
      button("Choose other fields", again),
    );
  }

  offerFiles() {
    const get = way => async event => {
      const path = runFile(this.id, way, {similarity: digits(this.threshold)}),
        made = el("a", {download: ""}); // the server names it
      const place = this.place;
      await working(event.currentTarget, place, async () => {
        const file = session.token && (await download(path, this.signal));
        if (file) made.download = file.name;
        made.href = file ? URL.createObjectURL(file.blob) : path;
        made.click();
      });
    };
    this.place = box("place");
    this.command = el("code", {class: "command"});
    const deleteNow = button("Delete now", () =>
      working(deleteNow, this.place, async () => {
        if (await deleteAsked(this.id, this.what.file.name, this.signal)) location.hash = "#/dedup";
      }),
    );
    this.ready.replaceChildren(
      el("h2", null, "Download"),
      box("buttons", button("Download kept", get("kept"), {class: "first"}), button("Download removed", get("removed")), may("write") && deleteNow),
      ...(commandReadsMore(this.run) || this.what.less
        ? [soft("No command is shown: doppel dedup may read files that were left out here, and then gives another result.")]
        : [
            el("p", {class: "soft"}, "The same on the command line:"),
            this.command,
            box(
              "buttons",
              copyButton(() => asCommand(this.what, this.threshold), "command", this.command),
              copyButton(() => asCurl(this.what, this.threshold), "curl", this.command),
            ),
          ]),
      this.place,
    );
    this.ready.hidden = false;
    this.chosen();
  }

  chosen() {
    const {run, view: v} = this,
      step = stepAt(run, v.threshold.value()),
      {similarity, removed} = step;
    this.threshold = similarity;
    v.removed.set(count(removed), run.documents ? percent(removed / run.documents, 1) : "");
    v.kept.set(count(run.documents - removed), run.documents ? percent(1 - removed / run.documents, 1) : "");
    v.split.update(run.documents ? 1 - removed / run.documents : 1);
    v.threshold.update(run, step);
    if (this.command) this.command.textContent = asCommand(this.what, this.threshold);
  }

  // Shows groups and pairs at the chosen threshold.
  async showThreshold() {
    const asked = this.threshold,
      values = {similarity: digits(asked)},
      isOld = () => asked !== this.threshold;
    const found = await runGroups(this.id, values, this.signal);
    if (isOld()) return;
    this.showGroups(found);
    if (this.run.state !== "done") return;
    await this.why.again();
    const {examples} = await runExamples(this.id, {...values, limit: 2}, this.signal),
      cards = await Promise.all(examples.map(example => exampleCard(example, asked, this.signal)));
    if (isOld()) return;
    this.view.pairs.hidden = false;
    const below = examples.filter(example => example.similarity < asked).length;
    this.view.examples.replaceChildren(
      cards.length
        ? box("two", el("div", null, cards.slice(0, below).reverse()), el("div", null, cards.slice(below)))
        : el(
            "p",
            {class: "nothing"},
            `Apart from identical copies, no two documents are at least ${percent(lowest(this.run))} similar. `,
            this.run.thresholds[0].removed === 0 && ["To find passages that one document shares with another, run: ", el("code", null, asOverlap(this.what))],
          ),
    );
  }

  showGroups(found) {
    const v = this.view,
      open = new Set([...v.list.querySelectorAll("details[open]")].map(details => details.dataset.number));
    for (const group of found.largest) for (const {id} of [group, ...group.copies]) this.ids.add(id);
    v.clusters.update(found.largest, titleOf);
    v.groups.set(count(found.groups), found.largest.length ? `the largest of ${count(found.largest[0].size)}` : "");
    v.at.textContent = `${many(found.groups, "group")} of two or more at ${percent(found.similarity)}${
      found.identical ? `, with ${many(found.identical, "identical copy", "identical copies")}` : ""
    }.`;
    if (found.largest.length) listGroups(v.list, found, this.id, this.signal);
    else v.list.replaceChildren(el("p", {class: "nothing"}, "No two documents are that similar."));
    for (const details of v.list.querySelectorAll("details"))
      if (open.has(details.dataset.number)) details.open = true;
  }

  // Opens a group in the list below.
  openGroup({number}) {
    const {list} = this.view,
      find = () => list.querySelector(`details[data-number="${number}"]`);
    if (!find()) list.querySelector(".more")?.click();
    const details = find();
    details.open = true;
    details.querySelector("summary").focus({preventScroll: true});
    details.scrollIntoView({block: "start", behavior: calm() ? "auto" : "smooth"});
  }

  async show(run) {
    const v = this.view,
      grown = !this.run || run.documents !== this.run.documents;
    this.run = run;
    this.arrived = run.state === "done" || this.arrived;
    v.state.textContent = inWords(run, this.what);
    v.bar.value = run.state === "receiving" ? Math.min(run.received / (this.what.file.size || 1), 1) : 1;
    v.bar.hidden = run.state === "done" || run.state === "failed";
    this.what.format = run.keptFormat;
    if (run.state === "failed" || run.state === "done") v.unread.replaceChildren(unreadCard(run) || "");
    if (run.state === "failed") throw {title: run.archive ? "These files cannot be used" : "This file cannot be used", message: whyFailed(run), choose: this.askAgain()};
    if (!run.thresholds.length) return;
    this.result.hidden = false;
    v.documents.set(count(run.documents), run.whole ? "" : "so far");
    this.chosen();
    if (run.state === "done") {
      this.showKeys();
      this.offerFiles();
      this.why = whyForm(this.id, () => this.threshold, () => this.ids, this.signal);
      v.why.replaceChildren(this.why.box);
      announce(`Done: ${many(run.removed, "document")} of ${count(run.documents)} removed`);
    }
    if (grown || run.state === "done") await this.showThreshold();
  }

  // Follows the run until it is done.
  async follow(sent) {
    let failed = null;
    sent.catch(error => {
      failed = error;
    });
    await Promise.race([sent, new Promise(resolve => setTimeout(resolve, FIRST_WAIT))]).catch(() => {});
    for (let known = 0; ; ) {
      if (failed) throw failed;
      this.signal.throwIfAborted();
      const run = await runEvents(this.id, known, this.signal).catch(error => {
        if (error.status !== 404) throw error;
        return null; // it has not begun yet, or its upload was refused
      });
      if (!run) {
        await new Promise(resolve => setTimeout(resolve, 50));
        continue;
      }
      known = run.version;
      await this.show(run);
      if (run.state === "done") return;
    }
  }

  // The file that was sent from this tab before makes room for this one.
  async deletePrevious() {
    const before = session.run;
    session.run = this.id;
    if (before && before !== this.id) await deleteRun(before, this.signal).catch(() => {}); // it may be gone
  }

  // Sends the file.
  async start() {
    await this.deletePrevious();
    const {file, keys} = this.what,
      sent = createRun(file, this.what.several, {id: this.id, name: file.name, similarity: USUAL, ...chosenKeys(keys)}, this.signal);
    history.replaceState(null, "", `#/dedup/${this.id}`);
    sent.then(
      () => (this.arrived = true),
      () => {
        if (session.run === this.id) session.run = null; // the server has deleted it
      },
    );
    await this.follow(sent);
  }

  // Analyses the file again, with other fields.
  async repeat() {
    this.arrived = true;
    await repeatRun(this.id, chosenKeys(this.what.keys), this.signal);
    await this.follow(Promise.resolve());
  }
}

// Opens a run that the server still has.
async function resume(id, place, ask, signal) {
  const run = await getRun(id, signal),
    keys = {textKey: run.textKey, idKey: run.idKey},
    what = {file: {name: run.name, size: run.received}, several: run.archive, inputs: run.inputs, fields: null, keys},
    watch = new Watch(what, place, ask, signal, id);
  watch.arrived = run.state !== "receiving";
  await watch.follow(Promise.resolve());
}

// Where a file or folder is dropped or chosen: {box, again()}; start() takes a promise of it, again() makes room for what
// was found in it.
function dropPlace(start) {
  const choose = folder => {
    const input = el("input", {type: "file", class: "unseen", tabindex: -1, "aria-hidden": "true", webkitdirectory: folder});
    input.addEventListener("change", () => {
      if (!input.files.length) return;
      start(fromInput(input));
      input.value = ""; // so that the same file can be chosen again
    });
    return [button(folder ? "Choose a folder" : "Choose a file", () => input.click(), {class: folder ? "" : "first"}), input];
  };
  const invitation = el("p", {class: "large"}, "Drop a file or a folder here"),
    drop = box(
      "drop card",
      invitation,
      soft("JSONL, JSON, CSV, TSV, WARC, mbox, .docx, plain text or HTML, also compressed (.gz, .zst, .bz2, .xz). In a folder, each file is read in its own format. Several files are read in the order of their names."),
      box("buttons", ...choose(false), ...choose(true)),
    );
  takesFiles(drop, start);
  const again = () => {
    drop.classList.add("again");
    invitation.textContent = "Drop another file or folder here";
  };
  return {box: drop, again};
}

export async function show(root, route, signal) {
  const place = el("div"),
    list = el("div");
  // One run is watched at a time: the next one ends it.
  let current = new AbortController();
  const watch = async begin => {
    current.abort();
    current = new AbortController();
    drop.again();
    list.hidden = true;
    try {
      await begin(AbortSignal.any([signal, current.signal]));
    } catch (error) {
      if (error.name === "AbortError" || signal.aborted) return;
      place.querySelector(".sending")?.remove();
      place.append(problemCard(error));
      if (error.choose) place.append(button("Choose the field with the text", error.choose, {class: "first"}));
    }
  };
  // id: the run whose file the server has; null: the file has to be sent.
  const ask = (what, id) => {
    current.abort();
    const take = keys =>
      watch(until => {
        const again = new Watch({...what, keys}, place, ask, until, id || undefined);
        return id ? again.repeat() : again.start();
      });
    const leaveOut = (paths, keys) => {
      const isFolder = paths.some(path => path.includes("/"));
      send(Promise.resolve(without(what, paths)), {keys, less: what.less || isFolder});
    };
    outcome(place, chooser(what, take, leaveOut));
  };
  // keys: the fields that were chosen; null: they are asked for if there are no usual ones.
  const send = (promise, {keys = null, less = false} = {}) =>
    watch(async until => {
      const dropped = await promise,
        {file, several, members} = dropped,
        {fields, tables, lacks} = await fieldsOfSeveral(several ? members : [{path: file.name, file}]),
        what = {...dropped, fields, tables, less, keys: keys || {}};
      if (lacks && !keys) ask(what, null);
      else await new Watch(what, place, ask, until).start();
    });
  const start = promise => send(promise);
  const drop = dropPlace(start);
  root.append(
    el("h1", null, "Deduplicate a file"),
    lead(
      "Find the copies in a file. The server analyses it while it arrives and deletes it later; nothing is added to an index.",
    ),
    may("write") ? drop.box : needs("write", "Deduplicating a file"),
    place,
    list,
  );
  const held = may("write") && taken();
  if (held) {
    if (!calm()) drop.box.scrollIntoView({block: "start"});
    start(held);
  } else if (route.rest) {
    watch(until => resume(route.rest, place, ask, until));
  } else if (may("write")) {
    runList(signal)
      .then(made => list.replaceChildren(made))
      .catch(error => error.name === "AbortError" || list.replaceChildren(problemCard(error)));
  }
}
