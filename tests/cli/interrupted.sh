# SIGINT: what was read is done, exit code 5; a reader that goes away is no error.
. "$(dirname "$0")/interrupt.inc"
interrupt_once_printed fingerprint
i=0
while [ $i -lt 20000 ]; do
    i=$((i + 1))
    echo "{\"id\":$i,\"text\":\"word\"}"
done >a.jsonl
doppel fingerprint --threads 1 a.jsonl a.jsonl a.jsonl | head -n 1
doppel fingerprint a.jsonl >/dev/full
echo "exit $?"
