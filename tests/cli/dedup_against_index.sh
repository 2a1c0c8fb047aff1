# dedup --against an index folder that doppel add made: by the address, the words, content and the title.
article='After nine years of work the harbour bridge was opened to traffic on Monday morning and the mayor cut a ribbon at the northern ramp while a crowd of some four thousand people walked across before the first cars were let through to the other shore'
ferry='Ferries which have crossed the bay since the days of steam will run until the end of the month and their captains say that they will miss the gulls and the regular passengers but not the winter storms that kept them in the harbour for weeks'
potter='Potters in the hill villages still fire their kilns with olive wood as their grandparents did and the clay comes from a pit behind the chapel where it is left to rot for a winter and is then trodden by foot in an afternoon of work for two'
cat >old.jsonl <<END
{"id":"bridge","url":"http://www.example.com/bridge?utm_source=mail","title":"The harbour bridge is open","text":"$article"}
{"id":"ferry","text":"$ferry"}
END
cat >new.jsonl <<END
{"id":"moved","url":"https://example.com/bridge","text":"Nothing of the old text is left on this page"}
{"id":"copy","text":"${ferry}."}
{"id":"edited","text":"$ferry, and more"}
{"id":"titled","title":"The harbour bridge is open!","text":"Another paper has written about the same thing in its own words"}
{"id":"potter","url":"https://example.com/clay","text":"$potter"}
{"id":"potter-again","text":"$potter of them"}
{"id":"empty","text":""}
END
doppel add --index seen --title-veto off old.jsonl >/dev/null
doppel add --index crawled --preset crawl --distance 8 old.jsonl >/dev/null

echo "== by similarity, content alone"
doppel dedup new.jsonl --against seen -o fresh.jsonl --removed -
echo "== by all there is"
doppel dedup new.jsonl --by url,content,title --against seen -o fresh.jsonl --removed removed.jsonl --json |
    sed 's/"spilledBytes":[0-9]*,//'
cat removed.jsonl
sed 's/,.*//' fresh.jsonl
echo "== annotated"
doppel dedup new.jsonl --by url --against seen -o - --annotate 2>/dev/null | sed 's/"text":"[^"]*",//'
echo "== by distance: its own, and nothing is verified"
doppel dedup new.jsonl --by url,content --against crawled -o fresh.jsonl --removed - 2>/dev/null
echo "== every number of threads"
for threads in 1 2 5; do
    doppel dedup new.jsonl --by url,content,title --against seen --threads $threads -o again.jsonl --removed again 2>/dev/null
    cmp again removed.jsonl
done
echo "== kept, gone on with, and its report"
doppel dedup new.jsonl --by url,content,title --against seen -o again.jsonl --work work 2>/dev/null
doppel dedup new.jsonl --by url,content,title --against seen -o again.jsonl --removed again --work work --resume 2>/dev/null
cmp again removed.jsonl
doppel report --work work -o report.html
grep -c 'A known document' report.html
echo "== refused"
for options in "--similarity 0.7" "--method simhash" "--recipe article" "--min-words 3" "--within host" "--link any" \
    "--boilerplate 0.1" "--content all" "--by url --url-keep www"; do
    doppel dedup new.jsonl --against seen $options -o no.jsonl 2>&1
done
doppel dedup new.jsonl --against crawled --by title -o no.jsonl
doppel dedup new.jsonl --against crawled --distance 9 -o no.jsonl
doppel pairs new.jsonl --against seen
echo "exit $?"
[ ! -e no.jsonl ]
