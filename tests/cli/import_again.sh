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
echo "== copies of what is a duplicate here go to its original, and all are counted"
page() {
    printf '{"id":"%s","url":"http://example.org/%s","text":"%s"}\n' "$1" "$1" "$2"
}
{
    page x "$text"
    page x1 "$text 61"
    page x2 "2 $text"
    page o "$(seq -s ' ' 500 560)"
    page o1 "$(seq -s ' ' 500 561)"
} | doppel add --index one --on-duplicate link - >/dev/null
page o9 "$(seq -s ' ' 500 562)" | doppel add --index one - >/dev/null
page y "$text" | doppel add --index both - >/dev/null
for again in 1 2; do
    doppel export --index one | doppel import --index both - --json
    doppel get --index both y o x1 | grep -o '^{"id":"[a-z0-9]*"\|"originalId":[^,]*\|"duplicates":[0-9]*\|"copies":[0-9]*' | paste -sd ' '
done
doppel check --index both - <<END | cut -c1-70
$(page new "$(seq -s ' ' 700 760)" | sed 's/org.new/org\/x2/')
END
page z "$text" | doppel add --index two - >/dev/null
doppel export --index one | doppel import --index two --on-duplicate skip - --json
doppel export --index one >one.jsonl
doppel import --index twice one.jsonl one.jsonl --json
echo "== distance 0"
page a "$text" | doppel add --index exact --distance 0 - >/dev/null
doppel export --index exact | doppel import --index copy - 
doppel stats --index copy | grep -o '"distance": *[0-9]*'
echo "== texts that are not UTF-8, or not words"
printf 'caf\351s of the old harbour \377 and its many gulls\n' >caf.txt
printf '\377. \351 -\n' >none.txt
printf 'caf\351s\n' >few.txt
doppel add --index texts --keep-text *.txt >/dev/null 2>&1
doppel export --index texts | doppel import --index kept -
for name in caf few none; do
    for index in texts kept; do
        doppel get --index $index $name.txt | LC_ALL=C.UTF-8 grep -o '"words":[0-9]*\|"digest":"\?[0-9a-z]\{4\}\|"text":.*' | paste -sd ' '
    done
done
