# SIGINT: what was read is done, exit code 5; a reader that goes away is no error.
mkfifo pipe
{
    echo '{"id":"before","text":"a record that came before the interruption"}'
    sleep 10
} >pipe &
feeder=$!
# A shell starts background commands with SIGINT ignored; python3 gives it back.
python3 - >out 2>err <<'END' &
import os, signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp("doppel", ["doppel", "fingerprint", "pipe"])
END
command=$!
while [ ! -s out ]; do sleep 0.1; done
kill -INT $command
wait $command
echo "exit $?"
kill $feeder 2>/dev/null
cat out err
i=0
while [ $i -lt 20000 ]; do
    i=$((i + 1))
    echo "{\"id\":$i,\"text\":\"word\"}"
done >a.jsonl
doppel fingerprint --threads 1 a.jsonl a.jsonl a.jsonl | head -n 1
doppel fingerprint a.jsonl >/dev/full
echo "exit $?"
