# A report of a trim: what is on the page, that text of documents is harmless, and what is refused.
printf '%s\n' \
    '{"id":"one","text":"A line of its own, by one.\nAccept <b>all</b> cookies & continue here.\n<script>alert(1)</script> is a line of five words."}' \
    '{"id":"t\u202ewo","text":"Two has more words than one has.\nACCEPT <b>ALL</b> cookies, continue here.\nand so on"}' \
    '{"id":"three","url":"https://example.org/three?a=1&b=2","text":"Accept <b>all</b> cookies & continue here\n<script>alert(1)</script> is a line of FIVE words\n."}' \
    '{"id":"https://example.org/four","url":"javascript:alert(1)","text":"accept <b>all</b> cookies continue here\nfour is left"}' \
    '{"id":"five","text":"nothing of this stands anywhere else"}' >in.jsonl
# The page without its style and its day, an element a line.
show() {
    sed 's/<style>.*<\/style>//; s/, [0-9]*-[0-9]*-[0-9]*<.p>/, DAY<\/p>/; s/<[^/!]/\n&/g' "$1" | grep -v '^<\(svg\|rect\|line\|path\|circle\|g\|text\)\|^$'
}
doppel trim in.jsonl -o out.jsonl --work run 2>/dev/null
doppel report --work run -o report.html
grep -c '<script\|<img\|http-equiv="refresh"\|src=\|href="[^#h]' report.html
grep -o "default-src 'none'[^\"]*" report.html
echo "== the page, but for its timings"
show report.html | sed '/Time, measured/,$d'
echo "== stdout, compressed, the same again"
doppel report --work run -o - | sed 's/[0-9.]* s</N s</g; s/width="[0-9.]*%"//g' >first
doppel report --work run -o report.html.gz --threads 1
gzip -dc report.html.gz | sed 's/[0-9.]* s</N s</g; s/width="[0-9.]*%"//g' | cmp - first && echo same
doppel report --work run --groups 1 -o - | grep -o 'these are the 1 with the most occurrences'
doppel report --work run --groups 0 -o - | grep -c '<h2>What repeats most'
echo "== passages, against, dropped"
printf '%s\n' '{"key":"q","body":"<b>all</b> cookies continue here"}' >eval.jsonl
doppel trim in.jsonl -o out.jsonl --work known --unit passage --words 4 --against eval.jsonl --against-text-key body \
    --against-id-key key --drop-share 0.4 --drop-below 6 2>/dev/null
doppel report --work known -o known.html
show known.html | sed '/Time, measured/,$d' | sed -n '/<h2>In and out/,/<h2>How much/p; /<h2>What repeats most/,$p'
echo "== other keys, stop words, long records left out"
sed 's/"text"/"body"/' in.jsonl >keys.jsonl
echo '{"id":"long","body":"'"$(seq -s ' ' 1 100)"'"}' >>keys.jsonl
echo 'continue' >stop
doppel trim keys.jsonl -o out.jsonl --work keys --text-key body --stop-words stop --max-record 200 2>/dev/null
doppel report --work keys -o keys.html
show keys.html | grep -c '<del>'
doppel report --work keys --text-key text -o keys.html
echo "exit $?"
echo "== long texts are folded"
seq -s ' ' 1 100 >long
printf '%s\n' '{"id":"a","text":"'"$(cat long)"'\nown words of a"}' '{"id":"b","text":"'"$(cat long)"'\nwords of b"}' >long.jsonl
doppel trim long.jsonl -o out.jsonl --work w-long 2>/dev/null
doppel report --work w-long -o long.html
show long.html | grep -A2 '<details class="cut'
echo "== nothing, one"
: >empty.jsonl
head -1 in.jsonl >single.jsonl
for input in empty single; do
    doppel trim $input.jsonl -o out.jsonl --work w-$input 2>/dev/null
    doppel report --work w-$input -o $input.html
    show $input.html | grep 'nothing was found twice\|There is no document'
done
echo "== refused"
try() {
    doppel report "$@"
    echo "exit $?: $*"
}
try --work run -o in.jsonl
try --work run -o run/trim
try --work run -o run/trim-spans
try --work run -o nowhere/report.html
mkdir apart && cd apart
try --work ../run -o report.html
cd ..
mkdir unfinished both
cp run/trim-spans unfinished
try --work unfinished -o changed.html
doppel dedup in.jsonl -o out.jsonl --work both 2>/dev/null
cp run/trim run/trim-spans both
try --work both -o changed.html
head -4 in.jsonl >fewer && mv fewer in.jsonl
try --work run -o changed.html
head -c 300 run/trim >cut && mv cut run/trim
try --work run -o changed.html
[ -e changed.html ] || ls apart
