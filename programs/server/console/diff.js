// How one text differs from another, word by word. The passages that the server found are the frame: those that are in
// the same order in both (the heaviest chain of them); the others are text that moved. What is between two of the frame is
// compared by Myers' search, which is bounded: beyond MOST_CHANGES it counts as replaced.

const MOST_CHANGES = 400;
const MOST_WORDS = 5000;
const WORD = /[\p{L}\p{M}\p{N}]+/gu;

// The heaviest chain of passages that follow each other in A and in B: a Fenwick tree over the order in B has the best
// chain that ends before a place.
function chainOf(passages) {
  const ends = [...new Set(passages.map(p => p.bTo))].sort((x, y) => x - y);
  const tree = new Array(ends.length + 1).fill(null);
  // The number of places up to `to`.
  const rank = to => {
    let low = 0,
      high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ends[middle] <= to) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  let best = null;
  const waiting = [];
  const settle = until => {
    while (waiting.length && waiting[0].passage.aTo <= until) {
      const made = waiting.shift();
      for (let i = rank(made.passage.bTo); i <= ends.length; i += i & -i)
        if (!tree[i] || tree[i].weight < made.weight) tree[i] = made;
    }
  };
  for (const passage of [...passages].sort((x, y) => x.aFrom - y.aFrom)) {
    settle(passage.aFrom);
    let before = null;
    for (let i = rank(passage.bFrom); i > 0; i -= i & -i)
      if (tree[i] && (!before || tree[i].weight > before.weight)) before = tree[i];
    const made = {passage, before, weight: passage.words + (before ? before.weight : 0)};
    waiting.push(made);
    waiting.sort((x, y) => x.passage.aTo - y.passage.aTo);
    if (!best || made.weight > best.weight) best = made;
  }
  const chain = [];
  for (let one = best; one; one = one.before) chain.push(one.passage);
  return chain.reverse();
}

// The words of a part of a text: {ids, places}, `places` [{from, to}]; `known` has the id of each word.
function wordsOf(text, from, to, known) {
  const ids = [],
    places = [];
  for (const match of text.slice(from, to).matchAll(WORD)) {
    const word = match[0].normalize("NFKC").toLowerCase();
    if (!known.has(word)) known.set(word, known.size);
    ids.push(known.get(word));
    places.push({from: from + match.index, to: from + match.index + match[0].length});
  }
  return {ids, places};
}

// Whether the best way to diagonal k in d changes comes from the one above it. far[middle + k]: how far d - 1 changes lead
// on diagonal k.
const comesDown = (k, d, far, middle) => k === -d || (k !== d && far[middle + k - 1] < far[middle + k + 1]);

// The pairs [i, j] of words that are the same in the shortest edit; null: there are too many changes. a, b: ids of words.
function samePairs(a, b) {
  const most = Math.min(MOST_CHANGES, a.length + b.length),
    middle = most + 1,
    far = new Int32Array(2 * most + 3),
    trace = [];
  for (let d = 0; d <= most; d++) {
    for (let k = -d; k <= d; k += 2) {
      let x = comesDown(k, d, far, middle) ? far[middle + k + 1] : far[middle + k - 1] + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      far[middle + k] = x;
      if (x >= a.length && x - k >= b.length) return walkBack(trace, a.length, b.length);
    }
    trace.push(far.slice(middle - d, middle + d + 1));
  }
  return null;
}

// The pairs on the way to (x, y); trace[d][d + k]: how far d changes lead on diagonal k.
function walkBack(trace, x, y) {
  const pairs = [];
  for (let d = trace.length; d > 0; d--) {
    const far = trace[d - 1],
      k = x - y,
      down = comesDown(k, d, far, d - 1),
      from = down ? far[d + k] : far[d + k - 2] + 1;
    while (x > from) pairs.push([--x, x - k]);
    x = down ? from : from - 1;
    y = x - (down ? k + 1 : k - 1);
  }
  while (x > 0) pairs.push([--x, --y]);
  return pairs.reverse();
}

// Ranges that are the same, in order: [{aFrom, aTo, bFrom, bTo}].
function sameRanges(a, b, chain) {
  const found = [],
    known = new Map();
  let atA = 0,
    atB = 0;
  const between = (toA, toB) => {
    const left = wordsOf(a, atA, toA, known),
      right = wordsOf(b, atB, toB, known),
      [least, most] = [left.ids.length, right.ids.length].sort((x, y) => x - y);
    if (!least || most > MOST_WORDS || most - least > MOST_CHANGES) return;
    for (const [i, j] of samePairs(left.ids, right.ids) || []) {
      const [{from: aFrom, to: aTo}, {from: bFrom, to: bTo}] = [left.places[i], right.places[j]];
      found.push({aFrom, aTo, bFrom, bTo});
    }
  };
  for (const {aFrom, aTo, bFrom, bTo} of chain) {
    between(aFrom, bFrom);
    found.push({aFrom, aTo, bFrom, bTo});
    atA = aTo;
    atB = bTo;
  }
  between(a.length, b.length);
  return found;
}

