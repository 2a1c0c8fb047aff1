# Presets and the options that change them: what a folder is made with stays with it.
settings() {
    doppel stats --index "$1" | sed -n '/"options"/,/}/p' | tr -d '\n' | sed 's/^ *//; s/  */ /g; s/}.*/}/'
    echo
}
echo "a text of some words for each of these" >a.txt
add() {
    index=$1
    shift
    doppel add --index "$index" "$@" a.txt >/dev/null && settings "$index"
}
add general
add crawl --preset crawl
add article --preset article
add other --distance 5 --titles off --min-words 9 --keep-text --fields author --content all --url-keep scheme,www
add more --preset crawl --similarity 0.5 --title-similarity 0.8 --titles on
add none --preset crawl --distance 0
echo "== later they need not be given, and must not be others"
doppel add --index crawl a.txt
doppel add --index crawl --preset crawl a.txt >/dev/null && echo fine
doppel add --index crawl --preset article a.txt
echo "exit $?"
doppel add --index crawl --distance 4 a.txt
echo "exit $?"
echo "== options that make no sense"
try() {
    doppel add --index new "$@" a.txt
    echo "exit $?: $*"
}
try --preset best
try --near mostly
try --near distance --similarity 0.9
try --similarity 0.9 --distance 3
try --similarity 2
try --distance 65
try --titles maybe
try --ttl soon
try --ttl 0
try --on-duplicate drop
try --on-same-url nothing
try --durability always
try --recipe nonsense
try --stop-words a.txt
try --memory 1G
try --log-level info
try --log log --log-level debug
try --batch 0
try --json
ls new 2>/dev/null
