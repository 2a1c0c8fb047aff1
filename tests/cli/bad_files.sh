# Files that are bad: the rest is done, exit code 3.
echo "a good file with a few words" >good.txt
doppel fingerprint missing.txt good.txt
echo "exit $?"
doppel fingerprint good.txt/below good.txt
echo "exit $?"
printf 'binary\000file' >binary
doppel fingerprint binary good.txt
echo "exit $?"
i=0
while [ $i -lt 2000 ]; do
    i=$((i + 1))
    echo "{\"id\":$i,\"text\":\"record number $i of this file, $((i * 7919 % 1000003))\"}"
done >a.jsonl
gzip -c a.jsonl | head -c 10000 >cut.jsonl.gz
zstd -qc a.jsonl | head -c 10000 >cut.jsonl.zst
for file in cut.jsonl.gz cut.jsonl.zst; do
    doppel fingerprint $file good.txt >out
    echo "exit $?"
    tail -n 1 out
    sed '$d' out >part
    doppel fingerprint a.jsonl | head -n "$(wc -l <part)" | cmp - part && echo "a whole number of records"
done
gzip -c good.txt | head -c 20 >cut.txt.gz
doppel fingerprint cut.txt.gz good.txt
echo "exit $?"
doppel fingerprint --strict missing.txt good.txt
echo "exit $?"
