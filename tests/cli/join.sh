# Pairs of near fingerprints: raw numbers, lines of digits and JSONL alike; one set and two; copies, names, counts.
numbers="37586 50086 2648 934 40957 2650 64475 40955"
for number in $numbers; do
    printf '%04x\tno-%d\n' "$number" "$number"
done >eight.hex
while IFS="$(printf '\t')" read -r digits name; do
    printf '{"id":"%s","fingerprint":"%s"}\n' "$name" "$digits"
done <eight.hex >eight.jsonl
python3 -c 'import struct, sys; sys.stdout.buffer.write(struct.pack("<8Q", *map(int, sys.argv[1:])))' $numbers >eight.u64
doppel join --distance 3 --bits 16 eight.hex
echo "== other formats and ways in"
for input in eight.u64 eight.jsonl "--from raw -" "--bits 16 -"; do
    # shellcheck disable=SC2086 # words
    doppel join --distance 3 $input <eight.u64 >other && doppel join eight.hex | cmp - other && echo "$input: same"
done
doppel join - <eight.hex | cmp - other && echo "hex from stdin: same"
gzip -k eight.jsonl && doppel join eight.jsonl.gz | cmp - other && echo "gzip: same"
doppel join --from jsonl - <eight.jsonl.gz | cmp - other && echo "gzip from stdin: same"
sed 's/^/0x/; s/\t.*//; y/abcdef/ABCDEF/; s/$/\r/' eight.hex >plain && doppel join plain | cmp - other && echo "0xABC: same"
echo "== names"
doppel join --distance 4 --names eight.hex
doppel join --distance 4 --names eight.jsonl | tail -n 1
echo "== copies"
printf 'ff\n0f\nff\n1f\nff\n0f\n' >copies.hex
doppel join -d 1 copies.hex
doppel join -d 1 --all copies.hex
doppel join -d 1 --count copies.hex
doppel join -d 1 --count --all copies.hex
doppel join -d 1 --count --json copies.hex | sed 's/s":[0-9]*,"spilledBytes":[0-9]*/s":N,"spilledBytes":N/'
echo "== two sets"
printf 'a59a\n0000\n0a58\n' >few.hex
doppel join -d 2 few.hex eight.u64
doppel join -d 2 --names eight.hex few.hex
doppel join -d 2 --count eight.u64 - <few.hex
doppel join -d 2 eight.u64 few.hex --output pairs --json | sed 's/s":[0-9]*,"spilledBytes":[0-9]*/s":N,"spilledBytes":N/'
cat pairs
echo "== 128 bits, told by the digits or the name"
printf 'ffffffffffffffff0000000000000001\nfffffffffffffffe0000000000000000\n0\n' >wide.hex
doppel join -d 2 wide.hex
python3 -c 'import sys; [sys.stdout.buffer.write(int(line, 16).to_bytes(16, "little")) for line in sys.stdin]' <wide.hex >wide.u128
doppel join -d 2 wide.u128
doppel join -d 128 --bits 128 wide.u128
echo "== none"
: >none.u64
doppel join none.u64
doppel join --count none.u64 eight.u64
doppel join --count eight.u64 none.u64
printf '8000000000000000' | doppel join --all -
