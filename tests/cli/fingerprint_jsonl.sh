# JSONL, plain and compressed, by name and by content; the fields, the keys.
cat >a.jsonl <<'END'
{"id":"one","url":"http://example.org/1","text":"The quick brown fox jumps over the lazy dog"}
{"id":2,"text":"Completely other words stand in this second record here"}

{"text":"The quick brown fox\njumps over the lazy dog"}
END
gzip -k a.jsonl
zstd -q a.jsonl
cp a.jsonl.gz noname
for file in a.jsonl a.jsonl.gz a.jsonl.zst noname; do
    doppel fingerprint $file
done
doppel fingerprint - <a.jsonl
doppel fingerprint - <a.jsonl.gz
cat a.jsonl.gz a.jsonl.gz | doppel fingerprint -
echo '{"key":"k","body":"The quick brown fox jumps over the lazy dog"}' | doppel fingerprint --id-key key --text-key=body -
