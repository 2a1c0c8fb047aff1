# --on-duplicate: skip counts, link remembers the URL and fields under the original, store keeps it, but not as an original.
line() {
    printf '{"id":"%s","url":"%s","source":"%s","date":"2026-11-15","text":"%s"}\n' "$1" "$2" "$3" "$4"
}
text=$(seq -s ' ' 1 100)
{
    line a http://example.org/a one "$text"
    line b http://example.net/b two "$text"
    line c http://example.com/c three "$text 101"
} >a.jsonl
show() {
    sed 's/"added":"[^"]*"/"added":"..."/; s/"lastDuplicate":"[^"]*"/"lastDuplicate":"..."/'
}
for how in skip link store; do
    echo "== $how"
    doppel add --index $how --on-duplicate $how a.jsonl | cut -c1-90
    doppel get --index $how a b http://example.net/b 2>&1 | show
    echo '{"id":"d","url":"http://example.net/b/","text":"other words at the address of a copy"}' |
        doppel check --index $how -
done
echo "== in words: the address of a copy is not that of its original"
doppel check --index link --print text https://www.example.net/b/ http://example.org/a
echo "== other text at a known URL"
line a2 http://example.org/a one "$(seq -s ' ' 300 400)" >b.jsonl
doppel check --index link b.jsonl
doppel add --index link --on-same-url refresh b.jsonl
doppel get --index link a a2 2>&1 | cut -c1-60
