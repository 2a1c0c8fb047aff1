# The same as one JSON object.
doppel plan --count 1M --distance 3 --layout 4x16 --json | sed -E 's/"microseconds":[0-9.]+/"microseconds":TIME/g; s/"costs":.*\}/"costs":{...}}/'
doppel plan --for join --count 1M --distance 3 --layout scan --json | sed -E 's/"microseconds":[0-9.]+/"microseconds":TIME/g; s/"wider":.*\}/"wider":.../'
doppel plan --count 1M --distance 3 --memory 1M --json | grep -o '"fits":false' | head -1
