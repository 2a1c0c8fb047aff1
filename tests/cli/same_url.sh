# Other text at a known URL: refresh holds for check as it does for add.
line() {
    printf '{"id":"%s","url":"http://example.org/%s","text":"%s"}\n' "$1" "$2" "$3"
}
one=$(seq -s ' ' 1 60)
two=$(seq -s ' ' 100 160)
{
    line a a "$one"
    line b b "$two"
} >first.jsonl
{
    line new a "$(seq -s ' ' 200 260)"
    line moved a "$two"
    line same a "$one"
    line near a "$one 61"
} >later.jsonl
short() {
    grep -o '"id":"[^"]*"\|"isDuplicate":[a-z]*\|"reason":[^,]*\|"originalId":[^,]*\|"replaced":[a-z]*' | paste -sd ' ' | sed 's/ "id"/\n"id"/g'
}
for what in duplicate refresh; do
    doppel add --index $what --on-same-url $what first.jsonl >/dev/null
    echo "== $what: check"
    doppel check --index $what later.jsonl | short
    for id in new moved same near; do
        rm -rf copy
        doppel backup --index $what copy >/dev/null
        grep "\"id\":\"$id\"" later.jsonl >one.jsonl
        doppel check --index copy one.jsonl | sed 's/,"known.*//' >checked
        doppel add --index copy one.jsonl | sed 's/,"known.*//; s/,"replaced":true//' >added
        cmp checked added
    done
done
echo "== for one run"
doppel check --index duplicate --on-same-url refresh later.jsonl | short
