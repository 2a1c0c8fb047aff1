# A backup made while another process writes reports what is in the copy.
i=0
while [ $i -lt 4000 ]; do
    i=$((i + 1))
    echo "{\"id\":\"id$i\",\"text\":\"words $i $((i * 7)) $((i * 13)) $((i * 17)) $((i * 19))\"}"
done >a.jsonl
head -n 10 a.jsonl | doppel add --index seen - >/dev/null
doppel add --index seen --batch 10 a.jsonl >/dev/null &
for round in 1 2 3 4 5; do
    told=$(doppel backup --index seen "copy$round" | grep -o '"documents":[0-9]*')
    there=$(doppel stats --index "copy$round" | grep -o '"documents": *[0-9]*' | tr -d ' ')
    [ -n "$told" ] && [ "$told" = "$there" ] && echo "round $round: the same"
done
wait
