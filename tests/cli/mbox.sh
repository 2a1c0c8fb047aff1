# Mail folders: by name and by content; parts, encodings, subjects.
cat >a.mbox <<'EOF'
From someone@example.org Thu Jan  1 00:00:00 1970
Message-ID: <one@example.org>
Subject: =?utf-8?Q?caf=C3=A9?=

The quick brown fox jumps over the lazy dog

From here on the text goes on.

From someone@example.org Thu Jan  1 00:00:00 1970
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

The quick brown fox jumps over =
the lazy dog

>From here on the text goes on.
--b
Content-Type: text/plain
Content-Disposition: attachment

not this
--b--
EOF
doppel fingerprint a.mbox
cp a.mbox inbox
doppel fingerprint inbox
doppel fingerprint - <a.mbox
