# CSV and TSV: by name and by header, compressed, with keys; rows and headers that are wrong.
cat >a.csv <<'EOF'
id,title,text
one,T,The quick brown fox jumps over the lazy dog
2,,"The quick ""brown"" fox,
jumps over the lazy dog"
,,Completely other words stand in this second record here
short,row
EOF
doppel fingerprint a.csv
head -2 a.csv | doppel fingerprint -
gzip -k a.csv
head -2 a.csv | tr , '\t' >b.tsv
doppel fingerprint --threads 2 a.csv.gz b.tsv
printf 'key,body\nk,The quick brown fox jumps over the lazy dog\n' >c.csv
doppel fingerprint --id-key key --text-key body c.csv
doppel fingerprint c.csv
echo "exit $?"
printf 'id,text\n1,words that stand here alone\n2,"open\n3,lost\n' >d.csv
doppel fingerprint --strict d.csv
