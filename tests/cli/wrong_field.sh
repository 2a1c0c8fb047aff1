# Inputs that could not be read, as a whole: exit code 3, and existing outputs are unchanged.
i=0
while [ $i -lt 1200 ]; do
    i=$((i + 1))
    echo "{\"id\":$i,\"url\":\"http://x.example/$i\",\"content\":\"record $i of this file has some $((i * 7919 % 1000003)) words\"}"
done >wrong.jsonl
sed 's/"content"/"text"/' wrong.jsonl >good.jsonl
short() { # its messages, but for those on single records
    grep -v '^doppel: [^ ]*:[0-9]*: \|bands of' stderr
}
try() {
    echo "== $*"
    doppel "$@" 2>stderr >stdout
    echo "exit $?"
    short
    grep -c . stdout
}

echo precious >out
for command in dedup pairs cluster overlap mirrors df; do
    try $command wrong.jsonl -o out
    cat out
done
try fingerprint wrong.jsonl
try check --index seen wrong.jsonl -o out
doppel add --index seen good.jsonl -o verdicts
try check --index seen wrong.jsonl -o out
try add --index seen wrong.jsonl -o out
cat out
doppel stats --index seen | grep -o '"documents":[^,]*'
try dedup wrong.jsonl -o out --removed out2 --save-sketches out3 --work run
ls
try dedup wrong.jsonl -o out --text-key content
try dedup wrong.jsonl -o out --allow-bad
echo precious >out

echo "== a page"
sed 's/"content"/"raw_html"/' wrong.jsonl >html.jsonl
try dedup html.jsonl -o out
echo "== more than half, and half"
head -n 3 wrong.jsonl >half.jsonl
head -n 2 good.jsonl >>half.jsonl
try dedup half.jsonl -o out
sed -n 3p good.jsonl >>half.jsonl
try dedup half.jsonl -o half.out
cat out
echo "== one of several files, below a folder too"
mkdir folder
cp good.jsonl folder/a.jsonl
head -n 5 wrong.jsonl >folder/b.jsonl
try dedup good.jsonl folder/b.jsonl -o out
try pairs folder -o out
cat out
echo "== other things than JSONL"
{
    echo '['
    sed 's/$/,/' half.jsonl
    echo ']'
} >array.json
try dedup array.json -o out
try dedup - -o out <array.json
echo "[$(sed -n 1p good.jsonl)]" >array.jsonl
try dedup array.jsonl -o out
iconv -f utf-8 -t utf-16 good.jsonl >utf16.jsonl
try dedup utf16.jsonl -o out
printf 'PAR1\025\004\025\020\000' >x.parquet
try dedup x.parquet -o out
try dedup good.jsonl x.parquet -o out
cp x.parquet x.jsonl
try dedup x.jsonl -o out
printf 'nr,body\n1,some words\n' >x.csv
try dedup x.csv good.jsonl -o out
cat out
echo "== empty is no error"
: >empty.jsonl
echo >blank.jsonl
mkdir none
try dedup empty.jsonl blank.jsonl none -o empty.out
try add --index seen empty.jsonl -o empty.out
echo "== the first 1,000 are judged before anything is added; and all in the end"
{
    head -n 400 good.jsonl
    head -n 600 wrong.jsonl
    tail -n 800 good.jsonl
} >late.jsonl
try add --index new late.jsonl
doppel stats --index new | grep -o '"documents":[^,]*'
{
    head -n 1000 good.jsonl
    cat wrong.jsonl
} >later.jsonl
try add --index new later.jsonl
doppel stats --index new | grep -o '"documents":[^,]*'
try add --index new --allow-bad late.jsonl
echo "== a pipe does not wait"
{
    head -n 1 good.jsonl
    for _ in $(seq 300); do [ -s fed ] || sleep 0.1; done
    cat fed >asked
    head -n 3 wrong.jsonl
} | doppel check --index new - >fed 2>/dev/null
echo "exit $?"
grep -c . asked

# One of several that no record has.
printf 'nr,question,answer\n1,one two three four five,six\n' > faq.csv
doppel dedup --id-key nr --text-key question,answr faq.csv -o - 2>&1
echo '{"id":1,"question":"one two three four five"}' > faq.jsonl
doppel dedup --text-key question,answr,meta.text faq.jsonl -o - 2>&1
echo "== a column that the header does not have, alone or as one of several: nothing is written" >&2
printf 'id,headline,body\n1,Head one,"some text, longer than the headline"\n' >news.csv
tr , '\t' <news.csv >news.tsv
for key in headlin,body headline,bod boddy words; do
    doppel dedup news.csv --text-key $key -o news.out
    echo "exit $?" >&2
done
doppel dedup news.tsv --text-key headlin,body -o news.out
doppel dedup news.csv --text-key headlin,body --strict -o news.out
ls news.out 2>/dev/null
doppel dedup news.csv --text-key headlin,body --allow-bad -o news.out
doppel dedup news.csv --text-key body --against news.tsv --against-text-key boddy -o news2.out

echo "== a table without a text, alone and beside records that have one"
mkdir mixed
head -n 2 good.jsonl >mixed/good.jsonl
printf 'nr,name\n1,a name of some words\n' >mixed/table.csv
try dedup mixed/table.csv -o out
try dedup mixed -o out
try dedup mixed -o out --allow-bad
cp mixed/table.csv mixed/before.csv
try dedup mixed -o out
