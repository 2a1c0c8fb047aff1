# HEX<TAB>id for plain files, an empty file, a folder, stdin.
echo "The quick brown fox jumps over the lazy dog" >a.txt
echo "the QUICK, brown fox jumps -- over the lazy dog!" >b.txt
: >empty.txt
mkdir -p folder/sub
cp a.txt folder/z.txt
cp a.txt folder/sub/y.txt
cp a.txt folder/.hidden
ln -s z.txt folder/link
ln -s .. folder/loop
doppel fingerprint a.txt b.txt empty.txt
doppel fingerprint folder
doppel fingerprint - <a.txt
doppel fingerprint a.txt - <b.txt
