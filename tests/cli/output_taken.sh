# Outputs whose place is taken by another one, or is none; rows under the name of another format.
try() {
    echo "== $*"
    doppel "$@" 2>&1
    echo "exit $?"
}
fox="the quick brown fox jumps over the lazy dog"
mkdir in in/a
printf '{"id":1,"text":"%s"}\n{"id":2,"text":"%s!"}\n' "$fox" "$fox" >in/a/one.jsonl

echo "== empty names, as a script has them whose variable is not set"
try dedup in --output-dir ''
try dedup in/a/one.jsonl -o ''
try dedup in/a/one.jsonl --removed '' -o -
try trim in/a/one.jsonl --against '' -o -

echo "== the place of an output of --output-dir"
doppel dedup -q in --output-dir out
try dedup in --output-dir out --removed out/a/one.jsonl
ln -s out alias
ln -s out/a/one.jsonl link
try dedup in --output-dir out --removed alias/a/one.jsonl
try dedup in --output-dir out --removed link
try dedup in --output-dir out --save-sketches ./out/a/../a/one.jsonl
mkdir new
try dedup in --output-dir new --removed new/a
try dedup in --output-dir new --removed new/removed.jsonl
ls new new/a
try dedup in/a/one.jsonl --output-dir in/a/one.jsonl
cat out/a/one.jsonl

echo "== a name as long as names can be, an input that does not exist, and no room"
long=$(printf '%0245d' 0).jsonl
mkdir odd
cp in/a/one.jsonl "odd/$long"
gzip -c in/a/one.jsonl >odd/two.jsonl.gz
try dedup odd --output-dir whole
[ -s "whole/$long" ] && echo "there"
gzip -dc whole/two.jsonl.gz | wc -c
try dedup in/a/one.jsonl none.jsonl --output-dir some
ls some
words=$(seq 1 1000 | tr '\n' ' ')
i=0
while [ $i -lt 100 ]; do
    printf '{"id":%d,"text":"%s %s"}\n' $i $i "$words" >>in/large.jsonl
    i=$((i + 1))
done
(ulimit -f 512 && try dedup in --output-dir full --method exact)
ls -A full
rm in/large.jsonl

echo "== rows of a folder"
mkdir csv tsv
printf 'id,text\n1,%s\n2,%s\n' "$fox" "$fox" >csv/a.csv
printf 'text\n%s\n%s!\n' "$fox" "$fox" >tsv/a.tsv
cp tsv/a.tsv tsv/b.csv
try dedup csv -o out.tsv
try dedup csv --removed-documents out.tsv
try dedup tsv -o out.tsv
try dedup tsv/a.tsv tsv/b.csv -o -
rm tsv/b.csv
try dedup tsv --annotate -o marked.tsv
cat marked.tsv

echo "== names of fields that are annotated"
printf '{"id":1,"gro\\u0075p":5,"text":"%s"}\n' "$fox" | doppel dedup -q - --annotate -o -
try dedup csv/a.csv --annotate --annotate-prefix "$(printf '\377')" -o -
try dedup csv/a.csv --annotate --annotate-prefix ' x' -o -
