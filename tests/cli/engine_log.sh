# The log: a line for each request and each answer, as text or JSON, by level.
echo '{"id":"a","url":"http://example.org/a","text":"some words for a document"}' >a.jsonl
steady() {
    sed 's/^[0-9]\{4\}-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]Z /TIME /; s/[0-9.]* ms/N ms/; s/\("\?[a-z]*[mM]icroseconds"\?[:=]\)[0-9]*/\1N/; s/\(took[:=]\)[0-9.]*/\1N/'
}
doppel add --index seen --log log a.jsonl >/dev/null
doppel check --index seen --log log a.jsonl >/dev/null
steady <log
doppel check --index seen --log - a.jsonl 2>&1 >/dev/null | steady
doppel check --index seen --log json --log-format json a.jsonl >/dev/null
steady <json
python3 -c 'import json; [json.loads(line) for line in open("json")]' && echo "is JSON"
doppel check --index seen --log quiet --log-level error a.jsonl >/dev/null
wc -c <quiet
doppel check --index seen --log none/log a.jsonl
echo "exit $?"
