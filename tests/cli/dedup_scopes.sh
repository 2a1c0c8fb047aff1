# dedup by URL, within and across hosts, domains and fields, and by the rules of --keep.
text="the same words in each of these documents"
record() {
    printf '{"id":"%s","text":"%s"%s}\n' "$1" "$2" "$3"
}
ids() {
    doppel dedup "$@" -o - 2>/dev/null | sed 's/{"id":"\([^"]*\)".*/\1/' | tr '\n' ' '
    echo
}
{
    record 1 "$text" ',"url":"http://www.one.com/a?utm_source=x","date":"2024-05-01","size":3,"lang":"en"'
    record 2 "$text" ',"url":"https://one.com/a#part","date":"2024-05-01T01:00:00+02:00","size":20,"lang":"de"'
    record 3 "$text" ',"url":"https://b.one.com/a","date":"2024-04-30T23:30:00Z","size":"7","lang":"en"'
    record 4 "$text" ',"url":"http://two.org/","date":"soon","lang":"de"'
    record 5 "$text" ''
    record 6 "$text" ',"size":null,"lang":""'
    record 7 "other words that only this one has" ',"url":"http://one.com/a"'
    record 8 "" ',"url":"http://two.org/index.html"'
} >a.jsonl
ids a.jsonl
echo "== --by"
ids a.jsonl --by url
ids a.jsonl --by content,url
ids a.jsonl --by url --url-keep www,tracking
doppel dedup a.jsonl --by content,url -o /dev/null --removed - 2>/dev/null
doppel pairs a.jsonl --by url 2>/dev/null
echo "== --within"
for field in host domain lang size nothing; do ids a.jsonl --within $field; done
echo "== --across"
for field in host domain lang size nothing; do ids a.jsonl --across $field; done
echo "== --keep"
for rule in newest:date oldest:date largest:size smallest:size,last https,shortest-url shortest-url last; do
    ids a.jsonl --keep $rule
done
echo "== --link any --within"
ids a.jsonl --link any --within lang
echo "== --keep id, by its bytes"
{
    record 9 "$text"
    record 10 "$text"
    record 1 "$text of course"
    record 100 "$text of course"
} >b.jsonl
ids b.jsonl --keep id
ids b.jsonl --keep longest,id
ids b.jsonl --keep id --link any --similarity 0.5
