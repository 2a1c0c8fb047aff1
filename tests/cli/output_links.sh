# Outputs that are links, devices and pipes: links are followed and kept, pipes and devices are written to directly.
echo '{"id":"1","text":"one two three four five six"}' >a.jsonl
echo '{"id":"2","text":"one two three four five six"}' >>a.jsonl
what() {
    [ -L "$1" ] && printf 'a link, ' && readlink "$1"
    cat "$1"
}

echo "== a link to a file, one to a link, one to nothing yet"
mkdir there
echo old >there/out.jsonl
ln -s there/out.jsonl link
ln -s link chain
ln -s there/new.jsonl dangling
doppel dedup -o chain --removed dangling a.jsonl
echo "exit $?"
what chain
what link
what dangling
ls there

echo "== what does not work leaves the link and the file"
doppel pairs -o chain missing.jsonl
echo "exit $?"
what link
ln -s loop loop
doppel pairs -o loop a.jsonl
echo "exit $?"
ln -s nowhere/out.jsonl lost
doppel pairs -o lost a.jsonl
echo "exit $?"

echo "== a link that has the name of the unfinished file is not written through"
echo untouched >other
sh -c 'ln -s other placed.$$.tmp && exec doppel dedup -o placed a.jsonl'
what other
what placed

echo "== descriptors, whatever they are"
ln -s /proc/self/fd/1 stdout # as /dev/stdout is
doppel dedup a.jsonl -o stdout 2>/dev/null >out
cat out
{
    echo before
    doppel pairs a.jsonl -o stdout 2>/dev/null
    doppel cluster a.jsonl -o /dev/fd/3 2>/dev/null 3>&1
    doppel dedup a.jsonl -o /dev/null --removed /dev/fd/4 2>/dev/null 4>&1
    echo after
} >out
cat out
doppel pairs a.jsonl -o stdout 2>/dev/null | cat
ln -s stdout mine
doppel pairs a.jsonl -o mine 2>/dev/null | cat
readlink mine stdout

echo "== a named pipe"
mkfifo pipe
cat pipe >got &
doppel pairs a.jsonl -o pipe 2>/dev/null
echo "exit $?"
wait
cat got
[ -p pipe ] && echo "still a pipe"

echo "== files that are not streams: tables, sketches"
doppel df a.jsonl -o table 2>/dev/null
ln -s linked.df df
doppel df a.jsonl -o df 2>/dev/null
cmp table linked.df && readlink df
doppel df a.jsonl -o stdout 2>/dev/null | cmp - table && echo "the same through a pipe"
doppel dedup a.jsonl -o /dev/null --save-sketches sketches 2>/dev/null
ln -s linked.sketches s
doppel dedup a.jsonl -o /dev/null --save-sketches s 2>/dev/null
cmp sketches linked.sketches && readlink s
doppel dedup a.jsonl -o /dev/null --save-sketches /dev/fd/3 3>through 2>/dev/null
cmp sketches through && echo "the same through a descriptor"

echo "== an index, an export, a report, verdicts, fingerprints"
doppel add --index seen a.jsonl -o link 2>/dev/null
what link
doppel export --index seen -o stdout 2>/dev/null | wc -l
doppel fingerprint a.jsonl >prints.hex
doppel join prints.hex -o link
what link
doppel dedup a.jsonl -o /dev/null --work run 2>/dev/null
ln -s there/page.html page
doppel report --work run -o page
head -c 15 there/page.html
echo
readlink page

echo "== a link to an input, and to a folder that is read"
ln -s a.jsonl input
doppel dedup a.jsonl -o input
echo "exit $?"
ln -s there/new.jsonl inside
doppel dedup there a.jsonl -o inside
echo "exit $?"
