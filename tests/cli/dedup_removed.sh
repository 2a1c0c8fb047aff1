# dedup: what was removed, as a list and as documents, with and without an output; outputs that are folders.
fox="the quick brown fox jumps over the lazy dog"
{
    printf '{"id":"a","text":"%s"}\n' "$fox"
    printf '  {"id" : "b", "text":"%s", "more":[1, 2]}  \n' "$fox"
    printf '{"id":"c","text":"a new document with words of its own"}\r\n'
    printf '{"id":"d","text":"%s."}\r\n' "$fox"
    printf '{"id":"e","text":"%s!"}\n' "$fox"
} >a.jsonl
printf 'id,text,lang\r\n1,"%s\n",en\r\n2,%s,de\n3,other words that nobody has said,fr\n4,"%s",it' "$fox" "$fox" "$fox" >a.csv
try() {
    doppel dedup "$@"
    echo "exit $?"
}
echo "== a list alone"
try a.jsonl --removed list.jsonl
cat list.jsonl
try a.jsonl --removed - -q
try a.jsonl --removed list.jsonl -q --json | grep -o '"kept":.*'
echo "== with --dry-run: the list, and no documents"
rm list.jsonl
try a.jsonl -o no.jsonl --dry-run --removed list.jsonl
wc -l <list.jsonl
try a.jsonl --output-dir no --dry-run --removed list.jsonl
try a.jsonl --dry-run --removed missing/list.jsonl
ls -d no no.jsonl 2>/dev/null
echo "== what is kept, and what is removed, is all there was"
# both INPUT ENDING: every line (or row) is in one of the two, as it was.
both() {
    input=$1 ending=$2
    shift 2
    doppel dedup -q "$input" -o "kept$ending" --removed-documents "removed$ending" --removed list.jsonl "$@"
    echo "$ending: exit $?, kept $(wc -l <"kept$ending"), removed $(wc -l <"removed$ending"), list $(wc -l <list.jsonl)"
}
both a.jsonl .jsonl
cat -A removed.jsonl
sort kept.jsonl removed.jsonl >together
sort a.jsonl | cmp - together && echo same
both a.csv .csv
cat -A removed.csv
printf '\n' | cat a.csv - >whole.csv
{
    cat kept.csv
    tail -n +2 removed.csv
} | sort >together
sort whole.csv | cmp - together && echo same
gzip -k a.jsonl
both a.jsonl.gz .jsonl.gz --threads 1
gzip -dc kept.jsonl.gz removed.jsonl.gz | sort >together
sort a.jsonl | cmp - together && echo same
printf '%s\nother words that nobody has said\n%s\n' "$fox" "$fox" >a.txt
both a.txt .txt --format lines
sort kept.txt removed.txt >together
sort a.txt | cmp - together && echo same
doppel dedup -q a.jsonl --keep-copies 2 --removed-documents - | cut -c1-14
doppel dedup -q - -o kept.jsonl --removed-documents removed.jsonl <a.jsonl
wc -l <removed.jsonl
doppel dedup -q a.jsonl --against a.csv -o kept.jsonl --removed-documents removed.jsonl
cut -c1-14 removed.jsonl
seq 1 3000 | sed "s/.*/{\"id\":\"&\",\"text\":\"& $fox\"}/" >many.jsonl
sed -n '1~3s/"id":"/&x/p' many.jsonl >again
cat again >>many.jsonl
for threads in 1 8; do
    both many.jsonl .jsonl --similarity 0.99 --threads $threads
    sort kept.jsonl removed.jsonl >together
    sort many.jsonl | cmp - together && echo same
done
echo "== which of each group stays"
doppel dedup -q a.jsonl -o - --annotate --keep-copies 2 | grep -o '"isDuplicate.*'
doppel dedup -q a.jsonl -o - --annotate --annotate-prefix x_ | grep -o '"x_kept":[a-z]*'
echo "== refused"
mkdir folder
try a.jsonl -o folder
try a.jsonl -o folder/
try a.jsonl -o missing/
try a.jsonl -o - --removed-documents folder
doppel trim a.jsonl -o folder
doppel trim a.jsonl -o missing/
try a.jsonl
try a.jsonl --removed list.jsonl --annotate
try a.jsonl -o no.jsonl --annotate --removed-documents removed.jsonl
try a.jsonl --output-dir folder --removed-documents removed.jsonl
try a.jsonl --dry-run --removed-documents removed.jsonl
try a.jsonl -o no.jsonl --removed-documents no.jsonl
try a.csv -o no.csv --removed-documents removed.jsonl
try a.csv --removed-documents removed.tsv
try a.jsonl --removed-documents a.jsonl
try a.jsonl --removed-documents removed.parquet
ls -d no* missing folder/* 2>/dev/null || echo "nothing is written"
