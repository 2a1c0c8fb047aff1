# Options that other tools have, and misspelt ones, get a suggestion.
for option in --threshold --text-field --text_column --num-perm --ngram-size --num_proc --output-file --cache-dir \
    --similarty --kep --dry_run --nothing-like-it; do
    doppel dedup $option 1 a.jsonl -o b.jsonl
done
doppel overlap --threshold=0.3 a
doppel similar --top-k 3 a
doppel serve --port 80
doppel serve --index seen --sandbox of
echo "== commands" >&2
for command in dedupe deduplicate fingerprnt Dedup decontaminate decontminate dedupicate delete rm del ls search nothing-like-it; do
    doppel $command a.jsonl
done
echo "== what is no command, and too far from any" >&2
for command in why explain group members undo restore uniq init index ui web plagiarism mark list clean merge claen tirm; do
    doppel $command a.jsonl
done
for option in --columns --text-col --tmpdir --explain --csv --sim --tresh --mark --mrak; do
    doppel dedup $option 1 a.jsonl -o b.jsonl
done
for option in --min-similarity --in-place --overwrite --upsample -j; do
    doppel dedup $option 1 a.jsonl -o b.jsonl
done
doppel overlap --min-similarity 0.5 a
doppel trim a.jsonl -o b.jsonl --removed c.jsonl
doppel report work
doppel dedup a.jsonl --only-contained -o b.jsonl
doppel dedup a.jsonl -o b.jsonl --similarity --keep longest
for command in minhash lookup query copies console upsample; do
    doppel $command a.jsonl
done
doppel dedup --keep 2 a.jsonl -o b.jsonl
for version in version -v -V; do
    doppel $version | cmp - /dev/stdin <<END && echo same
$(doppel --version)
END
done
doppel 2>&1 | awk 'END { print (NR <= 25 ? "a screen" : NR " lines") }'
echo "== files, columns and ids: ignoring case" >&2
mkdir files
echo '{"id":"Article-17","text":"one two three"}' >files/news.jsonl
printf 'nr,Body Text\n1,one two three\n' >files/table.csv
for file in files/News.jsonl files/nwes.jsonl files/news.json files/table.csv.gz files/a.jsonl files/ none/news.jsonl; do
    doppel dedup $file -o b.jsonl
done
doppel dedup files/table.csv --text-key 'BODY TEXT' -o b.jsonl
doppel compare --in files/news.jsonl ARTICLE-17 article-18
doppel dedup files/table.csv --text-key nr --text-key 'Body Text' -o b.jsonl
doppel stream --brokers a --in x --unique y --verdict-key a --verdict-key b
