# trim --against: what other files have is cut, or the document dropped; nothing else is.
line() {
    printf '{"id":"%s","text":"%s"}\n' "$1" "$2"
}
try() {
    echo "== $*"
    doppel trim "$@" 2>&1
    echo "exit $?"
}
{
    line q1 'What is the capital of France, and why?'
    line q2 'Short text.'
    line q3 'one two three four five six seven eight nine ten eleven twelve thirteen fourteen'
    line q4 'what is the capital of france and why'
} >eval.jsonl
{
    line t1 'Quiz: what is the capital\nof FRANCE, and why? Paris it is.'
    line t2 'one two three four five six seven eight nine ten eleven twelve'
    line t3 'So: two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, thirteen, FOURTEEN! And more.'
    line t4 'Short text. And more that repeats nothing of the questions.'
    line t5 'Short text. And more that repeats nothing of the questions.'
    line t6 'What is the capital of France, and why?'
} >train.jsonl
try train.jsonl --unit passage --words 13 --against eval.jsonl -o - --spans spans.jsonl
cat spans.jsonl
try train.jsonl --unit passage --words 13 --against eval.jsonl --drop -o - --dropped dropped.jsonl
cat dropped.jsonl
try train.jsonl --unit passage --words 13 --min-words 1 --against eval.jsonl --drop -o /dev/null
try train.jsonl --unit passage --words 13 --min-words 13 --against eval.jsonl --drop -o /dev/null
try train.jsonl --against eval.jsonl -o out.jsonl --spans - --json | sed 's/,"spilledBytes".*/}/'
cat out.jsonl
head -n 1 eval.jsonl >first.jsonl
sed 1d eval.jsonl >rest.jsonl
try train.jsonl --unit passage --words 13 --against rest.jsonl --against first.jsonl -o /dev/null --spans -
sed 's/"id"/"key"/; s/"text"/"body"/' eval.jsonl >named.jsonl
try train.jsonl --against named.jsonl --against-text-key body --against-id-key key -o /dev/null --spans -
try train.jsonl --against named.jsonl -o out2.jsonl
cat train.jsonl | doppel trim - --against eval.jsonl -o - 2>/dev/null | cmp - out.jsonl && echo same
echo "== nothing to compare with"
: >empty.jsonl
mkdir none
try train.jsonl --against empty.jsonl -o /dev/null
try train.jsonl --against none -o out2.jsonl
try train.jsonl --against missing.jsonl -o out2.jsonl
try train.jsonl --against eval.jsonl --against missing.jsonl --allow-bad -o out2.jsonl --drop
try missing.jsonl --against eval.jsonl -o out2.jsonl
try train.jsonl --against redis://127.0.0.1 -o out2.jsonl
try train.jsonl --against-text-key body -o out2.jsonl
for options in '--keep last' '--min-count 3' '--keep-first off' '--within document' '--across host'; do
    # shellcheck disable=SC2086 # words
    try train.jsonl --against eval.jsonl $options -o out2.jsonl
done
ls
echo "== whole documents are compared: a hint where the known ones are far shorter"
{
    line l1 "$(seq -s ' ' 1 200) What is the capital of France, and why? $(seq -s ' ' 300 500)"
    line l2 "$(seq -s ' ' 600 900)"
} >long.jsonl
doppel dedup long.jsonl --against eval.jsonl -o /dev/null 2>&1
doppel dedup eval.jsonl --against long.jsonl -o /dev/null 2>&1
doppel dedup long.jsonl --against long.jsonl -o /dev/null 2>&1
