# A recipe that cannot be read: which part, and what is allowed.
echo text >a.txt
try() {
    doppel fingerprint "$@" a.txt
    echo "exit $?: $*"
}
try --recipe nonsense
try --recipe simhash65
try --recipe simhash64:words=0
try --recipe simhash64:hash=nosuch
try --recipe simhash64:weight=heavy
try --recipe simhash64:colour=blue
try --recipe simhash64:weight=tfidf
try --bits 65
try --bits 0
try --stop-words missing.txt
try --df missing.df
echo text >t.txt
doppel df --recipe simhash64:words=1 t.txt -o t.df
try --df t.df --recipe simhash64:words=1
try --df a.txt --recipe simhash64:weight=tfidf
