# export and import: an index made again gives the same verdicts.
line() {
    printf '{"id":"%s","url":"http://example.org/%s","title":"%s","source":"s%s","text":"%s"}\n' "$1" "$1" "$2" "$1" "$3"
}
text=$(seq -s ' ' 1 60)
{
    line a "A title that counts for some" "$text"
    line b "" "$text 61"
    line c "A title that counts for sum" "words that no other document has, in any order"
    line d "" "three words only"
    line e "" ""
    echo '{"id":"f","url":"http://www.example.org/d/","text":"the address of another"}'
    line g "" "$(seq -s ' ' 100 160)"
} >a.jsonl
{
    cat a.jsonl
    line x "" "$(seq -s ' ' 100 161)"
    line y "a title that counts for same" "and yet other words"
    line z "" "nothing like it is there"
    echo '{"id":"u","url":"http://example.org/b/","text":"the address of a copy"}'
} >questions.jsonl
for preset in general crawl article; do
    for keep in "" --keep-text; do
        echo "== $preset $keep"
        rm -rf old new
        # shellcheck disable=SC2086 # none or one
        doppel add --index old --preset $preset $keep --titles on --title-veto off --ttl 30d --on-duplicate link a.jsonl >/dev/null
        doppel export --index old -o old.jsonl.gz --json
        doppel export --index old | doppel import --index new - --json
        doppel check --index old questions.jsonl >old.out
        doppel check --index new questions.jsonl >new.out
        cmp old.out new.out && echo same verdicts
        doppel get --index new a d | sed 's/"added":"[^"]*"/"added":"..."/; s/"expires":"[^"]*"/"expires":"..."/; s/"lastDuplicate":"[^"]*"/"lastDuplicate":"..."/; s/"text":"[^"]*"/"text":"..."/' | cut -c1-400
        doppel export --index old >old.lines
        doppel export --index new >new.lines
        cmp old.lines new.lines && echo same export
    done
done
echo "== what an export looks like"
sed 's/"set":"\([0-9a-f]\{16\}\)[0-9a-f]*"/"set":"\1..."/; s/"text":"[^"]*"/"text":"..."/; s/"\(added\|expires\|lastDuplicate\)":[0-9]*/"\1":N/g' old.lines
echo "== into another index: expired ones are left out, other recipes refused"
doppel add --index old2 a.jsonl >/dev/null
doppel export --index old2 | sed '/"id":"[ad]"/s/"expires":0/"expires":1/' >old2.jsonl
doppel import --index new2 old2.jsonl
doppel add --index page a.jsonl >/dev/null
doppel import --index page old.jsonl.gz
echo "exit $?"
doppel add --index similar --recipe article a.jsonl >/dev/null
doppel export --index new --json -o - 2>&1
rm -rf old
doppel add --index old --preset article --near distance a.jsonl >/dev/null
doppel export --index old | doppel import --index similar -
echo "exit $?"
echo '{"doppel":"index","version":2,"recipe":"page","text":""}' | doppel import --index newer -
echo "exit $?"
echo "== into an index with documents: those of the export are checked like new ones"
doppel add --index both --preset article questions.jsonl >/dev/null
doppel import --index both old.jsonl.gz --json
echo "exit $?"
echo "== plain records, and lines that are wrong"
{
    cat a.jsonl
    echo '{"id":"h","text":"","words":9,"fingerprint":"xyz"}'
    echo '{"id":"i","text":"","words":9,"fingerprint":"00ff","digest":"12"}'
    echo '{"id":"j","text":"","words":9,"fingerprint":"00ff","set":"000000000000000200000000000000010"}'
    echo '{"id":"k","text":"","originalId":"nobody","reason":"exact_url"}'
    echo '{"doppel":"something","text":""}'
    echo 'no JSON'
} >mixed.jsonl
doppel import --index plain mixed.jsonl
echo "exit $?"
doppel get --index plain a | grep -o '"fields":{[^}]*}'
echo text >a.txt
doppel import --index plain a.txt
echo "exit $?"
