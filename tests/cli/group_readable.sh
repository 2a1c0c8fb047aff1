# --group-readable: the folder's group may read the index and write to its lock, whatever the umask says, also when it is
# compacted. Without it the umask counts.
umask 077
echo '{"id":"a","text":"some words for a document, and some more"}' >a.jsonl
modes() {
    stat -c '%a %n' "$1" "$1"/* | LC_ALL=C sort -k 2
}
doppel add --index shared --group-readable a.jsonl >/dev/null
modes shared
doppel compact --index shared >/dev/null
modes shared
doppel add --index own a.jsonl >/dev/null
modes own
doppel add --index own --group-readable a.jsonl >/dev/null
modes own
doppel add --store redis://127.0.0.1:1 --group-readable a.jsonl
