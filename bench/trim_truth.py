"""What was cut, compared with the truth of bench/trim_data.py.

    cuts = trim_truth.of_doppel(spans_file)         {id: [(start, end), ...]}, joined, of a file of doppel trim --spans
    cuts = trim_truth.of_peer(spans_file)           the same of a file with id, start and end, separated by tabs
    trim_truth.score(truth_file, cuts)              shares: of the repeats that were cut, of these those that are word for
                                                    word the same, and of the cut bytes those that repeat something

A repeat counts as cut if nine tenths of its bytes are. Of a group that occurs n times, n - 1 are to be cut.
"""
import bisect
import collections
import json

ENOUGH = 0.9
AFTER = 2  # bytes: what is cut takes the line end or the spaces after it along


def join(ranges):
    joined = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1][1] = max(end, joined[-1][1])
        else:
            joined.append([start, end])
    return joined


def join_all(rows):
    cuts = collections.defaultdict(list)
    for name, start, end in rows:
        cuts[name].append((start, end))
    return {name: join(ranges) for name, ranges in cuts.items()}


def of_doppel(path):
    with open(path, encoding="utf-8") as file:
        return join_all((row["id"], row["start"], row["end"]) for row in map(json.loads, file))


def of_peer(path):
    with open(path, encoding="utf-8") as file:
        rows = (line.rstrip("\n").split("\t") for line in file)
        return join_all((name, int(start), int(end)) for name, start, end in rows)


def covered(ranges, start, end):
    """How much of start to end the ranges have, which are joined and in order."""
    at, found = bisect.bisect_left(ranges, [start, start]), 0
    for low, high in ranges[max(0, at - 1):]:
        if low >= end:
            break
        found += max(0, min(high, end) - max(low, start))
    return found


def score(truth, cuts):
    """(recall, recall of what is the same word for word, precision), in percent."""
    groups, places = collections.defaultdict(list), []
    with open(truth, encoding="utf-8") as file:
        for group, name, start, end, disguised in map(json.loads, file):
            cut = covered(cuts.get(name, []), start, end) >= ENOUGH * (end - start)
            groups[group].append((cut, disguised))
            places.append((name, start, end + AFTER))
    found, wanted = collections.Counter(), collections.Counter()
    for rows in groups.values():
        kind = "disguised" if any(disguised for _, disguised in rows) else "same"
        wanted[kind] += len(rows) - 1
        found[kind] += min(len(rows) - 1, sum(cut for cut, _ in rows))
    repeated = join_all(places)
    inside = sum(covered(repeated.get(name, []), *cut) for name, ranges in cuts.items() for cut in ranges)
    whole = sum(end - start for ranges in cuts.values() for start, end in ranges)
    return (100 * sum(found.values()) / max(1, sum(wanted.values())), 100 * found["same"] / max(1, wanted["same"]),
            100 * inside / max(1, whole))
