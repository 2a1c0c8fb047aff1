# On a terminal, and with --print text, verdicts are sentences that say what they rest on.
line() {
    printf '{"id":"%s","url":"%s","title":"%s","text":"%s"}\n' "$1" "$2" "$3" "$4"
}
words=$(seq -s ' ' 100 160)
line a https://a.example/1 "The council votes for the bridge" "$words" >seen.jsonl
doppel add --index seen --print text seen.jsonl
doppel add --index seen --print text seen.jsonl
{
    line url https://a.example/1 "" "other words, and more of them too"
    line same "" "" "$(echo "$words" | tr ' ' ',' | sed 's/,/, /g')"
    line near "" "" "$(echo "$words" | sed 's/160/x/')"
    line title "" "The council votes for the bridge." "some text that is nothing like it"
    line new "" "" "nothing that was ever said before"
    line less "" "" "$(seq -s ' ' 100 150) $(seq -s ' ' 900 905)"
    printf '{"id":"bell\\u0007\\n line","text":"and another one that is new"}\n'
} >asked.jsonl
doppel check --index seen --title-veto off --print text asked.jsonl
doppel check --index seen --print text asked.jsonl
echo "exit $?"
script -qec "doppel check --index seen asked.jsonl" /dev/null </dev/null | tr -d '\r' | tail -n 3
script -qec "doppel check --index seen --print jsonl asked.jsonl" /dev/null </dev/null | tr -d '\r' | head -c 12
echo
doppel add --index near --near distance --print text seen.jsonl asked.jsonl | grep near
doppel check --index seen --print xml asked.jsonl
echo "exit $?"
doppel check --index seen --print text - <seen.jsonl
doppel check --index seen --similarity 0.7 asked.jsonl
doppel check --index seen --titles off asked.jsonl
echo "== the nearest is for sentences, and for similarities"
doppel check --index seen --print jsonl asked.jsonl | grep '"less"'
doppel add --index bits --near distance seen.jsonl >/dev/null
doppel check --index bits --print text asked.jsonl | grep less
echo "== after an add, how many there are by which evidence"
doppel add --index titles --title-veto off --print text seen.jsonl asked.jsonl 2>&1 | tail -n 1
doppel add --index titles --print text --quiet seen.jsonl asked.jsonl 2>&1 | tail -n 1
