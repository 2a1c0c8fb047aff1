# add and check: the same verdicts for every number of threads, from files, a folder and a pipe, whatever the batches.
awk 'BEGIN {
    srand(7)
    for (d = 0; d < 4000; d++) {
        of = d % 4 ? d : int(rand() * (d + 1))
        printf "{\"id\":\"d%d\",\"url\":\"http://example.org/%d\",\"title\":\"A title that is number %d of many\",\"text\":\"", \
            d, d % 7 ? d : int(d / 2), d % 11 ? d * 7919 : of
        changed = int(rand() * 60)
        for (w = 0; w < 60; w++)
            printf "w%d ", of != d && w == changed ? d : of * 101 + w
        print "\"}"
        if (d % 1500 == 7)
            print "no record"
    }
}' >all.jsonl
mkdir parts
split -n l/3 --additional-suffix=.jsonl all.jsonl parts/
for threads in 1 2 8; do
    doppel add --title-veto off --index "seen$threads" --threads $threads all.jsonl -o "added$threads" 2>"messages$threads"
    echo "add with $threads threads: exit $?"
    doppel check --index seen1 --threads $threads all.jsonl -o "checked$threads" 2>>"messages$threads"
    echo "check with $threads threads: exit $?"
    sed 's/seen[0-9]/seen/' "messages$threads" | cmp - messages1
    cmp "added$threads" added1
    cmp "checked$threads" checked1
    doppel add --title-veto off --index "pieces$threads" --threads $threads --batch 97 parts 2>/dev/null | cmp - added1
    doppel add --title-veto off --index "piped$threads" --threads $threads - <all.jsonl 2>/dev/null | cmp - added1
    doppel stats --index "seen$threads" | grep -c '"documents":'
    doppel verify --index "seen$threads" | sed 's/"bytes":[0-9]*,//'
done
cat messages1
