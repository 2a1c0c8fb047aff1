# dedup: the sizes of groups and the values in them, several copies of each, copies that are not contained.
fox="the quick brown fox jumps over the lazy dog and then it sleeps in the warm sun until noon"
{
    printf '{"id":"a","text":"%s","source":"web"}\n' "$fox"
    printf '{"id":"b","text":"%s","source":"news"}\n' "$fox today"
    printf '{"id":"c","text":"%s","source":"web","groupSize":9}\n' "$fox"
    printf '{"id":"d","text":"%s"}\n' "$fox again"
    printf '{"id":"e","text":"quite another text with other words","source":5}\n'
} >a.jsonl
quiet() {
    "$@" 2>&1 | grep -v 'bands of .* are expected'
}
echo "== annotate"
quiet doppel dedup a.jsonl -o - --annotate
quiet doppel dedup -q a.jsonl -o - --annotate --count-by source --annotate-prefix d_
quiet doppel dedup -q a.jsonl -o - --annotate --count-by source --keep longest --against a.jsonl | head -2
quiet doppel dedup -q a.jsonl -o out.jsonl --annotate --count-by sourec
echo "== keep-copies"
quiet doppel dedup -q a.jsonl -o out.jsonl --keep-copies 3 --keep longest --json | grep -o '"kept":.*'
quiet doppel dedup a.jsonl -o out.jsonl --keep-copies 2 --keep longest --removed removed.jsonl
cut -c1-9 out.jsonl
cat removed.jsonl
quiet doppel dedup a.jsonl -o out.jsonl --keep-copies 2 --against a.jsonl
quiet doppel dedup a.jsonl -o - --keep-copies 2 --annotate | grep -v text
quiet doppel dedup a.jsonl -o - --keep-copies 2 --annotate --annotate-kept --count-by source
printf 'id,text\n1,%s\n2,%s\n3,other\n' "$fox" "$fox" >a.csv
quiet doppel dedup a.csv -o kept.csv --annotate --annotate-kept
cat kept.csv
quiet doppel dedup a.jsonl -o out.jsonl --annotate-kept
echo "== only-contained"
quiet doppel dedup a.jsonl -o - --only-contained 1 --removed removed.jsonl | cut -c1-60
cat removed.jsonl
quiet doppel dedup -q a.jsonl -o - --only-contained 1 --keep longest | cut -c1-9
quiet doppel cluster a.jsonl --only-contained 0.95
quiet doppel dedup a.jsonl --work run --only-contained 1 --keep-copies 2 -o out.jsonl
cut -c1-9 out.jsonl
quiet doppel dedup a.jsonl --work run --resume -o out.jsonl --only-contained 1
doppel report --work run -o report.html
