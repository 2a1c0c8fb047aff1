# On a terminal the shared passages are in colour; NO_COLOR turns that off.
echo "The quick brown fox jumps over the lazy dog, and sleeps." >a.txt
echo "Yesterday the quick brown fox jumps over the lazy cat; it sleeps." >b.txt
export TERM=xterm
show() {
    script -qec "stty cols 80; doppel compare a.txt b.txt" /dev/null </dev/null | tr -d '\r' | sed -n '/shared passage/,$p' | sed 's/\x1b/ESC/g'
}
show
NO_COLOR=1
export NO_COLOR
show
