# get: all that is remembered; remove: and forgotten.
{
    printf '{"id":"a","url":"http://Example.org/a?utm_source=x","title":"A \\"title\\"","source":"wire","n":1,"text":"%s"}\n' "$(seq -s ' ' 1 20)"
    printf '{"id":"wide \\u00e9\\t","text":"%s"}\n' "$(seq -s ' ' 30 60)"
    echo '{"id":"empty","text":""}'
} >a.jsonl
show() {
    sed 's/"added":"[^"]*"/"added":"..."/; s/"expires":"[^"]*"/"expires":"..."/'
}
doppel add --index seen --keep-text --ttl 30d a.jsonl >/dev/null
doppel get --index seen a https://www.example.org/a empty | show
doppel get --index seen nobody "$(printf 'wide \303\251\t')" 2>&1 | show
doppel get --index seen nobody
echo "exit $?"
echo "== remove"
doppel remove --index seen a nobody
echo "exit $?"
doppel get --index seen a
echo "exit $?"
doppel remove --index seen a
echo "== what is gone does not match"
doppel check --index seen a.jsonl
echo "== and can come again"
doppel add --index seen a.jsonl | cut -c1-60
