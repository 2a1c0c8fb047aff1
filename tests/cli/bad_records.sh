# Records that are bad: each named with file and line, counted at the end, the rest done.
cat >a.jsonl <<'END'
{"id":"good","text":"one good record with enough words"}
this is not JSON
{"id":"no text"}
{"id":"number","text":12}
{"id":"null","text":null}
["an","array"]
{"id":{},"text":"the id is an object"}
{"id":"cut","text":"cut
{"id":"escape","text":"bad \q escape"}
{"id":"value","text":"a","n":01}
{"id":"twice","text":"first","text":"the last one counts of two"}
END
doppel fingerprint a.jsonl
echo "exit $?"
printf '{"id":"bytes","text":"caf\351 au lait with sugar please"}\n{"id":"half","text":"lone \\ud800 surrogate in the text"}\n' >b.jsonl
doppel fingerprint b.jsonl
echo "exit $?"
doppel fingerprint --strict b.jsonl
echo "exit $?"
doppel fingerprint --strict a.jsonl
echo "exit $?"
