# --format, arrays of JSON, lines, bzip2 and xz, keys that are paths and several.
fox="the quick brown fox jumps over the lazy dog"
cat >a.json <<END
[
  {"id": 1, "meta": {"text": "$fox"}},
  {"id": 2, "meta": {"text": "something else that was never said before"}},
  {"id": 3, "meta": {"text": "The QUICK brown fox jumps over the lazy dog!"}}
]
END
echo "== arrays"
doppel fingerprint --text-key meta.text a.json
doppel dedup -q --text-key meta.text a.json -o -
tr -d '\n' <a.json >one-line
doppel dedup -q --text-key meta.text one-line -o -
printf '[{"text":"one two"},{"text":"three four"},{"text":"one two"},{"text":"five six"}]' >packed.json
doppel dedup -q packed.json -o -
doppel dedup -q --threads 4 packed.json -o packed.jsonl && cat packed.jsonl
head -3 a.json | doppel fingerprint --text-key meta.text -
echo "exit $?"
head -c 170 a.json >cut.json
doppel dedup --text-key meta.text cut.json -o -
echo "exit $?"
doppel dedup -q --text-key meta.text a.json --against cut.json -o -
echo "exit $?"
printf '[{"text":"one two"}, 7, {"text":"three four"}, {"text":"five"}]' | doppel fingerprint -
echo "== compressed"
bzip2 -k a.json
xz -k a.json
doppel fingerprint --text-key meta.text a.json.bz2 a.json.xz
head -c 60 a.json.bz2 >cut.json.bz2
head -c 60 a.json.xz >cut.json.xz
doppel fingerprint --text-key meta.text --allow-bad cut.json.bz2 cut.json.xz
echo "exit $?"
echo "== lines"
printf '%s\n\nanother line of text\r\n%s!\n' "$fox" "$fox" >lines.txt
doppel fingerprint --format lines lines.txt
doppel dedup --format lines lines.txt -o unique.txt
cat -A unique.txt
doppel dedup -q --format lines lines.txt -o unique.jsonl
cat unique.jsonl
doppel dedup -q --format lines lines.txt -o - --against a.json --against-format json --against-text-key meta.text
doppel dedup --format lines lines.txt -o unique.csv
echo "exit $?"
doppel fingerprint --format text lines.txt
doppel fingerprint --format xml lines.txt
echo "exit $?"
doppel dedup -q --against-format json a.json -o -
echo "exit $?"
echo "== keys"
printf '{"q":"What is it?","a":"A %s.","meta":{"id":"m","a.b":"x"},"meta.id":"literal"}\n' "$fox" >qa.jsonl
doppel dedup -q --text-key q,a qa.jsonl -o - --removed r.jsonl
doppel fingerprint --json --text-key q,a --id-key meta.id qa.jsonl
doppel fingerprint --json --text-key a --id-key meta.a.b,q qa.jsonl
doppel trim --text-key q,a qa.jsonl -o -
echo "exit $?"
doppel trim --unit sentence --min-words 1 --text-key meta.a.b qa.jsonl qa.jsonl -o - -q
echo "== a run that is kept remembers the format"
doppel dedup -q --format lines lines.txt --work run -o out.txt
doppel report --work run -o report.html
doppel report --work run --format csv -o report.html
echo "exit $?"
doppel dedup -q lines.txt --work run --resume -o out.txt
echo "exit $?"
doppel dedup -q --format lines lines.txt --work run --resume -o out.txt && cat out.txt
echo "== what is wrong with an array names the element"
printf '[\n  1,\n  {"text":"one two"},\n  "three"\n]\n' >elements.json
doppel fingerprint elements.json || echo "exit $?"
