# Other encodings are reported: Latin-1 is used unchanged, UTF-16 left out.
printf 'caf\351 au lait\n' >latin1.txt
doppel fingerprint latin1.txt
echo "exit $?"
printf '\377\376c\000a\000f\000' >utf16le.txt
printf '\376\377\000{\000}\000\n' >utf16be.jsonl
doppel fingerprint utf16le.txt utf16be.jsonl
echo "exit $?"
mkdir folder
for i in 1 2 3 4 5 6 7 8 9 a b c; do cp latin1.txt folder/$i; done
cp utf16le.txt folder/utf16
doppel fingerprint folder | wc -l
doppel fingerprint folder >/dev/null 2>&1
echo "exit $?"
long=$(printf 'a%.0s' $(seq 1 200))
mkdir -p $long/$long
cp utf16le.txt $long/$long/a
doppel fingerprint $long/$long/a 2>/dev/null
echo "exit $?"
