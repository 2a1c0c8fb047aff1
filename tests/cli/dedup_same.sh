# dedup: the same bytes with any number of threads and files; many documents of one kind.
awk 'BEGIN {
    srand(1)
    for (i = 0; i < 3000; i++) {
        if (i % 4 == 0) {
            n = 20 + int(rand() * 40)
            for (k = 0; k < n; k++) word[k] = int(rand() * 5000)
        }
        if (i % 4 > 1) word[int(rand() * n)] = int(rand() * 5000)
        printf "{\"id\":\"%d\",\"text\":\"", i
        for (k = 0; k < n; k++) printf "%s ", word[k]
        print "\"}"
    }
}' >all.jsonl
split -n l/5 all.jsonl part.
for method in auto simhash; do
    doppel dedup --method $method all.jsonl -o one.jsonl --removed one.removed --threads 1 2>&1 | tail -n 1
    for threads in 2 7; do
        doppel dedup --method $method all.jsonl -o more.jsonl --removed more.removed --threads $threads 2>/dev/null
        cmp one.jsonl more.jsonl && cmp one.removed more.removed
        doppel dedup --method $method part.* -o more.jsonl --removed more.removed --threads $threads 2>/dev/null
        cmp one.jsonl more.jsonl && cmp one.removed more.removed
    done
    doppel dedup --method $method one.jsonl -o again.jsonl 2>&1 | tail -n 1
    cmp one.jsonl again.jsonl
done
doppel dedup all.jsonl -o one.jsonl.gz 2>/dev/null
doppel dedup all.jsonl -o one.jsonl.zst 2>/dev/null
doppel dedup all.jsonl -o one.jsonl 2>/dev/null
gzip -dc one.jsonl.gz | cmp - one.jsonl
zstd -dqc one.jsonl.zst | cmp - one.jsonl
doppel dedup - -o stdin.jsonl <all.jsonl 2>/dev/null
cmp one.jsonl stdin.jsonl
cat all.jsonl | doppel dedup - -o stdin.jsonl 2>/dev/null
cmp one.jsonl stdin.jsonl
echo "== many copies, many empty ones, many that differ in one word"
text=$(seq -s ' ' 1 60)
for kind in "$text" "" "$text &"; do
    seq 1 20000 | sed "s/.*/{\"id\":\"&\",\"text\":\"$kind\"}/" >many.jsonl
    for options in "" "--method simhash" "--link any" "--keep last"; do
        # shellcheck disable=SC2086 # words
        doppel dedup $options many.jsonl -o many.out 2>&1 | tail -n 1
    done
done
