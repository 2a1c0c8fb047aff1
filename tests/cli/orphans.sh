# Copies go with their original when it is removed or replaced: get, remove, export, stats and check agree.
line() {
    printf '{"id":"%s","url":"http://example.org/%s","text":"%s"}\n' "$1" "$1" "$2"
}
text=$(seq -s ' ' 1 60)
other=$(seq -s ' ' 100 160)
{
    line a "$text"
    line a2 "$text 61"
    line b "$other"
    line b2 "$other 161"
    line c "$(seq -s ' ' 200 260)"
} >a.jsonl
doppel add --index seen --on-duplicate link a.jsonl >/dev/null
short() {
    grep -o '"id":"[^"]*"\|"canonical":[^,]*\|"originalId":[^,]*' | paste -sd ' ' | sed 's/ "id"/\n"id"/g'
}
doppel get --index seen a2 b2 | short
echo "== a is removed, b replaced"
doppel remove --index seen a
line b "$(seq -s ' ' 300 360)" | doppel add --index seen - | grep -o '"replaced":true'
doppel get --index seen a2 b2 http://example.org/b2
doppel remove --index seen a2
line a2 "$(seq -s ' ' 400 460)" | sed 's/"id":"a2"/"id":"x"/' | doppel check --index seen - | grep -o '"isDuplicate":[a-z]*'
doppel export --index seen | tail -n +2 | short
doppel export --index seen | doppel import --index new --strict - --json
echo "exit $?"
doppel stats --index seen | grep -o '"documents": *[0-9]*\|"copies": *[0-9]*' | paste -sd ' '
doppel verify --index seen | sed 's/,"bytes.*//'
echo "== their ids and addresses are free for others"
line a2 "$text 61" | doppel add --index seen --on-duplicate link - | cut -c1-40
line a3 "$text 62" | sed 's/a3"/a2"/2' | doppel add --index seen --on-duplicate link - | cut -c1-40
doppel get --index seen a2 a3 | short
echo "== earlier exports have such copies"
doppel export --index seen | sed 's/"id":"a3"/"originalGone":true,&/; s/"originalId":"a2"/"originalId":"gone"/' >old.jsonl
doppel import --index again old.jsonl --json
