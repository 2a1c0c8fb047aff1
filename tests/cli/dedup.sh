# dedup: kept documents byte for byte, an account of what went, everything adds up.
words() {
    seq -s ' ' "$1" "$2"
}
line() {
    printf '{"id":"%s","text":"%s"}\n' "$1" "$2"
}
long=$(words 1000 1100)
{
    line first "$long"
    line lone "this one is like none of the others in here"
    printf '  {"id": "edited" , "text": "%s", "more": {"a":[1,{}]}}  \n' "$(echo "$long" | sed 's/ 1050 / changed /')"
    line copy "$(echo "$long" | sed 's/ /, /g')!"
    line short "only three words"
    line none ""
    line short2 "Only three: WORDS."
    line none2 "!"
    printf '{"text":"%s"}\n' "$long"
    printf '{"id":"copy","text":"a document with an id that another one has"}'
} >a.jsonl
doppel dedup a.jsonl -o kept.jsonl --removed removed.jsonl --json >summary
sed 's/,"spilledBytes":[0-9]*//' summary
echo "== kept"
cut -c1-60 kept.jsonl
echo "== removed"
cat removed.jsonl
echo "== of what is kept nothing goes"
doppel dedup kept.jsonl -o again.jsonl
cmp kept.jsonl again.jsonl && echo same
echo "== --annotate: records as they were, and three members more"
doppel dedup a.jsonl -o annotated.jsonl --annotate
sed 's/"text": *"[^"]*"/"text":"..."/' annotated.jsonl
echo "== --keep, --link"
for rule in last longest shortest; do
    doppel dedup a.jsonl -o - --keep $rule 2>/dev/null | sed 's/,* *"text": *"[^"]*"//'
done
doppel dedup a.jsonl -o - --link any 2>/dev/null | cut -c1-20
echo "== --against"
head -n 2 a.jsonl >old.jsonl
doppel dedup a.jsonl --against old.jsonl -o new.jsonl --removed removed.jsonl
cut -c1-40 new.jsonl
cat removed.jsonl
echo "== --dry-run writes nothing"
rm -f dry.jsonl
doppel dedup a.jsonl -o dry.jsonl --dry-run
ls dry.jsonl 2>/dev/null
echo "== other methods"
for method in 'exact' 'simhash --distance 3' 'minhash --bands 4 --rows 2' 'auto --similarity 0.99'; do
    # shellcheck disable=SC2086 # words
    doppel dedup --method $method a.jsonl -o - --removed removed.jsonl 2>&1 >/dev/null | tail -n 1
done
doppel dedup --recipe simhash64:chars=9 a.jsonl -o /dev/null 2>&1 | tail -n 1
doppel dedup --bits 128 --method simhash a.jsonl -o /dev/null 2>&1 | tail -n 1
doppel dedup --min-words 200 a.jsonl -o /dev/null 2>&1 | tail -n 1
