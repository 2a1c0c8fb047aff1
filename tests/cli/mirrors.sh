# Mirrors: hosts and prefixes whose pages at equal paths are near-identical; the same page on a mirror.
page() {
    printf '{"url":"%s","text":"%s"}\n' "$1" "$(seq -s ' ' "$2" "$(($2 + 80))")"
}
for i in 1 2 3 4; do
    page "https://www.first.example/$i.html" "${i}000"
    page "http://second.example/$i.html?utm_source=feed" "${i}000"
    page "http://big.example/pub/first/$i.html" "${i}000"
    page "http://big.example/$i.html" "${i}500"
    page "http://first.example/about/$i" "${i}600"
    page "http://other.example/$i.html" "${i}700"
done >crawl.jsonl
printf '{"url":"http://second.example/5.html","text":"!"}\n{"text":"no address"}\n' >>crawl.jsonl
doppel mirrors crawl.jsonl
echo "== --page"
doppel mirrors --page http://second.example/2.html crawl.jsonl
doppel mirrors --page http://first.example/about/2 crawl.jsonl
doppel mirrors --page http://nowhere.example/ crawl.jsonl
echo "== --min-paths, --min-score"
doppel mirrors --min-paths 5 crawl.jsonl
doppel mirrors --min-score 0.9 crawl.jsonl | grep -c .
echo "== --output, --json"
doppel mirrors crawl.jsonl -o out.jsonl --json --memory 1K --tmp . | sed 's/"spilledBytes":[0-9]*/"spilledBytes":N/'
doppel mirrors --threads 1 crawl.jsonl | cmp - out.jsonl && echo same
echo "== nothing"
echo '{"text":"no address"}' >none.jsonl
doppel mirrors none.jsonl
echo "exit $?"
echo "== a missing file"
doppel mirrors crawl.jsonl missing.jsonl | grep -c .
doppel mirrors missing.jsonl
echo "exit $?"
echo "== usage"
for options in "--page nonsense" "--min-score 0" "--similarity 1.1" "--json"; do
    doppel mirrors $options crawl.jsonl
    echo "exit $?"
done
doppel mirrors crawl.jsonl -o crawl.jsonl
echo "exit $?"
