// Numbers, sizes and times as people read them.

export const count = value => Number(value).toLocaleString("en");
// For large letters: "12.3 M".
export const short = value =>
  value < 1e7
    ? count(value)
    : value < 1e10
      ? `${count((value / 1e6).toFixed(1))} M`
      : `${count((value / 1e9).toFixed(1))} G`;
// "1 word", "2 words"
export const many = (value, one, more = `${one}s`) => `${count(value)} ${value === 1 ? one : more}`;

// Without digits given: as many as it has, at most one.
export const percent = (share, digits = Number.isInteger(Math.round(1000 * share) / 10) ? 0 : 1) =>
  `${(100 * share).toFixed(digits)} %`;
// Similarities: never rounded up to the whole, nor to a threshold that they are below.
export function share(value, threshold = Infinity) {
  if (value === 1) return "100 %";
  const shown = Math.min(value, 0.9999);
  for (let digits = value > 0.99 ? 2 : 1; digits <= 4; digits++)
    if (value >= threshold || Number((100 * shown).toFixed(digits)) < 100 * threshold - 1e-9) return percent(shown, digits);
  return `just below ${percent(threshold)}`;
}

export function bytes(value) {
  const units = ["bytes", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export function rate(value) {
  if (value === null) return "–";
  return value > 0 && value < 10 ? value.toFixed(1) : short(Math.round(value));
}

export function microseconds(value) {
  if (value < 1000) return `${Math.round(value)} µs`;
  if (value < 1e6) return `${(value / 1000).toFixed(value < 1e4 ? 1 : 0)} ms`;
  return `${(value / 1e6).toFixed(1)} s`;
}

export function seconds(value) {
  const units = [
    [86400, "day"],
    [3600, "hour"],
    [60, "minute"],
    [1, "second"],
  ];
  const [size, word] = units.find(([least]) => value >= least) || units[3];
  return many(Math.round(value / size), word);
}

export const clock = iso => new Date(iso).toLocaleTimeString("en-GB", {hour: "2-digit", minute: "2-digit"});
export const time = iso => new Date(iso).toLocaleString("en-GB", {dateStyle: "medium", timeStyle: "short"});

// ---- histograms of the server: bucket i counts values below 2^i, the last all the rest ----

export const least = i => (i ? 2 ** (i - 1) : 0);

export function percentile(histogram, part) {
  let left = part * histogram.buckets.reduce((sum, n) => sum + n, 0);
  for (const [i, n] of histogram.buckets.entries()) {
    if (n && left <= n) return i ? least(i) * (1 + left / n) : 0;
    left -= n;
  }
  return 0;
}

// The buckets from the first to the last that has anything: [{i, n}].
export function used(histogram, from = Infinity, to = 0) {
  const all = histogram.buckets.map((n, i) => ({i, n}));
  const filled = all.filter(bucket => bucket.n);
  if (!filled.length) return [];
  return all.slice(Math.min(filled[0].i, from), Math.max(filled.at(-1).i, to) + 1);
}
