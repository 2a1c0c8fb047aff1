# HTML: the main content and all that is visible, in files and records; charsets.
cat >plain.txt <<'end'
Whales breathe air.
They have lungs and not gills, and come up to the surface now and then.
end
cat >page.html <<'end'
<!DOCTYPE html>
<html lang="en"><head><title>On whales</title><style>p { color: blue }</style></head>
<body>
<nav><ul><li><a href="/">Home</a><li><a href="/w">Whales</a><li><a href="/f">Fish</a></ul></nav>
<main>
<p>Whales <b>breathe</b> air.</p><script>document.write("no text");</script>
<p>They have lungs and not gills, and come up to the surf&#97;ce now and then.
</main>
<footer>All rights reserved, whales included.</footer>
</body></html>
end
printf '<meta charset=latin1><p>caf\351 au lait, na\357ve fa\347ade, cr\350me br\373l\351e' >latin1.html
printf '<p>caf\303\251 au lait, na\303\257ve fa\303\247ade, cr\303\250me br\303\273l\303\251e' >utf8.html
doppel fingerprint plain.txt page.html
doppel fingerprint --content all page.html
doppel fingerprint latin1.html utf8.html
printf '{"id":"record","html":"<p>Whales breathe air.<p>They have lungs and not gills, and come up to the surface now and then.<aside>Advertisement</aside>"}\n' |
    doppel fingerprint -
doppel compare plain.txt page.html | grep -E 'words|similarity|digest'
doppel compare --content all plain.txt page.html | grep -E 'words|similarity|digest'
doppel fingerprint --content some page.html
