# Texts without words, --annotate over fields of its own, fields that no record has, and a report that knows its keys.
cat >a.jsonl <<'JSON'
{"id":"1","text":""}
{"id":"2","text":"!!!"}
{"id":"3","text":""}
{"id":"4","text":"!!!"}
{"id":"5","text":"!!! "}
{"id":"6","text":"🎉"}
{"id":"7","text":"🎉"}
{"id":"8","html":"<img src=a>"}
{"id":"9","html":"<img src=b>"}
{"id":"10","html":"<img src=a>"}
{"id":"11","text":"some words"}
JSON
for method in auto exact simhash minhash; do
    echo "== $method"
    doppel dedup --method $method a.jsonl -o kept --removed - 2>/dev/null
    cut -c 1-24 kept
    doppel pairs --method $method a.jsonl 2>/dev/null
done
echo "== groups, chains, within"
doppel cluster a.jsonl --link any 2>/dev/null | grep -c '"kept":true'
doppel dedup a.jsonl --by url -o - 2>/dev/null | grep -c .
doppel dedup a.jsonl -o /dev/null --save-sketches sketches 2>/dev/null
doppel dedup a.jsonl --against sketches -o - 2>/dev/null | grep -c .
echo "== an index keeps them apart"
doppel add --index seen a.jsonl -o - 2>/dev/null | grep -c '"isDuplicate":false'

echo "== annotate"
cat >g.jsonl <<'JSON'
{"id":"1","text":"one two three four five six","group":"mine"}
{"group" : {"a":[1,"}"]} , "id":"2","text":"one two three four five six \"group\":1","isDuplicate":null}
{"id":"3","text":"other words, entirely","originalId":"x"}
{"id":"4","text":"and some more"}
JSON
doppel dedup g.jsonl --annotate -o annotated.jsonl
cat annotated.jsonl
doppel dedup annotated.jsonl --annotate -o - 2>/dev/null | cmp - annotated.jsonl && echo "the same again"

echo "== fields that no record has"
cat >f.jsonl <<'JSON'
{"id":"1","text":"one two three four five six","date":"2020-01-01"}
{"id":"2","text":"one two three four five six","url":null}
JSON
doppel dedup f.jsonl --keep newest:dte,largest:date -o - 2>&1
doppel dedup f.jsonl --within sourc -o - 2>&1
doppel pairs f.jsonl --across sourc 2>&1
doppel dedup f.jsonl --url-key link --title-key headline --by content,url -o - 2>&1
doppel mirrors f.jsonl --url-key link 2>&1
doppel fingerprint f.jsonl --id-key key 2>&1
doppel add --index seen f.jsonl --url-key link 2>&1 >/dev/null
echo "some words in a plain file" >plain.txt
doppel dedup plain.txt --keep newest:date -o /dev/null 2>&1

echo "== a report"
sed 's/"text"/"body"/; s/"id"/"key"/' f.jsonl >b.jsonl
doppel dedup b.jsonl --text-key body --id-key key -o /dev/null --work run 2>/dev/null
doppel report --work run -o report.html
grep -c 'one two three four five six' report.html
doppel report --work run --text-key body -o report.html && grep -c 'one two three four five six' report.html
doppel report --work run --text-key text -o other.html
echo "exit $?"
