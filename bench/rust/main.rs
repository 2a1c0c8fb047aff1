//! The crate `simhash` on the start of a benchmark set: rust_peer FILE.bin MEGABYTES. It takes single words, split at white
//! space, as they stand. Prints a line: name, bytes a second (the best of three).
use std::time::Instant;

fn documents(data: &[u8], limit: usize) -> Vec<&str> {
    let (mut at, mut bytes, mut found) = (0, 0, Vec::new());
    while at + 4 <= data.len() && bytes < limit {
        let length = u32::from_le_bytes(data[at..at + 4].try_into().unwrap()) as usize;
        found.push(std::str::from_utf8(&data[at + 4..at + 4 + length]).expect("UTF-8"));
        at += 4 + length;
        bytes += length;
    }
    found
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let data = std::fs::read(&arguments[1]).expect("a set of documents");
    let texts = documents(&data, arguments[2].parse::<usize>().expect("megabytes") * 1_000_000);
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    let (mut best, mut sum) = (f64::MAX, 0u64);
    for _ in 0..3 {
        let started = Instant::now();
        sum = texts.iter().fold(sum, |sum, text| sum.rotate_left(1) ^ simhash::simhash(text));
        best = best.min(started.elapsed().as_secs_f64());
    }
    eprintln!("{sum:016x}");
    println!("crate simhash, single words\t{:.6}", bytes as f64 / best);
}
