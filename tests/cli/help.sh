# Help of the command and of each of its commands.
doppel --help
for command in fingerprint compare df dedup trim pairs cluster overlap mirrors report join plan add check similar get remove stats export import \
    backup compact verify prepare; do
    echo "== $command"
    doppel $command --help
done
doppel --help df | cmp - /dev/stdin <<END && echo same
$(doppel df -h)
END
doppel --version | sed 's/level [a-z0-9]*/level X/; s/[0-9][0-9]*\.[0-9][0-9]*\.[0-9][0-9]*/N/g'
