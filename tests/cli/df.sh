# Document-frequency tables: made, shown, merged, used.
printf '{"text":"the cat sat"}\n{"text":"the dog sat down"}\n' >a.jsonl
printf '{"text":"the bird flew away"}\nnot json\n' >b.jsonl
recipe=simhash64:words=1:hash=fast:weight=tf
doppel df --recipe $recipe a.jsonl -o a.df
doppel df --recipe $recipe --json b.jsonl --output=b.df
echo "exit $?"
doppel df --show a.df
doppel df --show --json b.df
doppel df --merge a.df b.df -o c.df
doppel df --recipe $recipe a.jsonl b.jsonl -o d.df
cmp c.df d.df && echo "merged is the same as counted at once"
doppel df --recipe simhash64:words=1:weight=tfidf a.jsonl -o same.df
cmp a.df same.df && echo "the weight does not matter"
rm same.df
doppel df --recipe $recipe --min-df 2 a.jsonl b.jsonl -o e.df --json
doppel fingerprint --recipe simhash64:words=1:weight=tfidf --df c.df a.jsonl
doppel fingerprint --recipe simhash64:words=2:weight=tfidf --df c.df a.jsonl
echo "exit $?"
doppel df --recipe simhash64:words=2 a.jsonl -o f.df
doppel df --merge a.df f.df -o g.df
echo "exit $?"
doppel df --merge --min-df 2 a.df b.df -o g.df
echo "exit $?"
doppel df --merge a.df missing.df -o g.df
echo "exit $?"
head -c 60 a.df >cut.df
doppel df --show cut.df
echo "exit $?"
doppel df a.jsonl -o nowhere/a.df
echo "exit $?"
doppel df a.jsonl missing.jsonl -o h.df
echo "exit $?"
ls
