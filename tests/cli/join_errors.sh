# Files that are no fingerprints, and options that make no sense.
try() {
    doppel join "$@"
    echo "exit $?: join $*"
}
printf '0\n1\n3\n' >good.hex
printf '0\n1\n\n3\n' >empty_line.hex
printf '0\nxyz\n' >no_digits.hex
printf '0\n12 34\n' >two_words.hex
printf '0\n123456789012345678901234567890123\n' >too_long.hex
printf '0\n10000\n' >wide.hex
printf '0\n1ffffffffffffffff\n' >wider.hex
printf '\001\002\003\004\005\006\007\010\011' >cut.u64
printf '\001\002\003\004\005\006\007\010' >cut.u128
printf '\001\000\000\000\000\000\000\001' >wide.u64
echo '{"fingerprint":"12"}' >bad.jsonl
cp bad.jsonl number.jsonl
cp bad.jsonl other.jsonl
echo '{"fingerprint":"1g"}' >>bad.jsonl
echo '{"fingerprint":12}' >>number.jsonl
echo '{"print":"12"}' >>other.jsonl
gzip -k good.hex
gzip -c good.hex >good
mkdir folder
for file in missing.u64 missing.hex missing.jsonl missing folder empty_line.hex no_digits.hex two_words.hex too_long.hex \
    wider.hex cut.u64 cut.u128 bad.jsonl number.jsonl other.jsonl good.hex.gz good; do
    try $file
done
try --bits 16 wide.hex
try --bits 56 wide.u64
try good.hex missing.u64
try good.hex no_digits.hex
try good.hex cut.u64
try --from raw good.hex
try --from text good.hex
try - <bad.jsonl
try - <cut.u64
try - <no_digits.hex
try
try a b c
try - -
try --distance 65 good.hex
try --distance 5 --bits 4 good.hex
try --distance -1 good.hex
try --bits 0 good.hex
try --bits 65 good.hex
try --rotate 2 good.hex good.hex
try --window 2 good.hex
try --rotate 2 --window 0 good.hex
try --all good.hex good.hex
try --names wide.u64
try --names good.hex wide.u64
try --json good.hex
try --count --output pairs good.hex
try --memory much good.hex
try --memory 4GX good.hex
try --memory 4 good.hex
try --memory 500 good.hex
for size in 65536 500MB 4GiB 4GB 500m 64kib; do
    try --count --memory $size good.hex
done
ls
