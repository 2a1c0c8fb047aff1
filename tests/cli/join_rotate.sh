# The approximate classic: rotations are sorted and neighbours compared; recall is reported.
for number in 37586 50086 2648 934 40957 2650 64475 40955; do
    printf '%04x\t%d\n' "$number" "$number"
done >eight.hex
rotate() {
    echo "== $*"
    doppel join --bits 16 --distance 3 --names "$@" eight.hex
    echo "exit $?"
}
rotate --rotate 1
rotate --rotate 2
rotate --rotate 3
rotate --rotate 0
rotate --rotate 1 --window 7
rotate --rotate 1 --window 1000
rotate --rotate 16
rotate --rotate 17
echo "== summary"
doppel join --bits 16 --rotate 1 --count --json eight.hex | sed 's/s":[0-9]*,"spilledBytes":[0-9]*/s":N,"spilledBytes":N/'
echo "== copies, one, none"
printf '1\n1\n1\n' | doppel join --rotate 1 -
printf '1\n' | doppel join --rotate 1 -
: | doppel join --rotate 1 -
