// File: a file or folder that is dropped here is deduplicated by the server while it arrives: groups form while one
// watches, a slider shows what each threshold would remove, and the result can be downloaded.
import {compare, createRun, deleteRun, download, getRun, runEvents, runExamples, runFile} from "./api.js";
import {announce, box, button, calm, card, el, field, lead, name, soft, svg, tile} from "./dom.js";
import {differences} from "./differences.js";
import {fromInput, taken, takesFiles} from "./dropped.js";
import {bytes, count, many, percent, share} from "./format.js";
import {problemCard, working} from "./problem.js";
import {session} from "./session.js";

const CHOSEN = 0.8;
const FIRST_GROUPS = 8;
// Milliseconds after which a file that is still being sent is looked at.
const FIRST_LOOK = 400;

function newId() {
  const random = crypto.getRandomValues(new Uint8Array(16));
  return [...random].map(byte => byte.toString(16).padStart(2, "0")).join("");
}

// ---- what is removed at each threshold ----

const HEIGHT = 140,
  FLOOR = HEIGHT - 24;

// A curve of removed documents by threshold, with a mark; update(steps, documents, threshold).
function curve() {
  const place = box("plot");
  let drawn = () => {};
  new ResizeObserver(() => drawn()).observe(place);
  return {
    place,
    update(steps, documents, threshold) {
      drawn = () => {
        const width = Math.max(place.clientWidth, 200),
          first = steps[0].similarity,
          most = Math.max(...steps.map(step => step.removed), 1);
        const x = value => (width * (value - first)) / (1 - first || 1),
          y = removed => FLOOR - ((FLOOR - 24) * removed) / most;
        const points = steps.map(step => `${x(step.similarity).toFixed(1)},${y(step.removed).toFixed(1)}`).join(" ");
        place.replaceChildren(
          svg(
            "svg",
            {class: "picture", width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img"},
            svg("title", null, `Documents that are removed, by threshold: at most ${count(most)} of ${count(documents)}`),
            svg("polygon", {class: "area", points: `0,${FLOOR} ${points} ${width},${FLOOR}`}),
            svg("polyline", {class: "curve", points}),
            svg("line", {class: "axis", x1: 0, x2: width, y1: FLOOR, y2: FLOOR}),
            svg("line", {class: "threshold", x1: x(threshold), x2: x(threshold), y1: 8, y2: FLOOR}),
            svg("text", {class: "start count", x: 0, y: 14}, `${count(most)} removed`),
            svg("text", {class: "start", x: 0, y: HEIGHT - 6}, percent(first)),
            svg("text", {class: "end", x: width, y: HEIGHT - 6}, "100 %"),
          ),
        );
      };
      drawn();
    },
  };
}

const removedAt = (run, threshold) =>
  run.thresholds.find(step => Math.abs(step.similarity - threshold) < 0.005)?.removed ?? run.removed;

// ---- the same for the terminal ----

const quote = text => (/^[\w./:=@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

function asCommand(what, threshold) {
  const input = quote(what.folder ? what.folder : what.file.name);
  return `doppel dedup ${input} -o kept.jsonl --removed removed.jsonl --similarity ${threshold.toFixed(2)}`;
}

function asCurl(what, threshold) {
  const token = session.token ? " -H 'Authorization: Bearer TOKEN'" : "",
    values = new URLSearchParams({name: what.file.name, similarity: threshold.toFixed(2)});
  return `curl -T ${quote(what.file.name)} -X POST -H 'Content-Type: application/octet-stream'${token} '${location.origin}/v1/runs?${values}'`;
}

function copies(text, what) {
  const made = button(`Copy as ${what}`, async () => {
    try {
      await navigator.clipboard.writeText(text());
      made.textContent = "Copied";
    } catch {
      made.textContent = "Select it below, and copy it";
    }
    announce(made.textContent);
    setTimeout(() => {
      made.textContent = `Copy as ${what}`;
    }, 2000);
  });
  return made;
}

// ---- parts of the page ----

function groupCard(group) {
  const copiesList = group.copies.map(copy =>
    el("li", null, box("line", name(copy.title || copy.id), el("span", {class: "score"}, share(copy.similarity))), soft(name(copy.id))),
  );
  const rest = group.size - 1 - group.copies.length;
  return el(
    "details",
    {class: "card group"},
    el(
      "summary",
      null,
      el("h3", null, name(group.title || group.id)),
      el("span", {class: "soft"}, `${many(group.size, "document")}, ${count(group.size - 1)} removed. Kept: `, name(group.id)),
    ),
    box("inner", el("ul", {class: "documents"}, copiesList), rest > 0 && soft(`And ${count(rest)} more.`)),
  );
}

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
      `${share(example.similarity)} similar: `,
      copies ? "copies of each other" : "not copies of each other",
    ),
    soft(name(a.id), " and ", name(b.id), a.cut || b.cut ? " · the beginning of each" : ""),
    differences({title: a.id, text: a.text}, {title: b.id, text: b.text}, compared),
  );
}

