# The origin of a document is exported and imported; another origin is another document.
text=$(seq -s ' ' 1 60)
printf '{"id":"a","text":"%s"}\n{"id":"b","url":"http://b.example/","text":"%s"}\n' "$text" "$text" >a.jsonl
doppel add --index old --on-duplicate link a.jsonl >/dev/null
doppel export --index old -o old.jsonl
sed 's/}$/,"origin":"pages\/3\/1207"}/; 1s/,"origin.*"}/}/; $s/1207/1208/' old.jsonl >placed.jsonl
doppel import --index new placed.jsonl
doppel export --index new -o again.jsonl
grep -o '"id":"[^"]*"\|"origin":"[^"]*"' again.jsonl
echo "== again"
doppel import --index new again.jsonl --json
echo "== from elsewhere"
sed 's/1207/9/' again.jsonl >moved.jsonl
doppel import --index new moved.jsonl --json
echo "== too long"
sed "s/1207/$(seq -s '' 1 500)/" again.jsonl >long.jsonl
doppel import --index other long.jsonl --json
