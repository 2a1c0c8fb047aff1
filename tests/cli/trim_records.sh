# trim: records are unchanged except for the cuts; documents of other formats; stdin; compressed output; --annotate.
cat >a.jsonl <<'END'
{"id":"1","text":"Caf\u00e9 au lait is served here\nThis \"little\" place \/ bar is open\u000aA\\B \ud83d\ude00"}
  { "more" : [1,{"a":"\u00e9\/\ud83d\ude00"}], "text" : "Own line \u00e9\/\n\u0043af\u00e9 au lait is served here\r\n\ud83d\ude00 end\t\u0000\u2028" ,"e":1.50e+3, "id":2 }  
{"text":"twice","id":"3","text":"\u00e9This little \u0022place\u0022 bar is open\u2028This little place bar is open!\u2029\u00e9"}
{"id":"4","text":"CAFÉ AU LAIT IS SERVED HERE\nÉ"}
{"id":"5","text":"Cafe\u0301 au lait is served here","title":"Café au lait is served here"}
{"id":"6","html":"<title>Page<\/title><p>Own words of this page are here<\/p><p>Caf&eacute; au lait <b>is served<\/b> here<\/p>"}
{"id":"7","html":"<p>A page that has nothing to cut</p>","text":null}
{"id":"8","html":"<p>Caf&eacute; au lait is served here</p>","text":"A text beside its page is what counts"}
END
doppel trim a.jsonl -o out.jsonl --spans spans.jsonl
cat out.jsonl spans.jsonl
echo "== each is JSON, and equal but for its text"
python3 - <<'END'
import json
for before, after in zip(open("a.jsonl"), open("out.jsonl")):
    before, after = json.loads(before), json.loads(after)
    before.pop("text", None), print(json.dumps(after.pop("text")))
    assert before == after, (before, after)
END
echo "== --annotate"
doppel trim a.jsonl -o annotated.jsonl --annotate --drop --spans again.jsonl
cmp spans.jsonl again.jsonl
cat annotated.jsonl
printf '%s\n' '{"spans":"mine","id":"1","text":"one two three four five\none two three four five"}' >mine.jsonl
doppel trim mine.jsonl -o - --annotate
echo "== other names"
sed 's/"text"/"body"/g; s/"id"/"key"/; s/"html"/"page"/' a.jsonl >named.jsonl
doppel trim named.jsonl --text-key body --id-key key --html-key page -o named.out --spans named.spans
sed 's/"text"/"body"/g; s/"id"/"key"/; s/"html"/"page"/' out.jsonl | cmp - named.out
cmp spans.jsonl named.spans
echo "== stdin, packed output"
doppel trim - <a.jsonl -o - 2>/dev/null | cmp - out.jsonl && echo same
cat a.jsonl | doppel trim - -o - 2>/dev/null | cmp - out.jsonl && echo same
gzip -c a.jsonl >a.jsonl.gz
doppel trim a.jsonl.gz -o out.jsonl.gz --spans spans.jsonl.zst 2>/dev/null
gzip -dc out.jsonl.gz | cmp - out.jsonl && zstd -dcq spans.jsonl.zst | cmp - spans.jsonl && echo same
doppel trim a.jsonl -o out.jsonl.zst 2>/dev/null
zstd -dcq out.jsonl.zst | cmp - out.jsonl && echo same
echo "== CSV, plain files, HTML"
printf 'id,title,text,extra\n1,T,"one two three four five\nsix ""seven""",x\n2,,"own\none two three four five",y\n' >a.csv
mkdir folder
printf 'One two three, four five.\nSomething else' >folder/plain.txt
printf '<title>T</title><p>One two three four five<p>Two three four five six' >folder/page.html
printf 'two three four five six\nbad \377 byte' >folder/twice.txt
doppel trim a.csv folder -o -
echo "== paragraphs of a page are its blocks"
printf 'Two three\nfour five six!\n\nThe rest' >folder/zzz.txt
doppel trim folder --unit paragraph -o -
echo "== lines stay lines, except under the name of another format"
printf 'The council voted for the bridge. It rained all day long today.\r\n\nIT RAINED all day long today!\n' >lines.txt
printf 'We all know that it rained all day long today. A last line' >>lines.txt
doppel trim -q --format lines --unit sentence lines.txt -o short.txt
cat -A short.txt
doppel trim -q --format lines --unit sentence --drop-below 1 lines.txt -o - | wc -l
doppel trim -q --format lines --unit sentence lines.txt -o lines.jsonl
tail -1 lines.jsonl
doppel trim -q --format lines --unit sentence --annotate lines.txt -o - | tail -1
