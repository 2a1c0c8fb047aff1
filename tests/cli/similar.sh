# similar: by id, by URL, by a file; ranked; with limits.
text=$(seq -s ' ' 1 200)
line() {
    printf '{"id":"%s","url":"http://example.org/%s","title":"Title %s","text":"%s"}\n' "$1" "$1" "$1" "$2"
}
{
    line a "$text"
    line b "$(seq -s ' ' 1 150) $(seq -s ' ' 400 450)"
    line c "$(seq -s ' ' 1 100) $(seq -s ' ' 500 600)"
    line d "$(seq -s ' ' 700 900)"
} >a.jsonl
line a2 "$text" >b.jsonl
doppel add --index seen a.jsonl >/dev/null
doppel add --index seen --on-duplicate link b.jsonl >/dev/null
echo "== by id, below what the index is made for"
doppel similar --index seen --similarity 0.1 a
echo "== by URL"
doppel similar --index seen --similarity 0.1 --limit 1 https://www.example.org/b
echo "== by a file, by stdin"
echo "$text 201" >question.txt
doppel similar --index seen question.txt
doppel similar --index seen - <question.txt
echo "== none"
doppel similar --index seen d
echo "exit $?"
doppel similar --index seen --quiet d
echo "== none that near: the nearest is named"
{
    echo "$(seq -s ' ' 1 170) $(seq -s ' ' 1000 1020)" >edited.txt
    doppel similar --index seen edited.txt
    doppel similar --index seen --similarity 0.9 edited.txt
    doppel similar --index seen c
    doppel similar --index seen --similarity 0.05 d
    doppel similar --index seen --distance 0 c
    : >none.jsonl
    doppel add --index none none.jsonl
    doppel similar --index none edited.txt
} 2>&1
echo "== in words"
doppel similar --index seen --similarity 0.3 --print text edited.txt
script -qec "doppel similar --index seen --similarity 0.3 edited.txt" /dev/null </dev/null | tr -d '\r'
script -qec "doppel similar --index seen --similarity 0.3 --print jsonl edited.txt" /dev/null </dev/null | head -c 10
echo
echo "== by distance"
doppel add --index crawl --preset crawl --near distance a.jsonl >/dev/null
doppel similar --index crawl --distance 64 --limit 2 a
doppel similar --index crawl --similarity 0.5 question.txt | head -n 2
doppel similar --index crawl --similarity 0.5 --limit 1 --print text question.txt
doppel similar --index crawl --distance 1 edited.txt
doppel add --index sampled --preset crawl a.jsonl >/dev/null
echo "== by a sample"
doppel similar --index sampled --similarity 0.5 --limit 2 a
doppel similar --index sampled --similarity 0.5 question.txt | head -n 2
echo "== what cannot be"
doppel similar --index seen nobody
echo "exit $?"
doppel similar --index seen a.jsonl
echo "exit $?"
doppel similar --index seen --limit 0 a
echo "exit $?"
doppel similar --index seen --distance 3 --similarity 0.5 a
echo "exit $?"
