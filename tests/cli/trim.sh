# trim: repeated lines are cut, all but the first; which one is kept, which documents are dropped, the summary.
line() {
    printf '{"id":"%s","text":"%s"}\n' "$1" "$2"
}
trim() {
    echo "== $*"
    doppel trim "$@" 2>&1
}
{
    line a 'A first line of its own here.\nAccept all cookies to continue reading.\nThe end of a.'
    line b 'Another page has other words first.\nACCEPT all cookies, to continue: reading!\nThe end of b.'
    line c 'short one\nAccept all cookies to continue reading.\nshort one\nAccept all cookies to continue reading.'
    line d 'Accept all cookies to continue reading.'
} >a.jsonl
trim a.jsonl -o out.jsonl --spans spans.jsonl --dropped dropped.jsonl --json >summary
sed 's/,"spilledBytes".*/}/' summary
for file in out spans dropped; do
    echo "== $file"
    cat $file.jsonl
done
trim out.jsonl -o -
trim a.jsonl -o - --min-words 2
trim a.jsonl -o - --min-words 0 --run 2
trim a.jsonl -o - --min-words 7
trim a.jsonl -o - --keep last
trim a.jsonl -o - --keep longest
trim a.jsonl -o - --min-count 5
trim a.jsonl -o - --min-count 6
trim a.jsonl -o - --keep-first off
trim a.jsonl -o - --keep-first on
trim a.jsonl -o - --within document
trim a.jsonl -o - --across document
trim a.jsonl -o out.jsonl --drop-below 5 --dropped -
trim a.jsonl -o out.jsonl --drop-share 0.75 --dropped -
trim a.jsonl -o - --drop-share 0.7 --drop-below 1 --dropped dropped.jsonl
cat dropped.jsonl
trim a.jsonl -o - --drop --spans spans.jsonl
cat spans.jsonl
echo "== scopes"
{
    echo '{"id":"1","url":"http://a.example.com/1","lang":"en","text":"Sign up for our weekly letter"}'
    echo '{"id":"2","url":"http://b.example.com/1","lang":"de","text":"Sign up for our weekly letter"}'
    echo '{"id":"3","url":"http://a.example.com/2","lang":"de","text":"Sign up for our weekly letter"}'
} >scopes.jsonl
for scope in '--within host' '--within domain' '--within lang' '--across host' '--across domain' '--across lang' \
    '--within document' '--within none'; do
    # shellcheck disable=SC2086 # words
    trim scopes.jsonl -o /dev/null --spans - $scope
done
sed 's/url/link/' scopes.jsonl | doppel trim - -o - --url-key link --within host
echo "== --dry-run writes no documents"
trim a.jsonl -o dry.jsonl --dry-run --drop-below 1
trim a.jsonl --dry-run --spans - --dropped dropped.jsonl
cat dropped.jsonl
trim a.jsonl --dry-run --json | sed 's/,"spilledBytes".*/}/'
ls
echo "== threads and memory make no difference"
i=0
while [ $i -lt 3000 ]; do
    line $i "Line number $((i % 700)) of the corpus\\nThe same footer in all of them\\nand $i in one"
    i=$((i + 1))
done >many.jsonl
trim many.jsonl -o one.jsonl --spans one.spans --threads 1
trim many.jsonl -o two.jsonl --spans two.spans --threads 2 --memory 1M --tmp .
cmp one.jsonl two.jsonl && cmp one.spans two.spans && echo same
sed -n '1p;701p;3000p' one.jsonl
