# --annotate on rows: columns are added at their ends, and everything else stays as it was.
cat >a.csv <<'END'
id,text,"site, name"
1,"Some words, with ""quotes"" and
a line end",x
2,"Some words, with ""quotes"" and a line end",y
"i""3,",Some other words that stand alone,z
4,Some other words that stand alone!,z
END
printf 'id,text,"site, name"\n5,some OTHER words that stand alone,q' >b.csv
for threads in 1 3; do
    doppel dedup --threads $threads a.csv b.csv --annotate -o out.csv
    cat out.csv
done
echo "== counts, a prefix with a comma, compressed"
doppel dedup a.csv b.csv --annotate --count-by 'site, name' --annotate-prefix 'my,' -o out.csv.gz
gzip -dc out.csv.gz
echo "== CR LF, a byte-order mark, TSV, a CSV file with tabs"
printf '\357\273\277id,text\r\n1,alone with these words\r\n2,"alone, with these words"' >crlf.csv
doppel dedup crlf.csv --annotate -o out.csv
od -c out.csv
printf 'id\ttext\n1\talone, with these words\n\n2\talone with these words\n' >t.tsv
doppel dedup t.tsv --annotate -o out.tsv
tr '\t' '|' <out.tsv
cp t.tsv t.csv
doppel dedup t.csv --annotate -o out.csv
cmp out.csv out.tsv
doppel dedup --format csv - --annotate -o out.csv <a.csv
head -n 2 out.csv
echo "== to other names go records"
doppel dedup a.csv --annotate -o out.jsonl
head -n 1 out.jsonl
doppel dedup a.csv --annotate -o - | head -n 1
echo "== refused: a column of this name, other columns, other formats"
printf 'id,text, "kept" \n1,words that are kept,yes\n' >k.csv
rm out.*
doppel dedup k.csv --annotate -o out.csv
doppel dedup --format csv - --annotate -o out.csv <k.csv
doppel dedup a.csv k.csv --annotate -o out.csv
doppel dedup a.csv --annotate -o out.tsv
echo '{"id":1,"text":"words"}' >j.jsonl
doppel dedup j.jsonl --annotate -o out.csv
ls out.* 2>/dev/null
doppel dedup k.csv --annotate --annotate-prefix dup_ -o out.csv
cat out.csv
