# Names that promise what is not written are refused before anything is read.
try() {
    echo "== $*"
    doppel "$@"
    echo "exit $?"
}
try dedup missing.jsonl -o out.parquet
try dedup missing.jsonl -o out.jsonl.bz2
try dedup missing.jsonl -o out.jsonl --removed removed.jsonl.xz
try dedup missing.jsonl -o out.jsonl --save-sketches sketches.ORC
try pairs missing.jsonl -o pairs.lz4
try cluster missing.jsonl -o groups.snappy
try overlap missing.jsonl -o o.avro
try mirrors missing.jsonl -o m.br
try join missing.u64 -o pairs.zip
try df missing.jsonl -o table.7z
try report --work run -o report.html.bz2
try export --index missing -o seen.arrow
try add --index missing missing.jsonl -o verdicts.parquet
try cluster missing.jsonl -o groups.csv
try pairs missing.jsonl -o pairs.tsv.gz
try overlap missing.jsonl -o page.html
try mirrors missing.jsonl -o page.html
try add --index missing missing.jsonl -o verdicts.csv
try dedup missing.jsonl -o out.jsonl --removed removed.csv
try trim missing.jsonl -o out.jsonl --spans spans.csv
for name in a.mbx a.MBOX a.tab a.tsv.gz a.csv a.warc.zst a.wet a.arc a.xhtml; do
    try dedup missing.jsonl -o "$name"
done
ls
