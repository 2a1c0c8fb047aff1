# trim: sentences, paragraphs and passages, alone and in runs, in several scripts.
line() {
    printf '{"id":"%s","text":"%s"}\n' "$1" "$2"
}
trim() {
    echo "== $*"
    doppel trim "$@" -o out.jsonl --spans spans.jsonl 2>&1
    cat out.jsonl spans.jsonl
}
{
    line 1 'One day the cat sat. It was a very sunny day! \"Did anybody see the cat today?\" Nobody did.'
    line 2 'It was a very sunny day... \"did anybody see the cat today?\" Yes, the dog did.'
    line 3 '今日は良い天気ですね。明日も良い天気でしょう。'
    line 4 '明日も良い天気でしょう。さようなら。'
    line 5 'It was a very sunny day.More'
    line 6 'This one begins in one line\nIt was a very sunny day.\nMore'
} >sentences.jsonl
trim sentences.jsonl --unit sentence
{
    line 1 'It rained all day long. Yes! Then it snowed all night. The end.'
    line 2 'Well. It rained, all day long. Yes. Then it snowed all night. So it went.'
    line 3 'It rained all day long. No. Then it snowed all night.'
} >runs.jsonl
trim runs.jsonl -u sentence --run 3
trim runs.jsonl -u sentence --run 4
{
    line 1 'Intro of the first text, which is short.\n\nThis text is free; you may copy\nit to anybody you like.\n \nThe end.'
    line 2 '\n\nThis text is FREE; you may\ncopy it to anybody, you like.\n\n\nSomething else that ends the second text.'
    line 3 'This text is free; you may copy\nit to anybody you like.\nIt goes on.'
} >paragraphs.jsonl
trim paragraphs.jsonl --unit paragraph
{
    line 1 'zero the quick brown fox jumps over the lazy dog today'
    line 2 'And then: the QUICK, brown\n(fox) jumps... over the lazy cat.'
    line 3 'fox jumps over the lazy dog today, the quick brown fox jumps over'
} >passages.jsonl
trim passages.jsonl --unit passage --words 6
trim passages.jsonl --unit passage --words 9
trim passages.jsonl --unit passage
line ha 'ha ha ha ha ha ha ha ha' >self.jsonl
trim self.jsonl --unit passage --words 3
trim self.jsonl --unit passage --words 3 --keep-first off
trim self.jsonl --unit passage --words 3 --min-count 3
trim self.jsonl --unit passage --words 3 --across document
{
    line 1 '(one, two) three'
    line 2 'One... TWO; four'
    line 3 'e\u0301te\u0301 one two'
} >marks.jsonl
trim marks.jsonl --unit passage --words 2
echo "== the recipe says what words are"
{
    line 1 'Which words these are depends'
    line 2 'which words these are depends!'
    line 3 'which of the words these are depends'
} >words.jsonl
echo 'of the' >stop
trim words.jsonl
trim words.jsonl --recipe simhash64:case=keep
trim words.jsonl --recipe simhash64:punct=keep
trim words.jsonl --stop-words stop
