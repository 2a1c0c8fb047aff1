# A folder with many files, in byte order of names.
mkdir folder
(cd folder && seq 1 2000 | split -l 1 -a 3 - x)
doppel fingerprint folder | cut -f2 >names
wc -l <names
sort names | cmp - names && echo sorted
