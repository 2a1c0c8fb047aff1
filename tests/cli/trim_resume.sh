# trim --work: a run that was interrupted continues where it stopped, with the same result.
line() {
    printf '{"id":"%s","text":"%s"}\n' "$1" "$2"
}
try() {
    echo "== $*"
    doppel trim "$@" 2>&1
    echo "exit $?"
}
{
    line a 'one two three four five six\nand a'
    echo broken
    line b 'one two three four five six\nand b'
} >a.jsonl
try a.jsonl -o out.jsonl --work run
try a.jsonl -o again.jsonl --work run --resume --spans -
cmp out.jsonl again.jsonl && echo same
echo "== other options, other inputs"
try a.jsonl -o again.jsonl --work run --resume --unit sentence
try a.jsonl -o again.jsonl --work run
line c 'one two three four five six' >c.jsonl
try a.jsonl c.jsonl -o again.jsonl --work run --resume
line d 'four five six seven eight nine' >>a.jsonl
try a.jsonl -o again.jsonl --work run --resume
try a.jsonl -o again.jsonl --work a.jsonl
cat a.jsonl | doppel trim - -o again.jsonl --work stdin
echo "exit $?"
echo "== interrupted while it reads"
. "$(dirname "$0")/interrupt.inc"
interrupt a.jsonl trim - -o none.jsonl
cat stderr
ls none.jsonl* 2>/dev/null || echo "no output"
echo "== interrupted while it writes"
seq 1 3000 | sed "s/.*/{\"id\":&,\"text\":\"& $(seq -s ' ' 1 2000)\\\\nthe last line of them all\"}/" >many.jsonl
mkfifo out
interruptible trim many.jsonl -o out --work stopped 2>stderr &
command=$!
exec 3<out
head -c 1 <&3
echo
kill -INT $command
cat <&3 >/dev/null
wait $command
echo "exit $?"
cat stderr
doppel trim many.jsonl -o out.jsonl --work stopped --resume
doppel trim many.jsonl -o - 2>/dev/null | cmp - out.jsonl && echo same
