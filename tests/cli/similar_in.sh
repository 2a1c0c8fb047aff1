# similar --in: the copies of a page, or of a record, in files; no index.
text=$(seq -s ' ' 1 200)
line() {
    printf '{"nr":"%s","url":"http://example.org/%s","title":"Title %s","body":"%s"}\n' "$1" "$1" "$1" "$2"
}
{
    line a "$text"
    line b "$(seq -s ' ' 1 150) $(seq -s ' ' 400 450)"
    line c "$(seq -s ' ' 1 100) $(seq -s ' ' 500 600)"
    line d "$(seq -s ' ' 700 900)"
    line a2 "$text"
    line short "few words"
} >a.jsonl
ask() {
    doppel similar --in a.jsonl --id-key nr --text-key body "$@"
}
echo "<html><body><p>$text 201</p></body></html>" >page.html
echo "== a page, text from stdin, ids"
ask page.html
echo "$text" | ask --similarity 0.5 --limit 2 -
ask --similarity 0.1 b
ask --similarity 0.1 b --threads 3 --limit 1 --print text
ask --distance 64 --limit 2 --print text a
echo 'Few  WORDS' >few.txt
ask few.txt
echo "== the corpus from stdin, two files, a folder, CSV"
ask page.html --limit 1 | cmp - - <<END
$(doppel similar --in - --id-key nr --text-key body page.html --limit 1 <a.jsonl)
END
head -n 1 a.jsonl >first.jsonl
tail -n 2 a.jsonl >last.jsonl
doppel similar --in first.jsonl --in last.jsonl --id-key nr --text-key body a
mkdir texts
echo "$text" >texts/one.txt
cp texts/one.txt texts/two.txt
doppel similar --in texts texts/one.txt --print text
printf 'nr;body\n1;%s\n' "$text" >t.csv
doppel similar --in t.csv --format csv --id-key nr --text-key body page.html --print text
{
    echo "== by default what dedup takes for a copy, of at least 0.8"
    line e "$(seq -s ' ' 1 182) $(seq -s ' ' 300 317)" | cat a.jsonl - >e.jsonl
    doppel similar --in e.jsonl --id-key nr --text-key body --print text a
    doppel similar --in e.jsonl --id-key nr --text-key body --print text --similarity 0.85 a
    echo "== nothing"
    ask d
    ask c
    ask --distance 1 c
    : >none.jsonl
    doppel similar --in none.jsonl page.html
    echo "== what cannot be"
    ask nobody
    echo "exit $?"
    ask a.jsonl
    echo "exit $?"
    doppel similar --in nowhere.jsonl a
    echo "exit $?"
    cat a.jsonl a.jsonl >twice.jsonl
    doppel similar --in twice.jsonl --id-key nr --text-key body a
    echo "exit $?"
    doppel similar --in a.jsonl a
    echo "exit $?"
    doppel similar --in a.jsonl --index seen a
    echo "exit $?"
    doppel similar --in - a <a.jsonl
    echo "exit $?"
} 2>&1
echo "== by URL, unless it is an id; the other one with this URL is an answer then"
head -n 2 a.jsonl >urls.jsonl
printf '{"nr":"http://example.org/b","url":"https://www.example.org/a/","body":"%s"}\n' "$text 201" >>urls.jsonl
ask_urls() {
    doppel similar --in urls.jsonl --id-key nr --text-key body --print text --similarity 0.5 "$@"
    echo "exit $?"
}
ask_urls http://example.org/b
ask_urls 'https://www.example.org/b?utm_source=x'
ask_urls https://example.org/a
ask_urls https://example.org/none
ask_urls example.org/a
