# What an output is, and what an input is not: JSONL called .json, arrays, spreadsheets.
printf '[{"id":1,"text":"some words in an array"}]\n' >c.json
exec 2>&1
doppel dedup c.json -o out.json
cat out.json
doppel dedup -q c.json -o out.json.gz
doppel trim c.json -o out.json.zst
doppel dedup c.json --dry-run -o out.json
doppel dedup c.json -o out.csv
printf '{"id":1,"text":"some words"}\n' >a.jsonl
doppel dedup a.jsonl -o out.csv
echo "== spreadsheets"
python3 - <<'END'
import zipfile
with zipfile.ZipFile("t.xlsx", "w") as z:
    z.writestr("[Content_Types].xml", "<Types/>")
    z.writestr("xl/workbook.xml", "<workbook/>")
with zipfile.ZipFile("t.ods", "w") as z:
    z.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
with zipfile.ZipFile("other.zip", "w") as z:
    z.writestr("a.txt", "words")
open("t.xls", "wb").write(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "Workbook".encode("utf-16-le") + bytes(600))
END
tar --format=ustar -cf other.tar a.jsonl
for file in t.xlsx t.ods t.xls other.zip other.tar; do
    doppel dedup --text-key body "$file" -o out.jsonl
    doppel dedup "$file" -o out.csv
    echo "exit $?"
done
