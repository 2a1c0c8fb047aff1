# --store: invalid values, and a store that cannot be reached. No password is ever shown.
try() {
    doppel "$@"
    echo "exit $?: $*" | sed 's/secret/***/'
}
echo '{"id":"a","text":"some words for a document"}' >a.jsonl
try stats --index seen --store redis://127.0.0.1
try stats --store seen
try stats --store http://:secret@127.0.0.1
try stats --store rediss://:secret@127.0.0.1
try stats --index redis://:secret@127.0.0.1
try stats --store ''
try prepare
try prepare --store seen
try prepare --store 'redis://admin:secret@127.0.0.1:1'
try add --store redis://127.0.0.1 --durability each a.jsonl
try add --store redis://127.0.0.1 --count 1M --memory 1G a.jsonl
try dedup --against redis://:secret@127.0.0.1 -o out.jsonl a.jsonl
try overlap --against redis://:secret@127.0.0.1 a.jsonl

# Passwords in files.
echo secret >password
chmod 644 password
try stats --store redis://127.0.0.1 --store-password-file password
chmod 600 password
try stats --store redis://:secret@127.0.0.1 --store-password-file password
try stats --store redis://127.0.0.1 --store-password-file missing
: >password
try stats --store redis://127.0.0.1 --store-password-file password
try stats --index seen --store-password-file password

# Nobody listens at port 1.
try stats --store 'redis://crawler:secret@127.0.0.1:1/3?retry=0&prefix=pages'
for command in 'compact' 'export' 'backup copy'; do
    # shellcheck disable=SC2086 # the operands are words of their own
    try $command --store 'redis://:secret@127.0.0.1:1?retry=0'
done
try add --store 'redis+unix://:secret@/nowhere/redis.sock?retry=0' a.jsonl
try add --store 'redis://:sec/ret?se@cr#et@127.0.0.1:1?retry=0' a.jsonl
try add --store 'redis+sentinel://127.0.0.1:1/main?sentinel_password=secret&retry=0' a.jsonl
try add --store 'redis://127.0.0.1:1/x' a.jsonl
try add --store 'redis://127.0.0.1:1?colour=red' a.jsonl
try add --store redis://127.0.0.1:1 --near similarity a.jsonl
