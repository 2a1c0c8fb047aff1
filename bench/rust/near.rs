//! Published crates that find fingerprints within 3 bits: near_peer PEER SET.u64 QUERIES.u64 (raw little-endian numbers).
//! Prints a line a figure: name, tab, number. Finding: build, rate (queries a second), matches, bytes (an entry). All
//! pairs: seconds, all pairs, peak. Memory is the peak of the process, less what it had without the set.
use std::time::Instant;

const DISTANCE: usize = 3;

fn numbers(path: &str) -> Vec<u64> {
    let data = std::fs::read(path).expect("a raw file");
    data.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect()
}

/// Bytes from a line of what the system tells of this process.
fn memory(name: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or("");
    1024.0 * line.split_whitespace().nth(1).and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0)
}

fn tell(name: &str, value: f64) {
    println!("{name}\t{value}");
}

/// Builds with `build`, then asks with `ask`, which gives the number of matches of a query.
fn find<I>(set: Vec<u64>, queries: &[u64], build: impl Fn(Vec<u64>) -> I, ask: impl Fn(&I, &[u64]) -> usize) {
    let count = set.len() as f64;
    let before = memory("VmRSS") - 8.0 * count;
    let started = Instant::now();
    let index = build(set);
    tell("build", started.elapsed().as_secs_f64());
    ask(&index, queries);
    let started = Instant::now();
    let matches = ask(&index, queries);
    tell("rate", queries.len() as f64 / started.elapsed().as_secs_f64());
    tell("matches", matches as f64);
    tell("bytes", (memory("VmHWM") - before) / count);
}

fn mih(set: Vec<u64>, queries: &[u64]) {
    let ask = |index: &mih_rs::Index<u64>, queries: &[u64]| {
        let mut searcher = index.range_searcher();
        queries.iter().map(|&query| searcher.run(query, DISTANCE).len()).sum()
    };
    find(set, queries, |set| mih_rs::Index::new(set).unwrap(), ask);
}

/// Its distance is the first that does not match; five blocks of which one is equal make it exact.
fn gaoya(set: Vec<u64>, queries: &[u64]) {
    let build = |set: Vec<u64>| {
        let mut index = gaoya::simhash::SimHashIndex::<u64, u32>::new(DISTANCE + 2, DISTANCE + 1);
        set.iter().enumerate().for_each(|(owner, &fingerprint)| index.insert(owner as u32, fingerprint));
        index
    };
    find(set, queries, build, |index, queries| queries.iter().map(|query| index.query(query).len()).sum());
}

struct Hamming;
impl bk_tree::Metric<u64> for Hamming {
    fn distance(&self, a: &u64, b: &u64) -> u32 {
        (a ^ b).count_ones()
    }
    fn threshold_distance(&self, a: &u64, b: &u64, _: u32) -> Option<u32> {
        Some(self.distance(a, b))
    }
}

fn bk_tree(set: Vec<u64>, queries: &[u64]) {
    let build = |set: Vec<u64>| {
        let mut tree = bk_tree::BKTree::new(Hamming);
        tree.extend(set);
        tree
    };
    find(set, queries, build, |tree, queries| queries.iter().map(|query| tree.find(query, DISTANCE as u32).count()).sum());
}

/// The joiner of find-simdoc. Its radius is a share of the bits, rounded up.
fn all_pairs(set: Vec<u64>) {
    let before = memory("VmRSS") - 8.0 * set.len() as f64;
    let started = Instant::now();
    let mut joiner = all_pairs_hamming::ChunkedJoiner::<u64>::new(1);
    set.iter().for_each(|&fingerprint| joiner.add([fingerprint]).unwrap());
    let pairs = joiner.similar_pairs(DISTANCE as f64 / 64.0);
    tell("seconds", started.elapsed().as_secs_f64());
    tell("all pairs", pairs.len() as f64);
    tell("peak", memory("VmHWM") - before);
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (set, queries) = (numbers(&arguments[2]), numbers(&arguments[3]));
    match arguments[1].as_str() {
        "mih-rs" => mih(set, &queries),
        "gaoya" => gaoya(set, &queries),
        "bk-tree" => bk_tree(set, &queries),
        "all-pairs-hamming" => all_pairs(set),
        other => panic!("no such peer: {other}"),
    }
}
