# What cannot be planned.
try() {
    doppel plan "$@" >/dev/null
    echo "exit $?: $*"
}
try
try --count 10M
try --distance 3
try --count ten --distance 3
try --count 10X --distance 3
try --count -1 --distance 3
try --count 99999999999G --distance 3
try --count 10M --distance three
try --count 10M --distance 65
try --count 10M --distance 33 --bits 32
try --count 10M --distance 3 --bits 65
try --count 10M --distance 3 --bits 0
try --count 10M --distance 3 --layout 5x
try --count 10M --distance 3 --layout 99x1
try --count 10M --distance 3 --for fun
try --count 10M --distance 3 --for join --layout 4x16
try --count 10M --distance 3 input.txt
try --count 1M --distance 3 --memory 1M
try --count 1M --distance 3 --memory 1M --for join
