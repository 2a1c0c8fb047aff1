# Every measure and the shared passages, for programs.
echo "The quick brown fox jumps over the lazy dog, and sleeps." >a.txt
echo "Yesterday the quick brown fox jumps over the lazy cat; it sleeps." >b.txt
: >empty.txt
echo '{"id":"from \"JSONL\"","text":"The quick brown fox jumps over the lazy dog"}' >c.jsonl
doppel compare --json a.txt b.txt
doppel compare --json --recipe simhash128:words=2:hash=murmur3:weight=tf c.jsonl empty.txt
