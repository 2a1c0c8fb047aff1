# Overlap: documents that contain much of another, quotes by --words, evaluation texts in training data by --against.
line() {
    printf '{"id":"%s","text":"%s"}\n' "$1" "$2"
}
quote="it was the best of times it was the worst of times it was the age of wisdom"
{
    line essay "$(seq -s ' ' 1000 1060) $quote $(seq -s ' ' 2000 2060)"
    line other "$(seq -s ' ' 3000 3100)"
    line part "$(seq -s ' ' 1010 1050)"
    line quoting "Said he, \\\"It was the BEST of times, it was the worst of times; it was the age of wisdom!\\\" and left $(seq -s ' ' 4000 4030)"
    line copy "$(seq -s ', ' 3000 3100)!"
    line short "two words"
    line none ""
} >a.jsonl
doppel overlap --sample 1 a.jsonl
echo "== --words"
doppel overlap --words 18 a.jsonl
echo "== --words, --containment"
doppel overlap --words 30 --containment 0.1 --sample 1 a.jsonl
echo "== --against"
line question "$quote" >eval.jsonl
doppel overlap --words 13 --against eval.jsonl a.jsonl
echo "== --output, --json"
doppel overlap --sample 1 a.jsonl -o out.jsonl --json --memory 1K --tmp . | sed 's/"spilledBytes":[0-9]*/"spilledBytes":N/'
doppel overlap --sample 1 --threads 1 a.jsonl | cmp - out.jsonl && echo same
cat a.jsonl | doppel overlap --sample 1 - | cmp - out.jsonl && echo same
echo "== a bad record, a missing file"
echo broken >>a.jsonl
doppel overlap --words 40 a.jsonl missing.jsonl
echo "exit $?"
doppel overlap --strict a.jsonl -o none.jsonl
echo "exit $?"
ls none.jsonl 2>/dev/null
echo "== usage"
for options in "--words 3" "--containment 2" "--containment much" "--json" "--content some" "--words 9 --recipe simhash64:chars=4" \
    "--tmp missing/folder"; do
    doppel overlap $options a.jsonl
    echo "exit $?"
done
doppel overlap a.jsonl -o a.jsonl
echo "exit $?"
