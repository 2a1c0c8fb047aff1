# Progress on a terminal: the step and how many there are, as the time left is that of the step.
for id in $(seq 1 3000); do
    echo "{\"id\":\"$id\",\"text\":\"some words of the document $id\"}"
done >a.jsonl
for command in "dedup - -o out.jsonl" "pairs - -o out.jsonl" "fingerprint -"; do
    script -qec "(cat a.jsonl; sleep 0.4; cat a.jsonl; sleep 0.4; cat a.jsonl) | doppel $command >/dev/null" /dev/null </dev/null |
        tr '\r' '\n' | grep -o 'reading[ (0-9a-z)]*: ' | sort -u
done
