# A report of a finished run: what is on the page, that text of documents is harmless, and what is refused.
text=$(seq -s ' ' 100 160)
printf '%s\n' \
    '{"id":"one","url":"https://a.example/1","title":"<script>alert(1)</script>","text":"'"$text"' & <b>last</b>"}' \
    '{"id":"two","url":"https://b.example/1","text":"'"$text"' & <b>end</b>"}' \
    '{"id":"three","url":"https://a.example/2","text":"'"$text"' & <b>last</b>"}' \
    '{"id":"tur\u202en\u0007","url":"https://c.example/","text":"'"$text"' & <b>last\"</b>"}' \
    '{"id":"alone","text":"something else that nothing else is like at all"}' >in.jsonl
# The page without its style, an element a line.
show() {
    sed 's/<style>.*<\/style>//; s/<[^/!]/\n&/g' "$1" | grep -v '^<\(svg\|rect\|line\|path\|circle\)\|^$'
}
doppel dedup in.jsonl -o out.jsonl --work run --keep last 2>/dev/null
doppel report --work run -o report.html
grep -c '<script\|<img\|http-equiv="refresh"\|src=\|href="[^#h]' report.html
grep -o "default-src 'none'[^\"]*" report.html
echo "== in and out"
show report.html | sed -n '/<h2>In and out/,/<h2>How similar/p'
echo "== groups and hosts"
show report.html | sed -n '/The largest groups/,/Inputs/p'
echo "== the plan"
show report.html | sed -n '/The plan/,/Time, measured/p' |
    sed 's/[0-9]* bands of [0-9]* rows/B bands of R rows/; s/99\.[0-9]* %/99.N %/'
echo "== stdout, compressed, the same again"
doppel report --work run -o - | sed 's/[0-9.]* s</N s</g; s/width="[0-9.]*%"//g' >first
doppel report --work run -o report.html.gz --threads 1
gzip -dc report.html.gz | sed 's/[0-9.]* s</N s</g; s/width="[0-9.]*%"//g' | cmp - first && echo same
doppel report --work run --groups 0 -o - | grep -c 'The largest groups'
echo "== another text-key, a table, known documents"
printf 'id\tbody\nx\t%s\ny\t%s\n' "$text" "$text" >table.tsv
sed 's/"text"/"body"/' in.jsonl >keys.jsonl
doppel dedup keys.jsonl table.tsv --text-key body -o out.jsonl --work keys 2>/dev/null
doppel report --work keys --text-key body -o keys.html
show keys.html | grep -A1 'alert\|Kept: \|Removed: '
doppel dedup in.jsonl --against in.jsonl -o out.jsonl --work known 2>/dev/null
doppel report --work known -o known.html
show known.html | grep 'A known document' | head -1
echo "== texts without titles; spaces between what differs; more changes than are shown are folded"
some=$(seq -s ' ' 200 240)
printf '%s\n' text "$some If" "$some If extra words" "$(seq -s ' ' 600 700)" \
    "$(seq -s ' ' 600 700 | sed 's/[0-9]*5 /new /g')" "文字之间没有空格的一个句子在这里" "文字之间没有空格的这个句子在这里" >table.csv
doppel dedup table.csv --similarity 0.05 -o out.csv --work w-table 2>/dev/null
doppel report --work w-table -o table.html
show table.html | sed -n '/The largest groups/,/<h2>Inputs/p' | grep -v '^<div\|^<summary>$'
echo "== a long word"
for end in x y; do
    echo '{"id":"'$end$(seq -s '' 1 300)'","text":"'"$some $(head -c 9000 /dev/zero | tr '\0' w)"'"}'
done >words.jsonl
doppel dedup words.jsonl -o out.jsonl --work w-words 2>/dev/null
doppel report --work w-words -o words.html
grep -o '[^>]*more letters[^<]*' words.html
tr ' <>' '\n' <words.html | awk '{ if (length > longest) longest = length } END { print longest }'
grep -o '[0-9]*…</bdi>' words.html | uniq -c | awk '{ print $1, length($2) }'
echo "== nothing, one"
: >empty.jsonl
head -1 in.jsonl >single.jsonl
for input in empty single; do
    doppel dedup $input.jsonl -o out.jsonl --work w-$input 2>/dev/null
    doppel report --work w-$input -o $input.html
    show $input.html | grep 'Nothing was found twice\|There is no document'
done
echo "== refused"
try() {
    doppel report "$@"
    echo "exit $?: $*"
}
try
try --work run
try -o report.html
try --work run -o report.html in.jsonl
try --work run -o in.jsonl
try --work run -o run/sketches
try --work run -o report.html --groups 501
try --work nowhere -o report.html
try --work run -o nowhere/report.html
try --work run -o /dev/full
mkdir apart && cd apart
try --work ../run -o report.html
cd ..
head -4 in.jsonl >fewer && mv fewer in.jsonl
try --work run -o changed.html
rm in.jsonl
try --work run -o changed.html
head -c 700 run/sketches >cut && mv cut run/sketches
try --work run -o changed.html
[ -e changed.html ] || ls apart
echo "== similarities that are the same in hundredths"
for changed in 1000 1500 1597; do seq -s ' ' 1000 1600 | sed "s/$changed/other/" | sed "s/^/{\"text\":\"/; s/\$/\"}/"; done >near.jsonl
doppel dedup near.jsonl -o out.jsonl --work near 2>/dev/null
doppel report --work near -o - | grep -o '(similarity [^)]*)'
