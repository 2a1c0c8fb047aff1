# A store that asks for a password, is flushed, stops and restarts; and a password that is never shown.
. "$(dirname "$0")/redis.inc"
redis_start --appendonly yes --appendfsync always --requirepass sec/ret
echo '{"id":"a","text":"some words for a document, and some more"}' >a.jsonl
echo '{"id":"b","text":"these are other words, and there are some more"}' >b.jsonl
echo '{"id":"c","text":"the third of them has words of its own, as all have"}' >c.jsonl
wait_for_verdicts() {
    tries=0
    until [ -s verdicts ] || [ $tries -gt 500 ]; do
        tries=$((tries + 1))
        sleep 0.02
    done
}
with_password=$(echo "$store" | sed 's|//|//:sec%2Fret@|')
doppel add --store "$store" a.jsonl 2>&1 | steady
doppel add --store "$(echo "$store" | sed 's|//|//:wrong@|')" a.jsonl 2>&1 | steady
doppel add --store "$with_password" a.jsonl
DOPPEL_REDIS_PASSWORD=sec/ret doppel check --store "$store" a.jsonl >/dev/null
echo "exit $?"
echo sec/ret >password
chmod 600 password
doppel stats --store "$store" --store-password-file password | grep index | steady

echo "== the command line has no password"
mkfifo records
doppel add --store "$with_password?retry=5" --batch 1 --log log records >verdicts 2>stderr &
adding=$!
exec 3>records
cat b.jsonl >&3
wait_for_verdicts
tr '\0' ' ' </proc/$adding/cmdline | steady | sed 's/ *$//; s/  */ /g'
echo

echo "== it goes away, and comes back"
redis_stop
cat c.jsonl >&3
sleep 0.3
redis_start --appendonly yes --appendfsync always --requirepass sec/ret
exec 3>&-
wait $adding
echo "exit $?"
cut -c 1-40 verdicts
cat stderr
grep -c 'sec.*ret' log
redis_stop

echo "== it comes back empty"
rm -rf appendonlydir
redis_start
mkfifo more
doppel add --store "$store" --batch 1 more >verdicts 2>stderr &
adding=$!
exec 3>more
cat a.jsonl >&3
wait_for_verdicts
redis-cli -s redis.sock flushall >/dev/null
redis-cli -s redis.sock function flush >/dev/null
sed 's/"a"/"A"/' a.jsonl >&3
exec 3>&-
wait $adding
echo "exit $?"
cut -c 1-40 verdicts
steady <stderr

echo "== it is full"
redis-cli -s redis.sock config set maxmemory 1 >/dev/null
doppel add --store "$store" b.jsonl 2>&1 | steady
doppel check --store "$store" a.jsonl | cut -c 1-40
redis-cli -s redis.sock config set maxmemory 1gb maxmemory-policy allkeys-lru >/dev/null
doppel check --store "$store" a.jsonl 2>&1 | cut -c 1-200 | steady

echo "== it is gone"
redis_stop
doppel add --store "$store?retry=0" a.jsonl 2>&1 | steady
