# dedup --output-dir: what a killed run left is removed by the next one; other files are not.
mkdir in
i=0
while [ $i -lt 800 ]; do
    printf '{"id":%d,"text":"one two three four five six seven %d"}\n' $i $i >in/$i.jsonl
    i=$((i + 1))
done
left() {
    find out -mindepth 1 -maxdepth 1 -name '.doppel-*' | wc -l
}
echo "== killed while it writes"
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf out
    doppel dedup -q in --output-dir out &
    while kill -0 $! 2>/dev/null && ! ls out/.doppel-*/lock >/dev/null 2>&1; do :; done
    kill -9 $! 2>/dev/null
    wait $! 2>/dev/null
    [ "$(left)" -eq 0 ] || break
done
left
ls out | wc -l
rm in/1*.jsonl
doppel dedup -q in --output-dir out
echo "exit $?, $(left) left, $(ls out | wc -l) of $(ls in | wc -l) files"
echo "== what is somebody's, or no run's, stays"
mkdir -p out/.doppel-dead00/outputs/sub out/.doppel-alive0/outputs out/.doppel-notes out/.doppel-mine00/notes \
    out/.doppel-pipe00/outputs elsewhere/outputs
mkfifo out/.doppel-pipe00/lock
touch out/.doppel-dead00/lock out/.doppel-dead00/outputs/sub/a.jsonl out/.doppel-alive0/lock out/.doppel-notes/a \
    out/.doppel-mine00/lock elsewhere/lock elsewhere/outputs/a
ln -s ../elsewhere out/.doppel-linked
flock out/.doppel-alive0/lock doppel dedup -q in/0.jsonl --output-dir out
echo "exit $?"
find out/.doppel-* elsewhere | LC_ALL=C sort