// ---- a run ----

function makeView() {
  return {
    state: el("p", {class: "soft", role: "status"}),
    bar: el("progress", {max: 1, "aria-label": "How much of the file has been sent"}),
    documents: tile("Documents"),
    kept: tile("Kept"),
    removed: tile("Removed"),
    groups: tile("Groups"),
    slider: el("input", {type: "range", min: 50, max: 100, step: 1, value: 100 * CHOSEN}),
    value: el("output", {class: "score"}),
    curve: curve(),
    examples: el("div"),
    list: el("div"),
  };
}

function inWords(run, what) {
  const read = run.bad ? ` ${many(run.bad, "record")} could not be read.` : "";
  if (run.state === "failed") return run.why;
  if (run.state === "done")
    return `${what.file.name}, ${bytes(run.received)}: everything is analysed.${read} It is deleted in an hour, or when you say so.`;
  if (run.state === "receiving") return `${bytes(run.received)} of ${bytes(what.file.size)} sent; ${many(run.documents, "document")} analysed so far.`;
  return `Everything is sent; ${many(run.documents, "document")} analysed so far.`;
}

class Watch {
  constructor(what, root, signal, id = newId()) {
    this.what = what;
    this.signal = signal;
    this.id = id;
    this.run = null;
    this.view = makeView();
    this.threshold = CHOSEN;
    this.layOut(root);
  }

  layOut(root) {
    const v = this.view;
    v.slider.addEventListener("input", () => this.chosen());
    v.slider.addEventListener("change", () => this.showExamples());
    this.result = el("div", {hidden: true});
    this.result.append(
      box("tiles", v.documents.box, v.kept.box, v.removed.box, v.groups.box),
      el(
        "section",
        {class: "card"},
        box("line", el("h2", null, "What is a copy?"), v.value),
        field("A document is removed if it is at least this similar to one that is kept", v.slider),
        v.curve.place,
      ),
      (this.ready = el("section", {class: "card", hidden: true})),
      el("section", null, el("h2", null, "At the boundary"), soft("The pairs nearest to the threshold, on either side."), v.examples),
      el("section", null, el("h2", null, "The largest groups"), soft(`At ${percent(CHOSEN)}.`), v.list),
    );
    root.replaceChildren(
      el("section", {class: "card"}, el("h2", null, name(this.what.file.name)), v.bar, v.state),
      this.result,
    );
  }

  offerFiles() {
    const get = way => async event => {
      const path = runFile(this.id, way, {similarity: this.threshold.toFixed(2)}),
        made = el("a", {download: `${this.what.file.name.replace(/\.[^.]*$/, "")}.${way}.jsonl`});
      const place = this.place;
      await working(event.currentTarget, place, async () => {
        made.href = session.token ? URL.createObjectURL(await download(path, this.signal)) : path;
        made.click();
      });
    };
    this.place = box("place");
    this.command = el("code", {class: "command"});
    const forget = button("Delete it now", () =>
      working(forget, this.place, async () => {
        await deleteRun(this.id, this.signal);
        location.hash = "#/file";
      }),
    );
    this.ready.replaceChildren(
      el("h2", null, "Take it with you"),
      box("buttons", button("Download kept", get("kept"), {class: "first"}), button("Download removed", get("removed")), forget),
      el("p", {class: "soft"}, "The same in a terminal:"),
      this.command,
      box(
        "buttons",
        copies(() => asCommand(this.what, this.threshold), "command"),
        copies(() => asCurl(this.what, this.threshold), "curl"),
      ),
      this.place,
    );
    this.ready.hidden = false;
    this.chosen();
  }

  chosen() {
    this.threshold = Number(this.view.slider.value) / 100;
    const {run, view: v} = this,
      removed = removedAt(run, this.threshold);
    v.value.textContent = percent(this.threshold);
    v.removed.set(count(removed), run.documents ? percent(removed / run.documents, 1) : "");
    v.kept.set(count(run.documents - removed));
    v.curve.update(run.thresholds, run.documents, this.threshold);
    if (this.command) this.command.textContent = asCommand(this.what, this.threshold);
  }

