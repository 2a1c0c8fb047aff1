# Word documents and PDF: read like plain files, by name or content; what cannot be read is named, with what to do.
words=$(seq -s ' ' 100 140)
python3 - "$words" <<'END'
import sys, zipfile
with zipfile.ZipFile("essay.docx", "w", zipfile.ZIP_DEFLATED) as file:
    file.writestr("[Content_Types].xml", "<Types/>")
    file.writestr("word/document.xml", f"<w:p><w:r><w:t>{sys.argv[1]} caf&#xE9;</w:t></w:r></w:p>")
    file.writestr("word/footnotes.xml", "<w:p><w:r><w:t>A note.</w:t></w:r></w:p>")
with zipfile.ZipFile("other.docx", "w") as file:
    file.writestr("content.xml", "<p>text</p>")
END
page() {
    printf '%%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n'
    printf '3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 900 200]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>endobj\n'
    printf '4 0 obj<</Length %d>>stream\n%s\nendstream endobj\n' "${#1}" "$1"
    printf '5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Courier>>endobj\ntrailer<</Root 1 0 R>>\n'
}
page "BT /F 8 Tf 20 100 Td ($words) Tj ET" >essay.pdf
page "0 0 10 10 re f" >picture.pdf
cp essay.pdf no-ending
gzip -k essay.pdf
echo "$words" >essay.txt
doppel dedup essay.docx -o - 2>/dev/null
doppel dedup essay.pdf -o - 2>/dev/null
doppel fingerprint essay.txt essay.pdf no-ending essay.pdf.gz
doppel overlap --print text essay.docx essay.pdf | head -n 4
echo "== what cannot be read"
echo text >text.docx
printf '\320\317\021\340old' >old.docx
head -c 200 essay.docx >cut.docx
echo '%PDF-1.4 and no more' >bad.pdf
doppel fingerprint text.docx old.docx cut.docx other.docx bad.pdf picture.pdf essay.txt
echo "exit $?"
doppel fingerprint --max-record 200 essay.docx essay.txt
echo "== pdftotext"
mkdir bin
command=$(command -v doppel)
(PATH=/nowhere && export PATH && exec "$command" fingerprint essay.pdf essay.txt) || echo "exit $?"
program() {
    printf '#!/bin/sh\n%s\n' "$1" >bin/pdftotext
    chmod +x bin/pdftotext
}
program 'echo "called with $*: $(head -c 8)"'
PATH="$PWD/bin:$PATH" doppel dedup "essay.pdf" -o - 2>/dev/null
program 'exec yes a long text'
PATH="$PWD/bin:$PATH" doppel fingerprint --max-record 1M essay.pdf essay.txt
echo "exit $?"
# shellcheck disable=SC2016 # the program's own
program 'echo $$ >running; exec sleep 50'
PATH="$PWD/bin:$PATH" doppel fingerprint essay.pdf &
while [ ! -s running ]; do
    sleep 0.1
done
kill -TERM $!
wait $!
echo "exit $?"
kill -0 "$(cat running)" 2>/dev/null || echo ended
