# Presets and the options that change them: a folder keeps the settings it was created with.
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
echo "== but a folder that a failed command left, without any document, takes others"
printf 'id,headline,body\n1,A headline of today,some words in the body of it\n' >news.csv
doppel add --index failed --preset crawl news.csv
echo "exit $?"
doppel add --index failed --keep-text --on-duplicate link --text-key headline,body news.csv | cut -c 1-28
settings failed | grep -o '"preset":"[a-z]*"\|"keepText":[a-z]*\|"onDuplicate":"[a-z]*"'
doppel add --index failed --preset crawl --text-key headline,body news.csv
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
try --keep-text on
try --keep-text off
try --keep-text=on
ls new 2>/dev/null
