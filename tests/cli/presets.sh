# Presets of published pipelines: each means its published settings, and other options override it.
for id in 1 2 3; do
    echo "{\"id\":\"$id\",\"text\":\"$(seq -s ' ' 100 160) end $id\"}"
done >a.jsonl
for preset in fineweb slimpajama nemo-curator duplodocus; do
    doppel pairs --preset $preset --verbose a.jsonl -o pairs.jsonl --json | grep -o '"method".*"rows":[0-9]*'
done
echo "== the same"
doppel pairs --preset slimpajama a.jsonl | tee one
doppel pairs --method minhash --bands 9 --rows 13 --similarity 0.8 --recipe simhash64:words=13 a.jsonl | cmp - one && echo same
echo "== overridden"
doppel pairs --preset slimpajama --similarity 0.95 --recipe article a.jsonl -o pairs.jsonl --json | grep -o '"method".*"rows":[0-9]*'
doppel pairs --preset slimpajama --bands 20 --rows 5 a.jsonl -o pairs.jsonl --json | grep -o '"method".*"rows":[0-9]*'
echo "== usage"
for options in "--preset general" "--preset fineweb --distance 3" "--preset fineweb --method auto"; do
    doppel pairs $options a.jsonl
    echo "exit $?"
done
