# SIGINT while documents come: what was acknowledged is printed and is there, exit code 5.
mkfifo pipe
{
    echo '{"id":"before","text":"a record that came before the interruption"}'
    sleep 10
} >pipe &
feeder=$!
# A shell starts background commands with SIGINT ignored; python3 gives it back.
python3 - >out 2>err <<'END' &
import os, signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp("doppel", ["doppel", "add", "--index", "seen", "pipe"])
END
command=$!
while [ ! -s out ]; do sleep 0.1; done
kill -INT $command
wait $command
echo "exit $?"
kill $feeder 2>/dev/null
cat out err
doppel get --index seen before | cut -c1-14
