# Pairs of near documents: copies, edited copies, short ones by their words alone, none for documents without words.
long=$(seq -s ' ' 1000 1400)
other=$(seq -s ' ' 5000 5400)
line() {
    printf '{"id":"%s","text":"%s"}\n' "$1" "$2"
}
{
    line first "$long"
    line other "$other"
    line edited "$(echo "$long" | sed 's/ 1150 / changed /')"
    line same "$(echo "$long" | sed 's/ 1100 / changed /')"
    line copy "$(echo "$long" | sed 's/ /, /g')!"
    line short "only three words"
    line none "!!!"
    line short2 "Only three: WORDS."
    line short3 "only four more words"
    line none2 ""
    line 'a \"quoted\" id' "$other"
    line short4 "only three words"
    line copy2 "$long"
} >a.jsonl
doppel pairs a.jsonl
echo "== --collapse"
doppel pairs --collapse a.jsonl
echo "== --distance 0"
doppel pairs --method simhash --distance 0 a.jsonl
echo "== --min-words 0, 128 bits"
doppel pairs --min-words 0 --bits 128 --distance 9 a.jsonl | grep -c .
echo "== --output, --json"
summary() {
    sed 's/,"spilledBytes":[0-9]*//' summary
}
doppel pairs a.jsonl -o pairs.jsonl --json >summary
summary
doppel pairs a.jsonl | cmp - pairs.jsonl && echo same
echo "== a bad record, a missing file"
echo broken >>a.jsonl
doppel pairs --collapse a.jsonl missing.jsonl -o pairs.jsonl --json >summary
echo "exit $?"
summary
doppel pairs --strict a.jsonl
echo "exit $?"
echo "== nothing"
: >empty.jsonl
doppel pairs empty.jsonl
echo "exit $?"
echo "== --verbose"
printf '{"id":"a","text":"one two three four five six"}\n' >v.jsonl
doppel pairs --verbose v.jsonl
