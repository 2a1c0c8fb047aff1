# Every measure and the shared passages, for people.
echo "The quick brown fox jumps over the lazy dog, and sleeps." >a.txt
echo "Yesterday the quick brown fox jumps over the lazy cat; it sleeps." >b.txt
: >empty.txt
gzip -k b.txt
doppel compare a.txt b.txt.gz
doppel compare a.txt a.txt
doppel compare a.txt empty.txt
doppel compare --recipe article --min-words 3 a.txt - <b.txt
echo "one" >one.txt
echo "one!" >two.txt
doppel compare --min-words 1 one.txt two.txt
