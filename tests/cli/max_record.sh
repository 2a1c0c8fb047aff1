# Records over the limit are left out and named; the others are not touched.
{
    echo '{"id":"a","text":"short enough for the limit"}'
    printf '{"id":"b","text":"'
    head -c 3000000 /dev/zero | tr '\0' x
    printf '"}\n{"id":"c","text":"short enough as well as a"}\n'
} >a.jsonl
doppel fingerprint --max-record 1M a.jsonl
echo "exit $?"
doppel fingerprint --max-record 100 a.jsonl
echo "exit $?"
doppel fingerprint --max-record 4M a.jsonl
echo "exit $?"
head -c 2000 /dev/zero | tr '\0' y >plain.txt
doppel fingerprint --max-record 1K plain.txt
echo "exit $?"
doppel fingerprint --max-record 2K plain.txt
echo "exit $?"
