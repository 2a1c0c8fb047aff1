# SIGINT while documents arrive: what was acknowledged is printed and is there, exit code 5.
. "$(dirname "$0")/interrupt.inc"
interrupt_once_printed add --index seen
doppel get --index seen before | cut -c1-14
