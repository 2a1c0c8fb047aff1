# Compare by ids: of records of a file or folder, of an index that keeps texts; and the page.
line() {
    printf '{"id":"%s","text":"%s"}\n' "$1" "$2"
}
{
    line one "the quick brown fox jumps over the lazy dog and sleeps in the sun"
    line two "yesterday the quick brown fox jumps over the lazy cat & it sleeps <b>here</b>"
    line twice "a"
    line twice "b"
} >a.jsonl
echo "== --in"
doppel compare --in a.jsonl one two | sed -n '1,4p;/shared passage/,$p'
doppel compare --in a.jsonl --in missing.jsonl one two >/dev/null
echo "exit $?"
doppel compare --in a.jsonl one three
echo "exit $?"
doppel compare --in a.jsonl one twice
echo "exit $?"
mkdir -p data/essays
echo "some words of bram" >data/essays/bram.txt
echo "some words of anna" >data/essays/anna.txt
doppel compare --in data bram.txt data/essays/ana.txt
doppel compare --in data/essays quite another
printf 'sku,text\nA1,some words\nA2,more words\n' >t.csv
doppel compare --in t.csv A1 A2
doppel compare --in t.csv --id-key sku A1 X-17
doppel compare --in /dev/null A1 A2
echo "== --index"
doppel add --index kept --keep-text a.jsonl >/dev/null
doppel compare --index kept --json one two | grep -o '"idB".*"wordsB":[0-9]*'
doppel compare --index kept one three
echo "exit $?"
doppel add --index bare a.jsonl >/dev/null
doppel compare --index bare one two
echo "exit $?"
doppel compare --index kept --in a.jsonl one two
echo "exit $?"
echo "== files of a folder, without it"
mkdir -p essays/a
echo "the quick brown fox jumps over the lazy dog" | tee essays/notes.txt >essays/a/b.notes.txt
doppel compare --in essays notes.txt essays/a/b.notes.txt
doppel compare --in essays essays/notes.txt b.notes
doppel compare --in essays essays/notes.txt b
doppel compare --in essays essays/notes.txt tes.txt
echo "exit $?"
echo "== --index: measured by its recipe, and what decides there comes first"
long=$(seq -s ' ' 1 200)
{
    line long "$long"
    line near "$(echo "$long" | sed 's/ 1\([0-9]*\)5 / x /g')"
    echo '{"id":"bare","url":"http://x.example/bare","text":""}'
} >long.jsonl
for options in '--preset article --on-duplicate store' '--preset article --near distance --on-duplicate store' '--preset crawl --on-duplicate store'; do
    doppel add --index long --keep-text $options long.jsonl | grep -o '"id":"near".*"distance":[0-9]*,"similarity":[^,]*'
    doppel compare --index long near long | sed -n '1,4p;/  distance/p;/  similarity/p'
    doppel compare --index long near long --json | grep -o '"recipe":[^,]*'
    doppel compare --index long near long --recipe literal | sed -n '1,3p'
    doppel compare --index long long long | sed -n 2p
    rm -r long
done
echo "== --index: texts that are not kept, and why"
doppel add --index long --preset article --keep-text --on-duplicate link long.jsonl >/dev/null
doppel compare --index long near long
doppel compare --index long bare long
echo "== --html"
doppel compare --in a.jsonl one two --html page.html | head -1
grep -o '<mark>[^/]*/mark>' page.html
grep -o 'sleeps &lt;b&gt;[^ ]*' page.html
grep -o 'Similarity (Jaccard)[^/]*/th><td>[0-9.]*' page.html
doppel compare --in a.jsonl one two --html a.jsonl
echo "exit $?"
doppel compare --in a.jsonl one none --html none.html
echo "exit $?"
ls none.html 2>/dev/null
echo "== --removed"
{
    line first "the quick brown fox jumps over the lazy dog and sleeps in the warm sun of the long day"
    line second "The quick brown fox jumps over the lazy dog and sleeps in the warm sun of the long night!"
    line third "quite another story that has nothing to do with animals"
} >r.jsonl
doppel dedup r.jsonl --removed removed.jsonl
doppel compare --in r.jsonl --removed removed.jsonl second | sed '/fingerprints/,/digest/d'
doppel compare --in r.jsonl --removed removed.jsonl third
echo "exit $?"
doppel compare --in r.jsonl --removed removed.jsonl first second
doppel compare --in r.jsonl --removed removed.jsonl nobody
tail -n 2 r.jsonl >rest.jsonl
doppel compare --in rest.jsonl --removed removed.jsonl second
head -n 1 r.jsonl >known.jsonl
doppel compare --in rest.jsonl --in known.jsonl --removed removed.jsonl second | head -n 1
sed 's/"similarity":[0-9.]*/"similarity":0.80000000000000004/' removed.jsonl >long.jsonl
doppel compare --in r.jsonl --removed long.jsonl second | head -n 1
doppel compare --in known.jsonl --removed removed.jsonl second
sed 's/"id":"third"/"id":"third","title":"The quick brown fox"/;s/"id":"first"/"id":"first","title":"the quick brown fox!"/' r.jsonl |
    sed 's/"title"/"name"/' >titled.jsonl
doppel dedup -q titled.jsonl --title-key name --by title --removed removed-titles.jsonl
doppel compare --in titled.jsonl --title-key name --removed removed-titles.jsonl third | head -n 1
doppel compare --in titled.jsonl --removed removed-titles.jsonl third | head -n 1
doppel compare --removed removed.jsonl second
doppel compare --in r.jsonl second
doppel compare second first
echo "exit $?"
echo "== --in, by URL, unless it is an id"
{
    echo '{"id":"a","url":"http://www.site.example/p/1/","text":"the words of a page with an address"}'
    echo '{"url":"https://site.example/p/2?utm_source=x","text":"the words of a page with another address"}'
    echo '{"id":"b","url":"https://site.example/p/2/","text":"one more page with the address of another"}'
    echo '{"id":"https://site.example/p/2/","url":"https://site.example/p/3","text":"an id that is an address"}'
} >urls.jsonl
doppel compare --in urls.jsonl --json https://site.example/p/1 https://site.example/p/2/ | grep -o '"text":"[^"]*"\|"id.":"[^"]*"\|"words.":[0-9]*'
doppel compare --in urls.jsonl a https://site.example/p/2
doppel compare --in urls.jsonl a https://site.example/none
doppel compare --in urls.jsonl a site.example/p/1
echo "== --removed with another list: what was kept, verdicts, nothing, half a list"
doppel dedup -q r.jsonl -o kept.jsonl
sed 's/"id"/"sku"/' kept.jsonl >sku.jsonl
: >none.jsonl
{
    echo '{"id":"half'
    cat removed.jsonl
} >half.jsonl
doppel add --index verdicts r.jsonl -q -o verdicts.jsonl
for list in kept sku none; do
    doppel compare --in r.jsonl --removed $list.jsonl second
    echo "exit $?"
done
doppel compare --in r.jsonl --removed verdicts.jsonl second | head -n 1
doppel compare --in r.jsonl --removed verdicts.jsonl first
doppel compare --in r.jsonl --removed half.jsonl second | head -n 1
doppel compare --in r.jsonl --removed half.jsonl first
doppel compare --in r.jsonl --removed nowhere.jsonl first
