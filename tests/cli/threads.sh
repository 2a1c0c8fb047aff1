# Every number of threads gives the same bytes.
i=0
while [ $i -lt 3000 ]; do
    i=$((i + 1))
    echo "{\"id\":$i,\"text\":\"record $i of this file, $((i * 7919 % 10007)) and some more words $i\"}"
    [ $((i % 100)) -ne 0 ] || echo broken
done >a.jsonl
mkdir folder
split -l 10 -a 3 a.jsonl folder/x
doppel fingerprint --threads 1 a.jsonl folder >one 2>one.messages
for threads in 2 3 8; do
    doppel fingerprint --threads $threads a.jsonl folder >many 2>many.messages
    cmp one many && cmp one.messages many.messages && echo "$threads threads: same"
done
wc -l <one
tail -n 1 one.messages
