# Files of bad records: the first ten of each kind are named, all are counted; a JSON document is distinguished from JSONL.
{ echo "["; seq 1 100 | sed 's/.*/  {"id": &, "text": "a"},/'; echo "]"; } >array.json
printf '{\n  "text": 1\n}\n' >object.json
printf '{"text": 1,\n"id": 2}\n' >other.json
seq 1 15 | sed 's/.*/{"id":&,"text":"caf\\ud800"}\nbroken/' >repaired.jsonl
for threads in 1 3; do
    doppel fingerprint --threads $threads . >out
    echo "exit $?"
done
cat >behind.jsonl <<'END'
{"id":"t","text":"x"} garbage
{"id":"t","text":"x"},
{"id":"t","text":"x"}{"id":"u","text":"x"}
[{"id":"t","text":"x"}]
END
doppel compare behind.jsonl array.json
echo "exit $?"
