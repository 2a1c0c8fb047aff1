# Wrong usage: exit code 2, and a line that says what was meant or what is allowed.
try() {
    doppel "$@"
    echo "exit $?: $*"
}
try fingreprint x
try frobnicate
try --frobnicate
try fingerprint
try fingerprint --recpe page x
try fingerprint --frobnicate x
try fingerprint -z x
try fingerprint x --recipe
try fingerprint --json=yes x
try fingerprint --threads many x
try fingerprint --max-record 64X x
try fingerprint --max-record 99999999999T x
try compare one
try compare one two three
try compare - -
try compare --min-words 0 one two
try overlap --words 0 one
try cluster --top 0 one
try dedup --limit 0 one -o two
try df x
try df --merge a b
try df --show
try df --show a b
try pairs
try pairs --method magic x
try pairs --distance 65 x
try pairs --distance 17 --bits 16 x
try pairs --json x
try cluster
try cluster --link all x
try cluster --keep best x
try cluster --json x
doppel 2>/dev/null
echo "exit $?: nothing"
doppel -V | cut -d' ' -f1
