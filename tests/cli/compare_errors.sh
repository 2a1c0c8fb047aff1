# What cannot be compared.
echo "some text" >a.txt
printf '{"text":"a"}\n{"text":"b"}\n' >two.jsonl
echo '{"no":"text"}' >none.jsonl
try() {
    doppel compare "$@"
    echo "exit $?: $*"
}
try a.txt missing.txt
try two.jsonl a.txt
try a.txt none.jsonl
printf '{"text":"a"}\nnot JSON\n' >broken.jsonl
try --strict broken.jsonl a.txt
try --recipe nonsense a.txt a.txt
