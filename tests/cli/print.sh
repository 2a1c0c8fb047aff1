# In words instead of JSON: --print text, and on a terminal. Nothing found is said on stderr.
{
    printf '{"id":"a","text":"%s"}\n' "$(seq -s ' ' 1 60)"
    printf '{"id":"b","text":"%s"}\n' "$(seq -s ' ' 1 61)"
    printf '{"id":"c\\n","text":"%s"}\n' "$(seq -s ' ' 1 60)"
    printf '{"id":"d","text":"%s"}\n' "$(seq -s ' ' 100 160)"
} >a.jsonl
doppel pairs --print text a.jsonl
doppel pairs --print text --distance 20 a.jsonl | head -n 1
doppel cluster --print text a.jsonl
doppel cluster --print text --link any --top 1 --distance 20 a.jsonl
script -qec "doppel pairs -q a.jsonl" /dev/null </dev/null | tr -d '\r' | tail -n 1
script -qec "doppel cluster -q a.jsonl --print jsonl" /dev/null </dev/null | tr -d '\r' | tail -n 1
doppel pairs --print words a.jsonl
echo "exit $?"
echo "== overlap"
doppel overlap a.jsonl --words 200
doppel overlap a.jsonl --words 200 --quiet
doppel overlap a.jsonl --words 200 --print text
doppel overlap a.jsonl --words 200 -o out.jsonl --html page.html
