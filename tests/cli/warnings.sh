# What would pass unnoticed: a field that no record has, documents without words.
cat >a.jsonl <<'END'
{"id":1,"text":"some words that stand here","source":"x"}
{"id":2,"text":"","source":"y"}
{"id":3,"text":"","source":"y"}
{"id":4,"text":"...","source":"y"}
END
exec 2>&1
echo "== --count-by"
doppel dedup a.jsonl --annotate --count-by sauce -o out.jsonl
doppel dedup a.jsonl --annotate --count-by source -o out.jsonl
printf 'id,text\n1,some words\n' >t.csv
doppel dedup t.csv --annotate --count-by sauce -o out.csv
: >none.jsonl
doppel dedup none.jsonl --annotate --count-by sauce -o out.jsonl
echo "== no words"
doppel dedup a.jsonl -o out.jsonl
doppel dedup -q a.jsonl -o out.jsonl
head -n 2 a.jsonl | doppel dedup - -o out.jsonl
echo "== removed"
doppel add --index seen --on-duplicate link - >/dev/null <<'END'
{"id":"a","text":"one two three four five six seven"}
{"id":"b","text":"One two three four five six seven"}
{"id":"c","text":"one two three four five six seven!"}
END
doppel remove --index seen typo a
echo "exit $?"
doppel remove -q --index seen typo
echo "exit $?"
echo "== several keys as several words"
printf 'nr,question,answer\n1,what is it,some words\n' >qa.csv
rm -f out.csv
doppel dedup --text-key question answer qa.csv -o out.csv
echo "exit $?"
[ ! -e out.csv ]
printf '{"question":"what is it, answer me","b":1}\n' >qa.jsonl
doppel dedup -q --text-key question answer qa.jsonl -o - # "answer" is in the text only
doppel dedup -q --text-key question b qa.jsonl -o -
doppel dedup --text-key question other.csv qa.csv -o out.csv
mkfifo pipe # which can be read only once
printf '{"question":"what is it, in many words"}\n' >pipe &
timeout 20 doppel dedup -q --text-key question pipe missing.jsonl -o -
echo "exit $?"
doppel dedup 'nothing*.csv' qa.csv --text-key question -o out.csv
