# Compressed output: the same bytes with any number of threads, and what gzip, zstd, Python and doppel read is the plain
# output. It has several blocks of each kind.
awk 'BEGIN {
    srand(7)
    for (i = 0; i < 6000; i++) {
        printf "{\"id\":\"%d\",\"text\":\"", i
        for (k = 0; k < 200; k++) printf "%d ", rand() * 1000000
        print "\"}"
    }
}' >all.jsonl
doppel dedup all.jsonl -o plain.jsonl --threads 1 2>/dev/null
for name in one.jsonl.gz one.jsonl.zst; do
    doppel dedup all.jsonl -o $name --threads 1 2>/dev/null
    for threads in 2 3 8; do
        doppel dedup all.jsonl -o more.$name --threads $threads 2>/dev/null
        cmp $name more.$name
    done
    for threads in 1 2 5; do
        doppel fingerprint $name --threads $threads >$name.$threads.tsv
        doppel fingerprint plain.jsonl --threads $threads | cmp - $name.$threads.tsv
    done
done
gzip -dc one.jsonl.gz | cmp - plain.jsonl
zstd -dqc one.jsonl.zst | cmp - plain.jsonl
python3 -c 'import gzip, sys; sys.stdout.buffer.write(gzip.open("one.jsonl.gz").read())' | cmp - plain.jsonl
zstd -lv one.jsonl.zst 2>/dev/null | grep -c 'Check: XXH64'
wc -l <plain.jsonl
ln -s /dev/full full.jsonl.gz
for name in /dev/full full.jsonl.gz; do
    doppel dedup all.jsonl -o $name 2>message
    echo "exit $?: $(tail -n 1 message)"
done
