# What is refused before anything is read, and fields with other names.
printf 'nr,link,headline,body\n1,http://x.example/a,The minister opens the new bridge,one two three four five six\n' >a.csv
printf '2,http://www.x.example/a?utm_source=r,Other news,seven eight nine ten eleven twelve\n' >>a.csv
printf '3,http://y.example,The minister opens a new bridge,uno due tre quattro cinque sei\n' >>a.csv

try() {
    echo "== $*"
    doppel dedup "$@" 2>&1
    echo "exit $?"
}

echo '{"id":"1","text":"one two three four five six"}' >a.jsonl
cp a.jsonl out.jsonl
try '*.jsonl' -o out.jsonl
try 'a*.jsonl' -o out.jsonl
try a.jsonl -o out.csv
try a.jsonl -o out.warc.gz
try missing.jsonl -o nowhere/out.jsonl
try missing.jsonl -o out.jsonl --removed nowhere/removed.jsonl
try a.jsonl -o out.jsonl --method simhash --similarity 0.8
try a.jsonl -o out.jsonl --distance 3 --similarity 0.8
try a.jsonl -o out.jsonl --method auto --bands 3
try a.jsonl --dry-run --bands 0
try a.jsonl -o out.jsonl --similarity 0.3
cat out.jsonl
try a.csv -o - --removed removed.jsonl --by content,url,title --id-key nr --url-key link --title-key headline --text-key body
cat removed.jsonl
