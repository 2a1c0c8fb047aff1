# Nobody reads the verdicts any more: what add was given is added all the same.
i=0
while [ $i -lt 3000 ]; do
    i=$((i + 1))
    echo "{\"id\":\"id$i\",\"text\":\"words $i $((i * 7)) $((i * 13))\"}"
done >a.jsonl
{
    doppel add --index seen --batch 100 a.jsonl
    echo "exit $?" >&2
} | head -n 1 >/dev/null
doppel stats --index seen | grep -o '"documents": *[0-9]*\|"copies": *[0-9]*' | paste -sd ' '
{
    doppel check --index seen --batch 100 a.jsonl
    echo "exit $?" >&2
} | head -n 1 >/dev/null
