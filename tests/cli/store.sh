# The commands over a store in Redis: the same verdicts as from a folder, and shared by all processes.
. "$(dirname "$0")/redis.inc"
redis_start
{
    printf '{"id":"a","url":"http://example.org/a","title":"A title that counts","text":"%s"}\n' "$(seq -s ' ' 1 50)"
    printf '{"id":"b","url":"http://example.org/a","text":"other words at the same address"}\n'
    printf '{"id":"c","text":"%s"}\n' "$(seq -s ' ' 1 50)"
    printf '{"id":"d","title":"A title that count","text":"quite other words under a similar title"}\n'
    printf '{"id":"e","text":"the last of them, and like no other"}\n'
} >a.jsonl
for preset in crawl article; do
    echo "== $preset"
    doppel add --index $preset --preset $preset --near distance --ttl 30d --on-duplicate link a.jsonl >folder
    doppel add --store "$store?prefix=$preset" --preset $preset --near distance --ttl 30d --on-duplicate link a.jsonl >store
    cmp folder store && cut -c 1-80 store
    # Redis does not know the words of copies by URL or title yet.
    grep -v '"id":"[bd]"' a.jsonl >questions.jsonl
    doppel check --index $preset questions.jsonl >folder
    doppel check --store "$store?prefix=$preset" questions.jsonl >store
    echo "exit $?"
    cmp folder store
    doppel get --index $preset a b c d e http://example.org/a 2>&1 | steady >folder
    doppel get --store "$store?prefix=$preset" a b c d e http://example.org/a 2>&1 | steady >store
    cmp folder store
    doppel similar --index $preset --distance 64 a >folder
    doppel similar --store "$store?prefix=$preset" --distance 64 a >store
    cmp folder store
    doppel export --index $preset | steady >folder
    doppel export --store "$store?prefix=$preset" | steady >store
    cmp folder store
done

echo "== without being there"
doppel check --store "$store?prefix=none" a.jsonl 2>&1 | steady
doppel remove --store "$store?prefix=none" a 2>&1 | steady
redis-cli -s redis.sock --scan --pattern '{none}*'

echo "== what a failed command left keeps its settings: other processes may have it open"
printf 'id,headline\n1,A headline of today\n' >news.csv
{
    doppel add --store "$store?prefix=failed" news.csv >/dev/null 2>&1
    doppel add --store "$store?prefix=failed" --keep-text --text-key headline news.csv
    doppel add --store "$store?prefix=failed" --text-key headline news.csv | cut -c 1-28
    doppel remove --store "$store?prefix=failed" 1
} 2>&1 | steady

echo "== from one to another"
doppel export --store "$store?prefix=article" | doppel import --store "$store?prefix=copy" --json - | steady
doppel export --store "$store?prefix=article" | doppel import --index copy --json -
doppel export --store "$store?prefix=copy" | steady >store
doppel export --index copy | steady >folder
cmp folder store
doppel add --index similar a.jsonl >/dev/null
doppel export --index similar >similar.jsonl
doppel import --store "$store?prefix=similar" similar.jsonl
echo "exit $?"
doppel import --store "$store?prefix=similar" --near distance similar.jsonl 2>&1 | steady
doppel add --store "$store?prefix=similar" --similarity 0.9 a.jsonl 2>&1 | steady
doppel add --store "$store?prefix=similar" --preset article a.jsonl 2>&1 | steady

echo "== stats"
doppel stats --store "$store?prefix=crawl" >stats
steady <stats | sed 's/\(Bytes": \)[1-9][0-9]*/\1N/; s/\(openSeconds":\)[^,]*/\1S/'
python3 -c 'import json; json.load(open("stats"))' && echo "is JSON"

echo "== upkeep"
doppel backup --store "$store?prefix=crawl" backup 2>&1 | steady
ls backup 2>/dev/null
for command in compact verify; do
    doppel $command --store "$store?prefix=crawl" >upkeep 2>&1
    echo "exit $?: $command"
    steady <upkeep
done

echo "== nothing stays behind"
doppel add --store "$store?prefix=short" --ttl 1 a.jsonl >/dev/null
for prefix in crawl article copy similar; do
    doppel remove --store "$store?prefix=$prefix" a b c d e >/dev/null
done
sleep 2
doppel check --store "$store?prefix=short" a.jsonl 2>&1 | steady
redis-cli -s redis.sock --scan | grep -cv '}r'
