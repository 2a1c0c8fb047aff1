# A key that names a field, and an INPUT that has none: CSV is recognised by the header, plain text is refused.
cat >qa.csv <<'END'
nr,question,answer
1,What is this?,A table with some words in it
2,What is this?,A table with some words in it
3,And what is that?,"Something else, with other words"
END
cp qa.csv qa.txt
echo "== recognised by all the keys, on stdin and by name"
cat qa.csv | doppel dedup - --text-key question,answer -o - --id-key nr
doppel dedup qa.txt --text-key answer -o out.csv
cat out.csv
tr , ';' <qa.csv | doppel fingerprint --text-key question,answer -
doppel fingerprint --html-key answer qa.txt
echo "== refused"
for keys in '--text-key questions,answer' '--id-key nr' '--html-key page'; do
    cat qa.csv | doppel dedup - $keys -o out.jsonl
    echo "exit $?"
done
doppel dedup --strict qa.txt --text-key body -o out.jsonl
doppel add --index seen --text-key body qa.txt
printf 'body\nsome words in one column\n' | doppel dedup --text-key body - -o -
echo '{"id":1,"body":"some words that are here"}' >a.jsonl
doppel dedup a.jsonl qa.txt --text-key body -o out.jsonl
doppel dedup a.jsonl --text-key body --against qa.txt --against-text-key body -o out.jsonl
ls out.jsonl
echo "== not refused: as asked for, below a folder, of the other side, empty, --allow-bad"
mkdir texts
cp qa.txt texts
doppel fingerprint --format text --text-key body qa.txt
doppel fingerprint --text-key body texts
doppel fingerprint --text-key body --allow-bad qa.txt
doppel dedup a.jsonl --text-key body --against qa.txt -o -
doppel compare --text-key body a.jsonl qa.txt | head -n 1
doppel dedup --text-key body - -o - </dev/null
echo "== a text inside an object is proposed by its path"
echo '{"id":1,"data":{"content":"some words that are here","n":1,"a,b":"a longer text whose key has a comma"}}' >nested.jsonl
doppel dedup nested.jsonl -o - || echo "exit $?"
doppel dedup nested.jsonl --text-key data.content -o -
echo '{"id":1,"v1.0":{"text":"some words in an object whose key has a dot"},"x":[{"y":"some words in an array"}]}' >odd.jsonl
doppel dedup odd.jsonl -o - || echo "exit $?"
