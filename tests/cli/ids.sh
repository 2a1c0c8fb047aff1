# Control characters and backslashes in ids and paths do not break lines.
printf '%s\n' '{"id":"tab\there","text":"x"}' '{"id":"line\nbreak\r","text":"x"}' '{"id":"back\\slash","text":"x"}' \
    '{"id":"esc\u001b[31m","text":"x"}' '{"id":"\u00e9\u0085","text":"x"}' '{"id":"","text":"x"}' >a.jsonl
doppel fingerprint a.jsonl
doppel fingerprint --json a.jsonl | cut -d, -f1
name=$(printf 'new\nline')
doppel fingerprint "$name"
echo text >"$name"
doppel fingerprint "$name"
