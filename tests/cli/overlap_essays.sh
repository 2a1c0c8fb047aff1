# Overlap for people: essays of which two share 184 words, 28 % of the words of each, are found without options; ranked lines on a
# terminal, JSON lines in a pipe, and a page.
mkdir essays
shared="$(seq -s ' ' 5000 5183)"
{ seq -s ' ' 1000 1199; echo "$shared"; seq -s ' ' 1200 1469; } >essays/essay-1.txt
{ seq -s ' ' 2000 2149; echo "$shared"; seq -s ' ' 2150 2479; } >essays/essay-2.txt
seq -s ' ' 3000 3600 >essays/essay-3.txt
{ seq -s ' ' 5000 5010; seq -s ' ' 4000 4500; } >essays/essay-4.txt # 11 words of it: too little
{ seq -s ' ' 3000 3300 | sed 's/3..5 /CHANGED /g'; } >'essays/<b>essay-5.txt'
echo "== piped"
doppel overlap essays | sed 's/"passages":.*/.../'
echo "== on a terminal"
script -qec "stty cols 80; doppel overlap essays" /dev/null </dev/null | tr -d '\r'
echo "== narrow"
script -qec "stty cols 50; doppel overlap essays --top 1" /dev/null </dev/null | tr -d '\r'
echo "== asked for"
doppel overlap essays --print text --words 200
doppel overlap essays --print text --words 100 -o ranking.txt && cat ranking.txt
echo "== a page"
doppel overlap essays --html page.html | wc -l
grep -o '<h3>.*</h3>' page.html | sed 's/<.h3>.*//'
grep -c '<b>essay' page.html
# Shaded: the passages of the changed copy and one of 184 words in three parts, on both sides, and the example in the head.
grep -o '<mark>' page.html | wc -l
grep -o '<p class="lead">.*' page.html | sed 's/<[^>]*>//g'
grep -o '<span class="soft">.*</span></summary>' page.html | sed 's/<[^>]*>//g'
# The words of the long passage are all there, on both sides, the middle ones folded.
for n in 5000 5049 5050 5133 5134 5183; do
    echo "$n: $(tr ' <>' '\n' <page.html | grep -cx $n)"
done
grep -o '<details class="cut"><summary>[^<]*</summary> <mark>50..' page.html
grep -o '<h4>[^<]*' page.html | sort | uniq -c
doppel overlap essays --html - | head -c 15
echo
doppel overlap essays --html page2.html --top 1 >/dev/null && grep -o 'This page has the[^<]*' page2.html
echo "== the longest passage first, fragments folded"
mkdir order
{ seq -s ' ' 1 6; seq -s ' ' 100 130; seq -s ' ' 1001 1012; seq -s ' ' 200 230; seq -s ' ' 2001 2156; seq -s ' ' 300 330; seq -s ' ' 11 17; } >order/a.txt
{ seq -s ' ' 1 6; seq -s ' ' 400 430; seq -s ' ' 1001 1012; seq -s ' ' 500 530; seq -s ' ' 2001 2156; seq -s ' ' 600 630; seq -s ' ' 11 17; } >order/b.txt
doppel overlap order --html order.html >/dev/null
grep -o '<h4>[^<]*\|<details class="more"><summary>[^<]*' order.html
doppel compare order/a.txt order/b.txt --html order.html | grep 'shared passages'
grep -o '[0-9]* % of [^<]*' order.html
doppel overlap --print text order | grep %
echo "== usage"
doppel overlap essays --top 5
echo "exit $?"
doppel overlap essays --print table
echo "exit $?"
doppel overlap essays --html essays/page.html
echo "exit $?"
doppel overlap missing --html none.html
echo "exit $?"
ls none.html 2>/dev/null
echo "== the page begins with a table; names are without the folder that all are in"
mkdir -p class/one
seq -s ' ' 1 60 >class/one/essay-1.txt
echo "before $(seq -s ' ' 1 60) after" >class/one/essay-2.txt
doppel overlap class --html table.html >/dev/null
grep -o 'All documents are in <bdi>[^<]*' table.html
sed -n 's/.*<p class="soft">\(.*\)<p class="lead">.*/\1/p' table.html | sed 's/[0-9]*-[0-9]*-[0-9]*/DAY/; s/<[^>]*>//g'
doppel overlap class/one/essay-1.txt --against class/one/essay-2.txt --html against.html >/dev/null
grep -o 'compared with <bdi>[^<]*' against.html
echo "== a page has at most 8 MB of folded text"
seq -s ' ' 1000000 1700000 >class/long.txt
(cat class/long.txt; echo more) >class/longer.txt
doppel compare class/long.txt class/longer.txt --html long.html | head -1
grep -o '<details class="cut"><summary>[^<]*' long.html
grep -o '<span class="skip">\[[^<]*' long.html
grep -o '<p class="card">This page is full[^<]*' long.html
wc -c <long.html | sed 's/.....$/...../'
echo "== nothing shared"
doppel overlap class/one/essay-1.txt essays/essay-1.txt --html none.html
grep -o '<p class="lead">.*' none.html | sed 's/<[^>]*>//g'
doppel compare class/one/essay-1.txt essays/essay-1.txt --html none.html >/dev/null
grep -o '<p class="lead">.*' none.html | sed 's/<[^>]*>//g'
grep -o '<tr><td><bdi>.*</tr>' table.html
echo "== a page about one document"
echo "one document and no more" >alone.txt
doppel overlap alone.txt --html alone.html
grep -o "There are fewer[^<]*" alone.html
