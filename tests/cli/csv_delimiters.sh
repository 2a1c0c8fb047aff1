# CSV as Excel writes it where the comma is the decimal point: cells are separated by semicolons; and by |.
printf '\357\273\277nr;version;frage;antwort\r\n1;1,0;"Was ist das; und wo?";Ein kurzer Satz, der hier steht\r\n2;1,0;"Was ist das; und wo?";Ein kurzer Satz, der hier steht\r\n3;2,0;Wer?;"Ganz andere ""Worte"",\r\ndie hier stehen"' >faq.csv
doppel dedup faq.csv -o out.csv
doppel dedup --text-key frage,antwort --id-key nr faq.csv -o out.csv --removed -
tr -d '\r' <out.csv
head -c 4 out.csv | od -c
doppel dedup -q --format csv --text-key frage,antwort --id-key nr - -o - <faq.csv | cmp - out.csv
echo "== JSONL, annotated rows"
doppel dedup --text-key frage,antwort --id-key nr faq.csv -o - --annotate
doppel dedup --text-key frage,antwort --id-key nr faq.csv -o marked.csv --annotate --annotate-prefix 'x;' --count-by version
tr -d '\r' <marked.csv
echo "== |, and one that is not divided"
printf 'id|text\n1|some words, with; other signs\n' >bars.csv
doppel fingerprint bars.csv
printf 'id/body\n1/some words, with; other signs\n' >none.csv
doppel fingerprint none.csv
