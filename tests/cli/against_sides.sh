# --against: fields of its own, what is accepted instead of documents, and what is refused as empty.
cat >corpus.jsonl <<'JSON'
{"key":"c1","body":"one two three four five six","link":"http://a.example/1"}
{"key":"c2","body":"seven eight nine ten eleven twelve","link":"http://a.example/2"}
JSON
cat >new.jsonl <<'JSON'
{"id":"n1","text":"one two three four five six","url":"http://b.example/1"}
{"id":"n2","text":"other words that nobody has seen","url":"http://a.example/2"}
{"id":"n3","text":"and some more that are new"}
JSON
try() {
    echo "== $*"
    doppel "$@" 2>stderr
    echo "exit $?"
    grep -v '^doppel: [^ ]*:[0-9]*: \|bands of' stderr
}

echo precious >out
try dedup new.jsonl --against corpus.jsonl -o out
cat out
try dedup new.jsonl --against corpus.jsonl --against-text-key body -o -
try dedup new.jsonl --against corpus.jsonl --against-text-key body --against-id-key key --against-url-key link --by content,url -o /dev/null --removed -
try dedup corpus.jsonl --text-key body --against new.jsonl --against-text-key text -o -
try dedup corpus.jsonl --text-key body --against new.jsonl -o out
try pairs new.jsonl --against corpus.jsonl --against-text-key body --against-id-key key
try overlap new.jsonl --words 5 --against corpus.jsonl --against-text-key body --against-id-key key
try overlap new.jsonl --words 5 --against corpus.jsonl -o out
try dedup new.jsonl --against-text-key body -o out
try dedup new.jsonl --against corpus.jsonl --against-text-key body --against-url-key typo --by content,url --within source -o /dev/null
cat out

echo "== sketches and the folder of a run stand for documents"
doppel dedup corpus.jsonl --text-key body --id-key key -o /dev/null --work run --save-sketches sketches 2>/dev/null
try dedup new.jsonl --against run -o -
try pairs new.jsonl --against run
try dedup new.jsonl --against run --similarity 0.5 -o out
try overlap new.jsonl --against run -o out
try overlap new.jsonl --against sketches -o out
try dedup new.jsonl --against own --work own -o out
doppel add --index seen corpus.jsonl --text-key body --id-key key >/dev/null
try dedup new.jsonl --against seen -o -
try pairs new.jsonl --against seen -o out
try overlap new.jsonl --against seen -o out
cat out

echo "== nothing to compare with"
mkdir none none/below
: >empty.jsonl
for command in dedup pairs overlap; do
    try $command new.jsonl --against none -o out
    try $command new.jsonl --against corpus.jsonl --against-text-key body --against missing.jsonl -o out
done
cat out
try dedup new.jsonl --against none --allow-bad -o /dev/null
try dedup new.jsonl --against empty.jsonl -o /dev/null

echo "== a run that goes on has its keys"
try dedup new.jsonl --against corpus.jsonl --against-text-key body --work kept -o -
try dedup new.jsonl --against corpus.jsonl --against-text-key body --work kept --resume -o /dev/null
try dedup new.jsonl --against corpus.jsonl --work kept --resume -o out
