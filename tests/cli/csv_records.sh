# CSV to JSONL: every column is there, by dedup, with --annotate, and by trim; hostile headers.
fox="the quick brown fox jumps over the lazy dog"
printf 'id,text,lang,group\n1,"%s, ""so""\nit is",en,mine\n2,%s,de,\n,other words that nobody has said,fr,yours\n' "$fox" "$fox" >a.csv
echo "== records"
doppel dedup -q a.csv -o a.jsonl
cat a.jsonl
echo "== annotated: its own group takes the place of the column"
doppel dedup a.csv -o - --annotate
echo "== with other formats"
printf '{"id":"x","text":"a new document with words of its own","lang":"it"}\n' >b.jsonl
tr , '\t' <a.csv >c.tsv
doppel dedup -q b.jsonl c.tsv -o -
echo "== keys: the fields of records are the columns"
printf 'key,question,answer\nk,%s,indeed\nl,what else is there to say,nothing much\n' "$fox" >q.csv
doppel dedup -q --id-key key --text-key question,answer q.csv -o q.jsonl
cat q.jsonl
doppel dedup -q --id-key key --text-key question,answer q.jsonl -o - | cmp - q.jsonl && echo "read again, they are the same"
echo "== pages stay pages"
printf 'id,html\n1,<p>%s</p>\n' "$fox" >h.csv
doppel dedup -q h.csv -o h.jsonl
cat h.jsonl
echo "== names that are missing, the same or invalid, rows of another length"
printf ',text,text,text_1,\377,\376\na,b,%s,c,d,\377\nshort,row\n' "$fox" >names.csv
doppel dedup names.csv -o names.jsonl 2>&1
cat names.jsonl
printf 'id,text\n1,%s\n' "$fox" >after.csv
head -c 70000 /dev/zero | tr '\0' , >wide.csv
printf 'text\n' >>wide.csv
doppel dedup wide.csv after.csv --allow-bad -o wide.jsonl
echo "exit $?"
cat wide.jsonl
echo "== trim"
doppel trim -q a.csv -o -
