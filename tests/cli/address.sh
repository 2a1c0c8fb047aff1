# Documents that are an address or a title alone: records, operands, lists; and what only looks like one.
words() {
    seq -s ' ' "$1" "$2"
}
for n in 1 2 3; do
    printf '{"id":"p%s","url":"https://site.example/p/%s","title":"The title of page number %s","text":"%s"}\n' $n $n $n "$(words ${n}00 ${n}50)"
done >pages.jsonl
doppel add --index seen --titles off pages.jsonl -o verdicts
short() {
    sed 's/,"evidence":.*//'
}
try() {
    echo "== $*"
    echo "== $*" >&2
    "$@" >out
    code=$?
    short <out
    echo "exit $code"
}
url='{"url":"http://www.site.example/p/2/?utm_source=x"}'
echo "$url" | try doppel check --index seen -
try doppel check --index seen HTTPS://site.example/p/3 https://site.example/none
try doppel check --index seen --print text https://site.example/none
printf 'https://site.example/p/1\nhttps://site.example/p/2#top\nhttps://site.example/none\n' >list.txt
try doppel check --index seen --files-from list.txt
try doppel check --index seen --threads 4 --batch 1 --files-from list.txt -o verdicts --json
seq 1 3000 | sed 's|.*|{"url":"https://site.example/p/&"}|' >many.jsonl
try doppel check --index seen many.jsonl -o verdicts
try doppel check --index seen https://site.example/p/1 pages.jsonl
echo "== as text it is only words" >&2
echo https://site.example/p/1 | try doppel check --index seen -
try doppel check --index seen --format lines list.txt

echo "== added, with a title too; with a text that is null; and a text for some"
echo "== added" >&2
{
    echo '{"url":"https://site.example/a","source":"a source that is kept, and longer than the rest"}'
    echo '{"url":"https://site.example/b","text":null,"html":null,"depth":3,"tags":["x"]}'
    echo '{"title":"A title alone, of some length","url":"https://site.example/c"}'
    echo '{"id":"d","title":"A title with an id alone"}'
    echo '{"url":"https://site.example/e","text":"a text of its own, for once"}'
} >alone.jsonl
try doppel add --index new alone.jsonl
try doppel check --index new alone.jsonl
try doppel check --index new --print text -o - alone.jsonl
echo "== left out: a longer string may be the text; nothing to go by; no verdict, and so no exit code 1"
{
    echo '{"url":"https://site.example/a","content":"a text under some other name, that is longer"}'
    echo '{"url":"https://site.example/a","data":{"body":"a text under some other name, that is longer"}}'
    echo '{"id":"only an id"}'
    echo '{"url":7,"title":""}'
} >bad.jsonl
try doppel check --index new bad.jsonl
try doppel check --index new --allow-bad bad.jsonl
try doppel check --index new --allow-bad bad.jsonl -o verdicts --json
cat alone.jsonl bad.jsonl | try doppel check --index new -

echo "== CSV: only columns that are fields"
printf 'url,date\nhttps://site.example/a,2026-11-19\n,2026-11-19\nhttps://site.example/new,\n' >a.csv
try doppel check --index new a.csv
printf 'url,depth\nhttps://site.example/a,3\n' >b.csv
try doppel check --index new b.csv
echo "== nothing is fetched" >&2
try doppel add --index new https://site.example/z
echo "== other commands need a text" >&2
try doppel dedup alone.jsonl -o out.jsonl
echo "== an address without its scheme" >&2
mkdir folder.site
for command in check get remove similar dedup; do
    place="--index new"
    [ $command = dedup ] && place="-o out.jsonl"
    try doppel $command $place site.example/p/5
done
try doppel check --index new folder.site/a.jsonl
