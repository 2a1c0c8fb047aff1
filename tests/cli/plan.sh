# Plans: the choice in words, the table, wider distances; times are the cost model's and are left out.
plan() {
    doppel plan "$@" | sed -E 's/ *[0-9.]+ (us|ms|s|min|h)\b/ TIME/'
}
echo "--- one layout"
plan --count 10M --distance 3 --layout 4x16
echo "--- the classic reductions"
doppel plan --count 10M --distance 3 | awk '$1 == "*" {sub(/^\* /, "")} $1 == "4x16" || $1 == "4x16+4x12" {print $1, $2, $(NF - 1)}'
echo "--- a billion in 20G"
doppel plan --count 1000000000 --distance 3 --memory 20G | grep -c '^\*.*yes$'
doppel plan --for join --count 1G --distance 3 --memory 20G | grep -c '^\*.*yes$'
echo "--- a join by a layout"
plan --for join --count 1M --distance 3 --layout 5c2x26
echo "--- a scan"
plan --count 5 --distance 3 --layout scan
echo "--- 128 bits, radii of many tables"
plan --count 1M --distance 12 --bits 128 --layout 7x18
