# check: verdicts without adding; exit code 1 when any is a duplicate.
printf '{"id":"a","url":"http://example.org/a","text":"%s"}\n' "$(seq -s ' ' 1 100)" | doppel add --index seen - >/dev/null
seq -s ' ' 1 100 >same.txt
seq -s ' ' 1 101 >near.txt
seq -s ' ' 500 600 >far.txt
doppel check --index seen same.txt near.txt far.txt
echo "exit $?"
doppel check --index seen far.txt
echo "exit $?"
doppel check --index seen far.txt far.txt
echo "exit $?: the second far.txt is no duplicate of the first, which was not added"
echo '{"url":"https://example.org/a/","text":"other words at a known address"}' | doppel check --index seen -
echo "exit $?"
echo "== to a file"
doppel check --index seen same.txt far.txt -o out.jsonl --json
echo "exit $?"
cat out.jsonl
echo "== a missing file: the rest is done, exit code 3"
doppel check --index seen missing.txt same.txt
echo "exit $?"
echo "== a live pipe: an answer does not wait for the next question"
mkfifo questions
doppel check --index seen questions >answers 2>/dev/null &
command=$!
exec 3>questions
echo '{"id":"q1","text":"a question"}' >&3
i=0
while [ ! -s answers ] && [ $i -lt 100 ]; do
    i=$((i + 1))
    sleep 0.1
done
wc -l <answers
echo '{"id":"q2","text":"another question"}' >&3
exec 3>&-
wait $command
echo "exit $?"
cat answers
