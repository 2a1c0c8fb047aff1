# dedup: what it refuses, and how it ends when it cannot write: the output is whole or absent.
line() {
    printf '{"id":"%s","text":"%s"}\n' "$1" "$2"
}
{
    line a "one of several documents with some words"
    line b "one of several documents with some words"
    line c "another one of several documents that has words"
} >a.jsonl
quiet() {
    "$@" 2>&1 | grep -v 'bands of .* are expected'
}
try() {
    doppel dedup "$@" >stdout 2>stderr
    code=$?
    grep -v 'bands of .* are expected' stderr
    cat stdout
    echo "exit $code"
}
echo "== outputs that are read"
try a.jsonl -o a.jsonl
ln -s a.jsonl link.jsonl
try a.jsonl -o link.jsonl
try a.jsonl --against a.jsonl -o out.jsonl --removed ./a.jsonl
mkdir folder
cp a.jsonl folder
try folder -o folder/out.jsonl
try folder -o folder/../folder/out.jsonl
ls folder
try a.jsonl -o out.jsonl --removed out.jsonl
try a.jsonl -o out.jsonl --removed ./out.jsonl
try a.jsonl -o "$PWD/out.jsonl" --removed-documents folder/../out.jsonl
ln -s folder/soon.jsonl soon
ln -s soon sooner
try a.jsonl -o folder/soon.jsonl --removed sooner
try a.jsonl -o - --removed -
try a.jsonl -o - --removed-documents /dev/stdout
try a.jsonl --removed - --json
try a.jsonl --dry-run --removed /dev/stdout --json
try a.jsonl -o - --json
quiet doppel pairs a.jsonl -o a.jsonl
quiet doppel cluster folder -o folder/groups.jsonl
echo "== options"
try a.jsonl
try a.jsonl -o out.jsonl --keep best
try a.jsonl -o out.jsonl --keep newest
try a.jsonl -o out.jsonl --within host --across host
try a.jsonl -o out.jsonl --across host --link any
try a.jsonl -o out.jsonl --similarity 1.5
try a.jsonl -o out.jsonl --method minhash --bands 100
try a.jsonl -o out.jsonl --by words
echo "== places that cannot be written"
try a.jsonl -o missing/out.jsonl
try a.jsonl -o folder
try a.jsonl -o /dev/full
try a.jsonl -o out.jsonl --removed missing/removed.jsonl
try a.jsonl -o out.jsonl --tmp missing
echo "== a full disk, for the output and for the files of --tmp"
long=$(seq -s ' ' 1 200)
seq 1 2000 | sed "s/.*/{\"id\":\"&\",\"text\":\"& $long\"}/" >many.jsonl
(
    ulimit -f 1200
    try --method exact many.jsonl -o out.jsonl
    ulimit -f 100
    try many.jsonl -o out.jsonl --tmp .
)
echo "== inputs that cannot be read"
try missing.jsonl -o out.jsonl
echo broken >>a.jsonl
try a.jsonl --against missing.jsonl -o out.jsonl
try a.jsonl missing.jsonl -o some.jsonl
try --strict a.jsonl -o out.jsonl
ls ./*.jsonl*
echo "== interrupted"
. "$(dirname "$0")/interrupt.inc"
interrupt a.jsonl dedup - -o out.jsonl
tail -n 1 stderr
ls out.jsonl* 2>/dev/null || echo "no output"
# A pipe that has a name can be read only once.
mkfifo once
cat a.jsonl >once &
doppel dedup once -o out.jsonl 2>&1 | tail -n 1
# More files than may be open.
mkdir many
i=0
while [ $i -lt 80 ]; do
    printf '{"id":%d,"text":"one two three four five six seven %d %d"}\n' $i $((i % 7)) $((i % 7)) >many/$i.jsonl
    i=$((i + 1))
done
(
    ulimit -n 40
    doppel dedup many -o out.jsonl --threads 2 2>&1 | tail -n 1
)
wc -l <out.jsonl | tr -d ' '
