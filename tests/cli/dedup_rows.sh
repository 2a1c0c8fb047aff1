# dedup: rows of CSV unchanged, an output for each input, --quiet, and what is refused.
fox="the quick brown fox jumps over the lazy dog"
mkdir -p in/sub
printf 'id,text,lang\r\n1,"%s, ""so""\nit is",en\r\n2,%s,de\r\n' "$fox" "$fox" >in/a.csv
printf 'id,text,lang\n3,"%s",fr\n4,other words that nobody has said,fr' "$fox" >b.csv
printf '{"id":"x","text":"%s"}\n{"id":"y","text":"a new document with words of its own"}\n' "$fox" >in/sub/c.jsonl
printf 'id,text\n' >in/empty.csv
printf 'a plain file with a text' >in/d.txt
quiet() {
    "$@" 2>&1 | grep -v 'bands of .* are expected'
}
echo "== rows to one file"
quiet doppel dedup in/a.csv b.csv -o out.csv
cat -A out.csv
quiet doppel dedup -q in/a.csv -o -
quiet doppel dedup -q in/a.csv -o out.jsonl
cat out.jsonl
doppel dedup -q --format csv - -o - <b.csv
quiet doppel dedup -q in/a.csv -o - --annotate
echo "== refused"
try() {
    quiet doppel dedup "$@"
    ls out.tsv none 2>/dev/null
}
try in/a.csv -o out.tsv
try in/sub/c.jsonl -o x.csv
try in/a.csv in/empty.csv -o x.csv
try in -o x.csv
try - in/a.csv --output-dir none
try in b.csv in/a.csv --output-dir none
try in/a.csv in/sub/c.jsonl --output-dir in
try in --output-dir in/none
try in --output-dir b.csv
try in --output-dir b.csv/none
try in --output-dir none --annotate
try in --output-dir none -o x.jsonl
try b.csv -o x.jsonl --count-by lang
try b.csv -o x.jsonl --annotate --annotate-prefix 'a"'
try b.csv -o x.jsonl --keep-copies 0
try b.csv -o x.jsonl --only-contained 0.9 --by content,url
try b.csv -o x.jsonl --only-contained 2
echo "== a file for each input"
gzip -k in/sub/c.jsonl
rm in/sub/c.jsonl
bzip2 in/d.txt
quiet doppel dedup in b.csv --output-dir out --removed removed.jsonl
find out | LC_ALL=C sort
cat -A out/a.csv out/b.csv out/empty.csv out/d.txt.bz2.jsonl
gzip -dc out/sub/c.jsonl.gz
cat removed.jsonl
echo "== nothing appears when the run fails"
mkdir -p half/a.csv
quiet doppel dedup in --output-dir half
find half | LC_ALL=C sort
mkdir -p late/sub/c.jsonl.gz blocked folder/a.csv
echo kept >blocked/sub
cp b.csv folder/a.csv/b.csv
quiet doppel dedup in --output-dir late
quiet doppel dedup in --output-dir blocked
quiet doppel dedup in/a.csv folder --output-dir nowhere
ls nowhere 2>/dev/null
find late blocked | LC_ALL=C sort
for elsewhere in /dev/shm /tmp; do
    [ "$(stat -c %d $elsewhere)" = "$(stat -c %d .)" ] || break
done
mkdir linked
ln -s $elsewhere linked/sub
quiet doppel dedup in --output-dir linked
ls linked
echo "== two names with one output"
cp in/a.csv same.csv
bzip2 -k same.csv
zstd -q same.csv
try same.csv.bz2 same.csv.zst --output-dir none
[ -e none ] || echo "none does not exist"
