# Titles in batches: those that say nothing, and short ones, make no copies, as in an index.
record() {
    printf '{"id":"%s","title":"%s","text":"%s"}\n' "$1" "$2" "$3"
}
{
    record lost1 "Page not found" "we have moved the shop to another street, come and see us there"
    record lost2 "404: Page Not Found!" "the museum is closed until the roof has been mended in spring"
    record lost3 "Page not found." "sheep may be sold on the market from nine in the morning on"
    record short1 "Contents" "a first chapter about the rivers of the north and their bridges"
    record short2 "Contents" "what the cook needs for twelve guests, by the day of the week"
    record story1 "A bridge over the northern river" "it was opened yesterday by the mayor, who was the first to cross it"
    record story2 "A bridge over the Northern River" "traffic will be counted for a year before trams are allowed on it too"
    record story3 "A bridge over the northern rivers" "the toll is one crown for a cart and nothing for those who walk"
} >a.jsonl
for by in title content,title content,url,title; do
    echo "== dedup --by $by"
    doppel dedup a.jsonl --by $by -o /dev/null --removed - 2>/dev/null
done
echo "== chains, pairs, groups"
doppel dedup a.jsonl --by title --link any -o /dev/null --removed - 2>/dev/null | cut -d, -f 1-3
doppel pairs a.jsonl --by title 2>/dev/null
doppel cluster a.jsonl --by title 2>/dev/null | cut -d, -f 1-4
echo "== add"
doppel add --preset article --index seen a.jsonl -o - 2>/dev/null | cut -d, -f 1,2,4
echo "== dedup --against"
sed 's/"id":"/&new-/' a.jsonl >b.jsonl
doppel dedup b.jsonl --by title --against a.jsonl -o /dev/null --removed - 2>/dev/null | cut -d, -f 1-3
echo "== one order of evidence: the URL, the content, the title; with chains, too"
words="it was opened yesterday by the mayor who was the first to cross it on foot while the band played and the children"
{
    record same1 "A bridge over the northern river" "$words sang"
    record same2 "A bridge over the northern river" "$words sang!"
    record near "A bridge over the northern river" "$words danced"
    record other "A bridge over the northern rivers" "the toll is one crown for a cart and nothing for those who walk"
    printf '{"id":"url1","url":"http://a.com/x","title":"A bridge over the northern river","text":"%s sang"}\n' "$words"
    printf '{"id":"url2","url":"http://a.com/x","title":"A bridge over the northern river","text":"%s sang"}\n' "$words"
} >c.jsonl
for link in kept any; do
    echo "-- $link"
    doppel dedup c.jsonl --by content,url,title --similarity 0.7 --link $link -o /dev/null --removed - 2>/dev/null
    doppel dedup c.jsonl --by title --link $link -o /dev/null --removed - 2>/dev/null
    tail -n 2 c.jsonl | doppel dedup - --by content,url,title --link $link -o /dev/null --removed - 2>/dev/null
done
doppel pairs c.jsonl --by content,url,title --similarity 0.7 2>/dev/null
