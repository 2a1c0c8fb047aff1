# Options that other tools have, and misspelt ones, get a suggestion.
for option in --threshold --text-field --text_column --num-perm --ngram-size --num_proc --output-file --cache-dir \
    --similarty --kep --dry_run --nothing-like-it; do
    doppel dedup $option 1 a.jsonl -o b.jsonl
done
doppel overlap --threshold=0.3 a
doppel similar --top-k 3 a
doppel serve --port 80
