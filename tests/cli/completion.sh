# Completion in bash: commands, options, and the words that options take; each of these words is accepted.
doppel --generate bash >completion.bash
cat >complete.bash <<'END'
. ./completion.bash
complete_line() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _doppel
    echo "${COMPREPLY[*]}"
}
for option in method by keep link within content recipe url-keep; do
    echo "$option: $(complete_line doppel dedup --$option "")"
done
complete_line doppel dedup --method mi
complete_line doppel dedup --method =
complete_line doppel dedup --method = mi
complete_line doppel dedup --keep = https,sh
complete_line doppel help ov
complete_line doppel dedup -m ""
complete_line doppel dedup --keep https,sh
complete_line doppel overlap --print ""
complete_line doppel dedup --format ""
complete_line doppel add --preset ""
complete_line doppel trim --unit ""
complete_line doppel plan --for ""
complete_line doppel join --from ""
complete_line doppel serve --sandbox ""
complete_line doppel dedup --simil
complete_line doppel ded
echo "{\"id\":\"a\",\"text\":\"some words\",\"url\":\"https://a.example/\",\"x\":1}" >a.jsonl
# Whatever the table offers, the check takes.
for option in method by keep link within across content recipe url-keep; do
    for value in $(complete_line doppel dedup --$option ""); do
        case $value in *:) value=${value}x ;; esac
        doppel dedup --$option "$value" a.jsonl -o out.jsonl 2>error || { echo "--$option $value"; cat error; }
    done
done
for value in $(complete_line doppel trim --keep ""); do
    case $value in *:) value=${value}x ;; esac
    doppel trim --keep "$value" a.jsonl -o out.jsonl 2>error || { echo "--keep $value"; cat error; }
done
for option in preset near titles content recipe url-keep durability on-duplicate on-same-url log-level log-format; do
    for value in $(complete_line doppel add --$option ""); do
        rm -rf index
        doppel add --index index --log log --$option "$value" a.jsonl >/dev/null 2>error || { echo "--$option $value"; cat error; }
    done
done
END
bash complete.bash
echo "== zsh"
doppel --generate zsh | sed -n "/^    dedup)/,/^    [a-c,e-z]*)/p" | grep -o -e "'--method.*" -e ":RULES:.*"
