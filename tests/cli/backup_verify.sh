# backup: a whole copy; verify: damage is found, named, and the rest still works.
i=0
while [ $i -lt 300 ]; do
    i=$((i + 1))
    echo "{\"id\":\"id$i\",\"text\":\"$(seq -s ' ' $((i * 100)) $((i * 100 + 60)))\"}"
done >a.jsonl
doppel add --index seen a.jsonl >/dev/null
numbers() {
    sed 's/"bytes":[0-9]*/"bytes":N/'
}
doppel verify --index seen | numbers
doppel backup --index seen copy
echo "exit $?"
doppel verify --index copy | numbers
doppel check --index copy a.jsonl | grep -c '"isDuplicate":true'
doppel backup --index seen copy
echo "exit $?: there already"
doppel backup --index seen none/copy
echo "exit $?: no folder for it"
echo "== a damaged byte"
file=$(cd copy && echo documents-*.mdb)
size=$(wc -c <"copy/$file")
offset=$(grep -abo 'id150' "copy/$file" | tail -n 1 | cut -d: -f1)
[ -n "$offset" ] && [ "$size" -gt "$offset" ] && echo found
printf 'X' | dd of="copy/$file" bs=1 seek="$offset" conv=notrunc 2>/dev/null
doppel verify --index copy >out 2>findings
echo "exit $?"
numbers <out
head -n 3 findings
doppel check --index copy a.jsonl >verdicts
echo "exit $?"
grep -c '"isDuplicate":true' verdicts
doppel get --index copy id150
echo "exit $?"
doppel export --index copy -o copy.jsonl --json
echo "exit $?"
doppel export --index copy >copy.jsonl
echo "exit $?"
grep -c '"id":' copy.jsonl
echo "== cut short"
truncate -s "$((size / 2))" "copy/$file"
doppel verify --index copy >/dev/null 2>findings
echo "exit $?"
[ -s findings ] && echo told
doppel check --index copy a.jsonl >/dev/null 2>messages
echo "exit $?"
[ -s messages ] && echo told
