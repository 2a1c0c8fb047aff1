# A folder with many files, in byte order of names.
mkdir folder
(cd folder && seq 1 5000 | split -l 1 -a 4 - x)
doppel fingerprint folder | cut -f2 >names
wc -l <names
sort names | cmp - names && echo sorted