const hasWords = text => {
  WORD.lastIndex = 0;
  return WORD.test(text);
};

// How many characters that are no letters two parts begin with alike, and end with.
function commonEnds(a, b) {
  const most = Math.min(a.length, b.length),
    counts = i => a[i] === b[i] && !hasWords(a[i]);
  let head = 0,
    tail = 0;
  while (head < most && counts(head)) head++;
  while (tail < most - head && a.at(-1 - tail) === b.at(-1 - tail) && !hasWords(a.at(-1 - tail))) tail++;
  return [head, tail];
}

// What two texts consist of, in order: {runs: [{kind: "same" | "change", a, b, aAt, bAt}], moved}, where a and b are what
// each has, from the places aAt and bAt on; `moved` are the passages that are not in the same order in both.
export function diffOf(a, b, passages) {
  const runs = [],
    chain = chainOf(passages),
    inChain = new Set(chain);
  const push = (kind, partA, partB) => {
    const last = runs.at(-1);
    if (last && last.kind === kind) {
      last.a += partA;
      last.b += partB;
    } else if (partA || partB) {
      runs.push({kind, a: partA, b: partB});
    }
  };
  let atA = 0,
    atB = 0;
  const between = (toA, toB) => {
    const partA = a.slice(atA, toA),
      partB = b.slice(atB, toB);
    if (!hasWords(partA) && !hasWords(partB)) {
      push("same", partA, partB);
      return;
    }
    const [head, tail] = commonEnds(partA, partB);
    push("same", partA.slice(0, head), partB.slice(0, head));
    push("change", partA.slice(head, partA.length - tail), partB.slice(head, partB.length - tail));
    push("same", partA.slice(partA.length - tail), partB.slice(partB.length - tail));
  };
  for (const same of sameRanges(a, b, chain)) {
    between(same.aFrom, same.bFrom);
    push("same", a.slice(same.aFrom, same.aTo), b.slice(same.bFrom, same.bTo));
    atA = same.aTo;
    atB = same.bTo;
  }
  between(a.length, b.length);
  let aAt = 0,
    bAt = 0;
  for (const run of runs) {
    Object.assign(run, {aAt, bAt});
    aAt += run.a.length;
    bAt += run.b.length;
  }
  return {runs, moved: passages.filter(passage => !inChain.has(passage))};
}

export const wordCount = text => (text.match(WORD) || []).length;
function hasMoreWords(text, most) {
  WORD.lastIndex = 0;
  for (let i = 0; i <= most; i++) if (!WORD.exec(text)) return false;
  return true;
}

// The first or the last words of a text, with what stands around them.
export function firstWords(text, most) {
  WORD.lastIndex = 0;
  for (let i = 0; i < most; i++) if (!WORD.exec(text)) return text;
  const end = WORD.lastIndex;
  WORD.lastIndex = 0;
  return text.slice(0, end);
}
export function lastWords(text, most) {
  for (let size = 40 * most; ; size *= 4) {
    const end = text.slice(-size),
      places = [...end.matchAll(WORD)];
    // The first one may be cut.
    if (places.length > most) return end.slice(places.at(-most).index);
    if (size >= text.length) return text;
  }
}

// Changes that are near each other, with the words around them: {hunks: [{runs, skipped, changes}], last}. `skipped` is
// the text that is left out before one, `last` after the last one; `changes` are where its changes lie: {a, b}, each
// [from, to]. One that has MOST_RUNS ends where the two are the same.
const CONTEXT = 14,
  MOST_RUNS = 60;
export function hunksOf(runs) {
  const hunks = [];
  let open = null,
    skipped = null;
  for (const run of runs) {
    const long = run.kind === "same" && hasMoreWords(run.b, 2 * CONTEXT + 10);
    if (long) {
      const head = firstWords(run.b, CONTEXT),
        tail = lastWords(run.b, CONTEXT);
      if (open) open.runs.push({kind: "same", a: head, b: head});
      const from = open ? head.length : 0;
      skipped = {text: run.b.slice(from, run.b.length - tail.length), tail};
      open = null;
    } else {
      if (!open) {
        open = {runs: [], skipped: skipped ? skipped.text : "", changes: []};
        if (skipped) open.runs.push({kind: "same", a: skipped.tail, b: skipped.tail});
        skipped = null;
        hunks.push(open);
      }
      open.runs.push(run);
    }
    if (run.kind === "change")
      open.changes.push({a: [run.aAt, run.aAt + run.a.length], b: [run.bAt, run.bAt + run.b.length]});
    else if (open && open.runs.length >= MOST_RUNS) open = null;
  }
  const last = skipped ? skipped.text + skipped.tail : "";
  return {hunks: hunks.filter(hunk => hunk.changes.length), last};
}