  async showExamples() {
    const asked = this.threshold;
    const found = await runExamples(this.id, {similarity: asked.toFixed(2), limit: 2}, this.signal);
    const cards = await Promise.all(found.examples.map(example => exampleCard(example, asked, this.signal)));
    if (asked !== this.threshold) return;
    this.view.examples.replaceChildren(
      ...(cards.length ? cards : [el("p", {class: "nothing"}, "No two documents are at least 50 % similar without having the same words.")]),
    );
  }

  showGroups() {
    const v = this.view,
      open = new Set([...v.list.querySelectorAll("details[open] h3")].map(title => title.textContent));
    const rest = this.run.largest.slice(FIRST_GROUPS);
    v.list.replaceChildren(...this.run.largest.slice(0, FIRST_GROUPS).map(groupCard));
    if (rest.length) {
      const more = button("Show more groups", () => more.replaceWith(...rest.map(groupCard)));
      v.list.append(more);
    }
    for (const details of v.list.querySelectorAll("details"))
      if (open.has(details.querySelector("h3").textContent)) details.open = true;
    if (!this.run.largest.length) v.list.append(el("p", {class: "nothing"}, "No two documents are alike."));
  }

  async show(run) {
    const v = this.view,
      grown = !this.run || run.documents !== this.run.documents;
    this.run = run;
    v.state.textContent = inWords(run, this.what);
    v.bar.value = run.state === "receiving" ? Math.min(run.received / (this.what.file.size || 1), 1) : 1;
    v.bar.hidden = run.state === "done" || run.state === "failed";
    if (run.state === "failed") throw {title: "This file cannot be used", message: run.why};
    if (!run.thresholds.length) return;
    this.result.hidden = false;
    v.slider.min = Math.round(100 * run.thresholds[0].similarity);
    v.documents.set(count(run.documents), run.whole ? "" : "so far");
    v.groups.set(count(run.groups), run.identical ? `${many(run.identical, "document")} word for word` : "");
    this.chosen();
    if (grown) this.showGroups();
    if (run.state !== "done") return;
    this.offerFiles();
    announce(`Done: ${many(run.removed, "document")} of ${count(run.documents)} removed`);
    await this.showExamples();
  }

  // Follows the run until it is done.
  async follow(sent) {
    let failed = null;
    sent.catch(error => {
      failed = error;
    });
    await Promise.race([sent, new Promise(resolve => setTimeout(resolve, FIRST_LOOK))]).catch(() => {});
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

  async start() {
    const sent = createRun(this.what.file, {id: this.id, name: this.what.file.name, similarity: CHOSEN}, this.signal);
    history.replaceState(null, "", `#/file/${this.id}`);
    await this.follow(sent);
  }
}

// A run that is still there.
async function resume(id, place, signal) {
  const run = await getRun(id, signal);
  await new Watch({file: {name: run.name, size: run.received}, folder: null}, place, signal, id).follow(Promise.resolve());
}

export async function show(root, route, signal) {
  const place = el("div");
  const watch = async begin => {
    try {
      await begin();
    } catch (error) {
      if (error.name === "AbortError" || signal.aborted) return;
      place.append(problemCard(error));
    }
  };
  const start = promise => watch(async () => new Watch(await promise, place, signal).start());
  const choose = folder => {
    const input = el("input", {type: "file", class: "unseen", tabindex: -1, "aria-hidden": "true", webkitdirectory: folder});
    input.addEventListener("change", () => input.files.length && start(fromInput(input)));
    return [button(folder ? "Choose a folder" : "Choose a file", () => input.click(), {class: folder ? "" : "first"}), input];
  };
  const drop = box(
    "drop card",
    el("p", {class: "large"}, "Drop a file or a folder here"),
    soft("JSONL, JSON, CSV, TSV, WARC, mbox, text or pages; .gz and .zst too. A folder is read file by file."),
    box("buttons", ...choose(false), ...choose(true)),
  );
  takesFiles(drop, start);
  root.append(
    el("h1", null, "File"),
    lead(
      "Find the copies in a file. It is analysed while it is sent, in a folder of its own on the server, and deleted after an hour. Nothing of it gets into an index.",
    ),
    drop,
    place,
  );
  const held = taken();
  if (held) {
    if (!calm()) drop.scrollIntoView({block: "start"});
    start(held);
  } else if (route.rest) {
    watch(() => resume(route.rest, place, signal));
  }
}
