# Where pairs go: a reader that closes the pipe, a full disk, a file that is whole or absent, an interruption.
seq 4000 | while read -r i; do printf '%x\n' $((i % 64)); done >many.hex
doppel join --all many.hex | head -n 1
doppel join --all many.hex >/dev/full
echo "exit $?"
doppel join --all many.hex --output /dev/full
echo "exit $?"
doppel join many.hex --output nowhere/pairs
echo "exit $?"
echo before >pairs
doppel join many.hex missing.hex --output pairs
echo "exit $?"
printf 'zz\n' | doppel join many.hex - --output pairs
echo "exit $?"
cat pairs
printf '1\n2\n' >two.hex
. "$(dirname "$0")/interrupt.inc"
filler=1 interrupt two.hex join --from hex many.hex - --output pairs
cat stderr pairs
doppel join --threads 1 many.hex --output pairs --distance 1
wc -l <pairs
doppel join --threads 3 many.hex --distance 1 2>/dev/null | cmp - pairs && echo "3 threads: same"
ls
