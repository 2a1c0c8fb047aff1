# stats: what an index holds; values that depend on the machine are not compared.
{
    printf '{"id":"a","url":"http://example.org/a","title":"A title that counts","text":"%s"}\n' "$(seq -s ' ' 1 50)"
    printf '{"id":"b","url":"http://example.org/a","text":"other words at the same address"}\n'
    printf '{"id":"c","text":"%s"}\n' "$(seq -s ' ' 1 50)"
    printf '{"id":"d","title":"A title that count","text":"quite other words under a similar title"}\n'
    printf '{"id":"e","text":"the last of them, and like no other"}\n'
} | doppel add --index seen --on-duplicate link - >/dev/null
doppel stats --index seen >stats
sed 's/"20[0-9T:-]*Z"/"TIME"/; s/\(Bytes": \)[1-9][0-9]*/\1N/; s/"\(keys\|near\|titles\)":[1-9][0-9]*/"\1":N/g; s/\(openSeconds":\)[^,]*/\1S/' stats
python3 -c 'import json; json.load(open("stats"))' && echo "is JSON"
doppel stats --index seen more
echo "exit $?"
doppel stats
echo "exit $?"
