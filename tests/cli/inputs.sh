# What inputs can be: patterns, a list of files, HTML, web archives.
mkdir d
for name in b a10 a9; do
    echo "the words of file $name are these" >d/$name.txt
done
echo "a file with a bracket in its name" >'d/[x].txt'
doppel fingerprint 'd/a*.txt' 'd/[x].txt' 'd/?.txt'
echo "exit $?"
doppel fingerprint 'd/*.none' d/b.txt
echo "exit $?"
printf 'd/b.txt\r\n\n  \nd/a9.txt' >list
doppel fingerprint --files-from list d/a10.txt
echo "exit $?"
echo d/b.txt | doppel fingerprint --files-from -
echo "exit $?"
: >empty
printf 'd/b.txt\000' >binary
for list in none empty binary; do
    doppel fingerprint --files-from $list
    echo "exit $?"
done
printf 'd/b.txt\nd/b.txt' | doppel compare --files-from - | head -n 1
printf 'd/b.txt\n' | doppel compare --files-from -
echo "exit $?"
echo '{"id":1,"page":"<p>words of a page"}' >page.jsonl
doppel fingerprint --html-key page page.jsonl
doppel fingerprint page.jsonl
warc() {
    printf 'WARC/1.1\r\nWARC-Type: conversion\r\nContent-Length: %s\r\n\r\n%s\r\n\r\n' ${#1} "$1"
}
{ warc "the first text of an archive"; warc "and the second text of it"; } >a.warc.wet
doppel fingerprint a.warc.wet
head -c 130 a.warc.wet | doppel fingerprint -
echo "exit $?"
