# trim: bad input, what it refuses, and how it ends when it cannot write: outputs are whole or absent.
line() {
    printf '{"id":"%s","text":"%s"}\n' "$1" "$2"
}
try() {
    echo "== $*"
    doppel trim "$@" 2>&1
    echo "exit $?"
}
{
    line a 'one two three four five six'
    echo broken
    line b 'one two three four five six\nseven'
    echo '{"id":"c","text":7}'
    line d "lone \\ud800 surrogate"
} >bad.jsonl
echo "== bad records"
try bad.jsonl -o -
try bad.jsonl -o out.jsonl --json | sed 's/,"spilledBytes".*/}/'
rm out.jsonl
try --strict bad.jsonl -o out.jsonl
try bad.jsonl missing.jsonl -o some.jsonl
try missing.jsonl -o out.jsonl --spans spans.jsonl
try bad.jsonl --text-key body -o out.jsonl
try bad.jsonl --text-key body --allow-bad -o /dev/null
line long "$(seq -s ' ' 1 1000)" >>bad.jsonl
try bad.jsonl --max-record 1K -o /dev/null
echo "== nothing in it"
: >empty.jsonl
mkdir none
try empty.jsonl -o -
try none -o -
try - -o - </dev/null
line e '' >nothing.jsonl
try nothing.jsonl -o - --drop-below 5
{
    line a 'one two three four five six'
    line b 'ONE two three four five six'
} >a.jsonl
try a.jsonl -o -
line c 'seven eight nine ten eleven twelve' >c.jsonl
try c.jsonl -o /dev/null
try c.jsonl -o /dev/null --unit paragraph
try c.jsonl -o /dev/null --unit sentence
echo "== options"
for options in '' '-o out.jsonl --unit word' '-o out.jsonl --unit passage --run 2' '-o out.jsonl --words 9' \
    '-o out.jsonl --run 0' '-o out.jsonl --unit passage --words 0' '-o out.jsonl --min-count 0' \
    '-o out.jsonl --min-count 1' '-o out.jsonl --keep-first maybe' '-o out.jsonl --within host --across host' \
    '-o out.jsonl --keep best' '-o out.jsonl --drop-share 2' '-o out.jsonl --resume' \
    '-o out.jsonl --recipe simhash64:chars=4' '-o out.jsonl --recipe article' '-o out.jsonl --content some' \
    '-o - --json' '-o out.parquet' '--output-dir folder' '-o out.csv' '-o out.jsonl.xz' '-o out.jsonl --spans s.parquet' \
    '-o a.jsonl' '-o out.jsonl --spans out.jsonl' '-o out.jsonl --spans out2.jsonl --dropped a.jsonl' \
    '-o missing/out.jsonl' '-o out.jsonl --spans missing/spans.jsonl' '-o /dev/full' '-o out.jsonl --tmp missing'; do
    # shellcheck disable=SC2086 # words
    try a.jsonl $options
done
echo "== a full disk"
seq 1 20000 | sed 's/.*/{"id":"&","text":"& one two three four five six seven eight nine ten"}/' >many.jsonl
(
    ulimit -f 1200
    try many.jsonl -o out.jsonl --spans spans.jsonl
)
ls
echo "== a reader that goes away"
doppel trim many.jsonl -o - | head -n 1
