# Groups of near documents: the first is kept, the others belong to the nearest kept one; chains with --link any.
long=$(seq -s ' ' 1000 1400)
line() {
    printf '{"id":"%s","text":"%s"}\n' "$1" "$2"
}
{
    line first "$long"
    line lone "this one is like none of the others here"
    line edited "$(echo "$long" | sed 's/ 1150 / changed /')"
    line more "$(echo "$long" | sed 's/ 1150 / changed /; s/ 1250 / changed /')"
    line edited2 "$(echo "$long" | sed 's/ 1150 / changed /')"
    line copy "$long"
    line short "only three words"
    line none ""
    line short2 "Only three: WORDS."
    line none2 ""
} >a.jsonl
doppel pairs --distance 3 a.jsonl
doppel cluster --distance 3 a.jsonl
echo "== --link any"
doppel cluster --distance 3 --link any --keep first a.jsonl
echo "== --output, --json"
summary() {
    sed 's/,"spilledBytes":[0-9]*//' summary
}
doppel cluster --distance 3 --link kept a.jsonl -o groups.jsonl --json >summary
summary
doppel cluster --distance 3 a.jsonl --threads 3 | cmp - groups.jsonl && echo same
echo "== a missing file"
doppel cluster --distance 0 a.jsonl missing.jsonl -o groups.jsonl --json >summary
echo "exit $?"
summary
echo "== by similarity"
doppel cluster a.jsonl
doppel cluster --similarity 0.98 --keep last a.jsonl
echo "== --top"
doppel cluster --top 1 a.jsonl
