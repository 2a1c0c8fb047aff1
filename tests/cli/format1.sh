# A folder of format 1, as doppel 0.1 made it, is read as it is, and rewritten in format 2 by whoever writes to it.
line() {
    printf '{"id":"%s","url":"http://example.org/%s","title":"%s","source":"s%s","text":"%s"}\n' "$1" "$1" "$2" "$1" "$3"
}
{
    line a "" "$(seq -s ' ' 1 60)"
    line b "" "other text at the URL of a copy"
    line g2 "" "$(seq -s ' ' 100 161)"
    line h "" "what was removed, or moved away"
    line i "" "$(seq -s ' ' 400 430)"
    line z "" "nothing like it is there"
    echo '{"id":"d2","url":"http://www.example.org/d/","text":"the address of another, and a copy"}'
    echo '{"id":"w","url":"http://example.org/without-an-id/","text":"some other page"}'
} >questions.jsonl
seq -s ' ' 100 161 >near.txt
make_folder() {
    mkdir "$1"
    gzip -dc "$here/format1.mdb.gz" >"$1/documents-1.mdb"
    printf 'doppel index\nformat 1\ngeneration 1\n' >"$1/doppel.index"
}
ask() {
    doppel check --index "$1" questions.jsonl
    doppel get --index "$1" a b c d e f g i https://example.org/without-an-id http://example.org/c | cut -c1-60
    doppel similar --index "$1" near.txt
}
without_bytes() {
    sed 's/,"bytes[A-Za-z]*":[0-9]*//g'
}
here=$(dirname "$0")

echo "== as it was made"
make_folder old
ask old
doppel verify --index old | without_bytes
cat old/doppel.index
ask old >before
doppel export --index old >before.jsonl

echo "== the first to write converts it"
doppel add --index old questions.jsonl --output /dev/null --on-duplicate skip --json
cat old/doppel.index
ls old
doppel verify --index old | without_bytes

echo "== conversion alone changes no answer"
make_folder new
doppel remove --index new nobody
cat new/doppel.index
ask new >after
cmp before after && echo the same answers
doppel export --index new >after.jsonl
cmp before.jsonl after.jsonl && echo the same export
doppel compact --index new | without_bytes
ask new >after
cmp before after && echo the same answers
doppel verify --index new | without_bytes

echo "== so does compact, and a backup stays what it is a copy of"
make_folder third
doppel backup --index third copy
cat copy/doppel.index
doppel compact --index third | without_bytes
head -2 third/doppel.index
ask third >after
cmp before after && echo the same answers
ask copy >after
cmp before after && echo the same answers

echo "== what is damaged is not converted"
make_folder bad
offset=$(LC_ALL=C grep -obUa 'without-an-id' bad/documents-1.mdb | tail -1 | cut -d: -f1)
printf X | dd of=bad/documents-1.mdb bs=1 seek="$offset" conv=notrunc 2>/dev/null
doppel add --index bad questions.jsonl --output /dev/null 2>&1 | sed 's/ (.*//'
head -2 bad/doppel.index
ls bad
