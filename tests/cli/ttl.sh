# --ttl: what has expired does not match, and can be added again.
text=$(seq -s ' ' 1 50)
printf '{"id":"a","url":"http://example.org/","text":"%s"}\n' "$text" >a.jsonl
printf '{"id":"b","url":"http://example.org/","text":"%s"}\n' "$text" >b.jsonl
doppel add --index seen --ttl 1 a.jsonl
sleep 2.1
doppel check --index seen b.jsonl
doppel get --index seen a
echo "exit $?"
doppel add --index seen --ttl 1h b.jsonl
doppel check --index seen a.jsonl | cut -c1-60
doppel compact --index seen | sed 's/"bytes[A-Za-z]*":[0-9]*/"bytes":N/g'
doppel stats --index seen | grep -E '"(documents|lastNumber)"'
