# What an import reports of documents that the index already has, and an import that is refused.
line() {
    printf '{"id":"%s","text":"%s"}\n' "$1" "$2"
}
text=$(seq -s ' ' 1 60)
{
    line a "$text"
    line b "$text 61"
    line c "$(seq -s ' ' 100 160)"
} >a.jsonl
doppel add --index old --on-duplicate link a.jsonl >/dev/null
doppel export --index old -o old.jsonl
doppel import --index new old.jsonl
echo "== again"
doppel import --index new old.jsonl --json
doppel stats --index new | grep -o '"documents": *[0-9]*\|"copies": *[0-9]*' | paste -sd ' '
echo "== plain records, twice"
doppel import --index plain a.jsonl
doppel import --index plain a.jsonl
echo "== a recipe that does not fit leaves nothing behind"
doppel import --index other --recipe article old.jsonl
echo "exit $?"
[ -e other ] || echo nothing is there
echo "== a count as doppel plan takes it"
doppel add --index many --count 10K a.jsonl | wc -l
doppel add --index many --count 10X a.jsonl
echo "exit $?"
