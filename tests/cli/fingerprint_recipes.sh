# Recipes, widths, stop words, JSON lines.
echo "The quick brown fox jumps over the lazy dog" >a.txt
echo "the over" >stop.txt
echo "quick brown fox jumps lazy dog" >c.txt
: >empty.txt
doppel fingerprint --recipe article a.txt
doppel fingerprint --recipe literal a.txt
doppel fingerprint --bits 128 a.txt
doppel fingerprint -b 6 a.txt
doppel fingerprint -r simhash32:chars=2 -b 13 a.txt
doppel fingerprint --stop-words stop.txt a.txt
doppel fingerprint c.txt
doppel fingerprint --json a.txt empty.txt
doppel fingerprint --json --recipe simhash64:words=2:minhash=4:sample=3 a.txt empty.txt
# The first document of a thread has the same fields as a later one.
doppel fingerprint --json --recipe simhash64:words=2:minhash=4:sample=3 empty.txt
