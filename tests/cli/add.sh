# add: a verdict a line in input order, the same for every number of threads and every batch; ids that are missing.
words() {
    seq -s ' ' "$1" "$2"
}
line() {
    printf '{"id":"%s","url":"%s","title":"%s","text":"%s"}\n' "$1" "$2" "$3" "$4"
}
long=$(words 1000 1100)
edited=$(echo "$long" | sed 's/ 1050 / changed /')
{
    line first http://example.org/a "A title that is long enough" "$long"
    line lone http://example.org/b "Quite another title, for this" "this one is like none of the others in here"
    line edited http://example.org/c "" "$edited"
    line copy http://example.org/d "" "$(echo "$long" | sed 's/ /, /g')!"
    line url 'HTTPS://www.example.org:443/x/../a/?utm_source=mail#top' "" "$(words 5000 5100)"
    line title http://example.org/e "A title that is lung enough" "$(words 7000 7100)"
    line short "" "" "only three words"
    line short2 "" "" "Only three: WORDS."
    line none "" "" ""
    line none2 "" "" "!"
} >a.jsonl
doppel add --index seen --title-veto off a.jsonl
echo "exit $?"
echo "== once more: the first verdicts again"
doppel add --index seen a.jsonl -o again.jsonl --json
echo "exit $?"
wc -l <again.jsonl
echo "== an id with other words: the new version takes its place"
line lone http://example.org/b "" "it has changed since it was here, and changed much" | doppel add --index seen -
line later "" "" "this one is like none of the others in here" | doppel add --index seen -
echo "== a title over quite other words, with and without the veto"
for veto in off on; do
    line other "" "A title that is long enough." "$(words 8000 8100)" | doppel check --index seen --title-veto $veto -
done
echo "== no id: the canonical URL, else the digest"
{
    echo '{"url":"https://www.example.org/new/?utm_source=x","text":"a page that has an address and no id"}'
    echo '{"text":"a text that has neither an address nor an id"}'
    echo '{"id":17,"text":"a text with a number for its id"}'
} | doppel add --index seen -
echo "a plain file has its path" >plain.txt
doppel add --index seen ./plain.txt
echo "== threads and batches"
i=0
while [ $i -lt 400 ]; do
    i=$((i + 1))
    line "id$i" "http://example.org/$((i % 150))" "" "text number $((i % 200)) of this file, $((i % 200 * 7919 % 10007)) and $((i % 97)) words"
    [ $((i % 100)) -ne 0 ] || echo broken
done >many.jsonl
doppel add --index one --threads 1 many.jsonl >one.out 2>one.messages
for how in "--threads 2" "--threads 3 --batch 7" "--batch 1" "--batch 100000"; do
    rm -rf many
    # shellcheck disable=SC2086 # words
    doppel add --index many $how many.jsonl >many.out 2>many.messages
    cmp one.out many.out && cmp one.messages many.messages && echo "$how: same"
done
rm -rf many
doppel add --index many - <many.jsonl >many.out 2>/dev/null
cmp one.out many.out && echo "stdin: same"
wc -l <one.out
cat one.messages
