# get: all that is remembered; remove: and forgotten.
{
    printf '{"id":"a","url":"http://Example.org/a?utm_source=x","title":"A \\"title\\"","source":"wire","n":1,"text":"%s"}\n' "$(seq -s ' ' 1 20)"
    printf '{"id":"wide \\u00e9\\t","text":"%s"}\n' "$(seq -s ' ' 30 60)"
    echo '{"id":"empty","text":""}'
} >a.jsonl
show() {
    sed 's/"added":"[^"]*"/"added":"..."/; s/"expires":"[^"]*"/"expires":"..."/'
}
doppel add --index seen --keep-text --ttl 30d a.jsonl >/dev/null
doppel get --index seen a https://www.example.org/a empty | show
doppel get --index seen nobody "$(printf 'wide \303\251\t')" 2>&1 | show
doppel get --index seen nobody
echo "exit $?"
echo "== remove"
doppel remove --index seen a nobody
echo "exit $?"
doppel get --index seen a
echo "exit $?"
doppel remove --index seen a
echo "== what is gone does not match"
doppel check --index seen a.jsonl
echo "== and can come again"
doppel add --index seen a.jsonl | cut -c1-60
echo "== by URL: an id that is one comes first, then the document with this URL"
{
    echo '{"id":"https://example.org/page","text":"a document whose id looks like an address of the web"}'
    echo '{"id":"page","url":"http://www.example.org/page/?utm_source=x","text":"and another one that really has this address"}'
} >urls.jsonl
doppel add --index urls urls.jsonl >/dev/null
for again in 1 2 3; do
    doppel remove --index urls https://example.org/page
done
doppel remove --index urls page
echo "== copies, with a URL and without"
show_copies() {
    sed 's/"number":.*"originalId"/...,"originalId"/; s/,"evidence":.*//'
}
{
    printf '{"id":"first","url":"http://example.org/first","text":"%s"}\n' "$(seq -s ' ' 1 20)"
    printf '{"id":"same","text":"%s"}\n' "$(seq -s ' ' 1 20)"
    printf '{"id":"alone","text":"%s"}\n' "$(seq -s ' ' 40 60)"
    printf '{"id":"moved","url":"http://example.org/first?utm_source=x","text":"%s"}\n' "$(seq -s ' ' 70 90)"
    seq 1 250 | sed "s/.*/{\"id\":\"copy &\",\"text\":\"$(seq -s ' ' 1 20)\"}/"
} >copies.jsonl
doppel add --index copies --on-duplicate link copies.jsonl >/dev/null
doppel get --index copies --copies http://example.org/first alone same >all
wc -l <all
head -n 3 all | show_copies
tail -n 1 all | show_copies
doppel get --index copies --copies nobody alone
echo "exit $?"
doppel get --index copies --copies alone --quiet
echo "exit $?"
echo "== copies go with their original, and the count of duplicates stays when one is removed"
head -n 4 copies.jsonl >few.jsonl
copies_of_first() {
    doppel get --index few first | grep -o '"duplicates":[0-9]*'
    doppel get --index few --copies first | grep -o '^{"id":"[a-z]*"'
}
doppel add --index few --on-duplicate link few.jsonl >/dev/null
copies_of_first
doppel remove --index few moved
copies_of_first
doppel remove --index few http://example.org/first
doppel get --index few same
doppel get --index few --copies same
echo "exit $?"
head -n 2 few.jsonl | doppel add --index few --on-duplicate link - | cut -c 1-60
doppel remove --index few same
copies_of_first
echo "== an index that only counts copies"
doppel add --index counts few.jsonl >/dev/null
doppel get --index counts --copies first alone
echo "exit $?"
doppel get --index counts --copies same
echo "exit $?"
doppel remove --index counts first

echo "== in words"
without_time() {
    sed 's/[0-9-]*T[0-9:]*Z/TIME/g'
}
doppel get --index seen --print text a empty | without_time
doppel get --index seen --print jsonl empty | cut -c1-30
doppel get --index seen --print xml empty
doppel get --index copies --print text first moved same http://example.org/first | without_time
doppel remove --index copies first --quiet
doppel get --index copies --print text same | without_time

echo "== what add put there is removed by its verdicts, and nothing that was there before"
undo() {
    head -n 2 few.jsonl | doppel add --index undone --on-duplicate $1 - >/dev/null
    {
        head -n 1 few.jsonl
        tail -n 2 few.jsonl
        echo '{"url":"http://example.org/first","text":"other words at an address that is known, under no id of their own"}'
        echo '{"id":"{braces","text":"an id may begin with a brace, too"}'
        echo '{"id":"first copy","text":"an id may begin with a brace, two"}'
    } | doppel add --index undone --on-duplicate $1 - >added.jsonl
    doppel export --index undone | grep -c '"id"'
    doppel remove --index undone --files-from added.jsonl
    echo "exit $?"
    doppel get --index undone --print text first same http://example.org/first | without_time
    doppel remove --index undone --files-from added.jsonl >/dev/null
    echo "exit $?"
    rm -r undone
}
undo link
undo skip
{
    printf '{"url":"http://example.org/1","text":"%s"}\n' "$(seq -s ' ' 1 60)"
    printf '{"url":"http://example.org/2","text":"%s"}\n' "$(seq -s ' ' 1 61)"
} >named.jsonl
doppel add --index undone --on-duplicate link named.jsonl >first.jsonl
for how in link skip; do
    tail -n 1 named.jsonl | doppel add --index undone --on-duplicate $how - >second.jsonl
    cut -c1-70 second.jsonl
    doppel remove --index undone --files-from second.jsonl
done
doppel remove --index undone --files-from first.jsonl
rm -r undone
doppel add --index undone few.jsonl >/dev/null
doppel remove --index undone '{"id":"alone"}' '{braces' "$(printf '{"id":"alone","isDuplicate":false}')"

echo "== the records themselves are not what add printed"
doppel add --index records few.jsonl >/dev/null
doppel remove --index records --files-from few.jsonl alone
echo "exit $?"
doppel remove --index records "$(head -n 1 few.jsonl)"

echo "== an id that was made from the URL is another's"
{
    printf '{"id":"https://example.org/a","text":"%s"}\n' "$(seq -s ' ' 1 40)"
    printf '{"url":"https://example.org/a","text":"%s"}\n' "$(seq -s ' ' 1 40)"
    printf '{"url":"https://example.org/a","text":"%s"}\n' "$(seq -s ' ' 100 140)"
    printf '{"url":"https://example.org/a","text":"%s"}\n' "$(seq -s ' ' 100 140)"
} | doppel add --index derived - | cut -c1-80
doppel get --index derived https://example.org/a | cut -c1-60
doppel export --index derived | grep -c '"id"'

echo "== names that are not UTF-8"
mkdir names
echo "the words of the first of them" >"names/$(printf 'caf\351.txt')"
echo "and those of the other, with a percent sign" >"names/$(printf '5%% caf\350.txt')"
echo "a plain percent sign stays as it is" >"names/5%.txt"
doppel add --index named names | cut -c1-40
doppel export --index named | doppel import --index again -
doppel get --index again names/caf%E9.txt names/5%25%20caf%E8.txt 'names/5%25 caf%E8.txt' | cut -c1-60
doppel remove --index again names/caf%E9.txt
doppel fingerprint names | cut -f2
