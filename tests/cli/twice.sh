# Options that are given twice: lists grow, single values are refused by name.
echo '{"id":"1","text":"one two three four five six","date":"2020-01-01","source":"x","url":"http://a.example/"}' >a.jsonl
echo '{"id":"2","text":"seven eight nine ten eleven twelve"}' >b.jsonl
cat a.jsonl b.jsonl >new.jsonl
echo '{"id":"3","text":"thirteen fourteen fifteen sixteen seventeen"}' >>new.jsonl
try() {
    echo "== $*"
    doppel "$@" 2>&1
    echo "exit $?"
}

try dedup new.jsonl --against a.jsonl --against b.jsonl -o -
try pairs new.jsonl --against=a.jsonl --against b.jsonl
try overlap new.jsonl --words 5 --against a.jsonl --against b.jsonl -o out.jsonl
cut -c 1-20 out.jsonl
try dedup new.jsonl --against a.jsonl --against b.jsonl -o b.jsonl
try cluster new.jsonl --by content --by url --keep https --keep shortest-url -o out.jsonl --json
echo a.jsonl >one
echo b.jsonl >two
try fingerprint --files-from one --files-from two
try add --index seen --fields date --fields source new.jsonl -o out.jsonl
doppel stats --index seen | grep -o '"fields": *"[^"]*"'

try dedup new.jsonl -o out.jsonl -o other.jsonl
try dedup new.jsonl -o out.jsonl --text-key text --text-key body
try dedup new.jsonl -o out.jsonl --similarity 0.5 --similarity=0.9
try dedup new.jsonl -o out.jsonl -s 0.5 --similarity 0.9
try check --index seen --index other new.jsonl
try join --distance 3 --distance 4 prints.u64
try serve --index seen --listen 127.0.0.1:1 --listen 127.0.0.1:2
try stream --brokers a --in x --in y --unique one --unique two
try fingerprint --json --json a.jsonl
cat >doppel.ini <<'INI'
[serve]
index = seen
listen = 127.0.0.1:1
index = other
INI
try serve --config doppel.ini --listen 127.0.0.1:1
ls other.jsonl other 2>&1
