# What can be wrong with an index folder and with options: a message, and the exit code.
try() {
    doppel "$@"
    echo "exit $?: $(echo "$*" | cut -c1-60)"
}
echo "some words for a document" >a.txt
echo "== no --index, no folder, not a folder"
for command in "add a.txt" "check a.txt" "similar a" "get a" "remove a" stats compact "backup x" verify export "import a.txt"; do
    # shellcheck disable=SC2086 # words
    try $command
done
for command in "check a.txt" "similar a" "get a" "remove a" stats compact "backup x" verify export; do
    # shellcheck disable=SC2086 # words
    try $command --index missing
done
try check --index a.txt a.txt
try add --index a.txt a.txt
try add --index none/below a.txt
mkdir other
echo text >other/file
try check --index other a.txt
try verify --index other
echo "== another writer, and readers beside it"
mkfifo pipe
doppel add --index seen pipe >out &
writer=$!
exec 3>pipe
echo '{"id":"first","text":"some words for a document"}' >&3
while [ ! -s out ]; do sleep 0.1; done
doppel add --index seen a.txt 2>&1 | sed "s/$writer/PROCESS/"
doppel remove --index seen a 2>&1 | sed "s/$writer/PROCESS/"
try check --index seen a.txt
exec 3>&-
wait $writer
try add --index seen a.txt
echo "== another recipe"
try add --index seen --recipe article a.txt
try check --index seen --recipe article a.txt
echo "== read-only"
chmod -R a-w seen
if [ "$(id -u)" != 0 ]; then # who may write everywhere cannot try
    doppel add --index seen a.txt >/dev/null 2>&1
    [ $? -eq 4 ] || echo "a folder that is read-only can be written"
fi
doppel check --index seen a.txt | cut -c1-40
chmod -R u+w seen
echo "== ids and URLs that are too long, invalid UTF-8, nothing"
long=$(head -c 1000000 /dev/zero | tr '\0' a)
printf '{"id":"%s","text":"words"}\n{"id":"good","text":"a good one among bad ones"}\n{"id":"u","url":"http://%s/","text":"words"}\n' "$long" "$long" >long.jsonl
try add --index seen long.jsonl
try add --index seen --strict long.jsonl
printf '{"id":"bytes \351","text":"caf\351 au lait with sugar please"}\n' >bytes.jsonl
try add --index seen bytes.jsonl
: >empty.jsonl
try add --index seen empty.jsonl
: >empty.txt
try add --index seen empty.txt
echo '{"text":""}' | try check --index seen -
echo '{"text":""}' | try add --index seen -
echo "== the output"
doppel check --index seen a.txt >/dev/full
echo "exit $?"
try check --index seen a.txt -o none/out
try check --index seen a.txt -o a.txt
try export --index seen -o seen/out.jsonl
try export --index seen -o out.csv
