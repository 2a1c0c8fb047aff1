"""Every pair of documents of a JSONL file of ASCII text whose exact Jaccard similarity is at least T, all compared.

    dedup_truth.py INPUT T

Prints the two ids, separated by a tab, and before them the number of documents. Shingles are those of the recipe `page`,
made here: lower case, no punctuation, 5 words. A product of sparse matrices counts what each pair shares; pairs that
share nothing never occur, so nothing is sampled or guessed.
"""
import json
import sys

from peers_dedup import shingles


def read(path):
    """The ids, and the distinct shingles of each as an array of hashes."""
    import numpy
    names, sets = [], []
    with open(path, encoding="ascii") as file:
        for line in file:
            record = json.loads(line)
            names.append(record["id"])
            found = {hash(shingle) for shingle in shingles(record["text"])}
            sets.append(numpy.fromiter(found, "int64", len(found)))
    return names, sets


def pairs(sets, least):
    import numpy
    from scipy.sparse import csr_matrix, triu
    sizes = numpy.array([len(one) for one in sets])
    _, columns, counts = numpy.unique(numpy.concatenate(sets), return_inverse=True, return_counts=True)
    rows = numpy.repeat(numpy.arange(len(sets)), sizes)
    shared = counts[columns] > 1
    rows, columns = rows[shared], columns[shared]
    matrix = csr_matrix((numpy.ones(len(rows), "int32"), (rows, columns)), (len(sets), len(counts)))
    for start in range(0, len(sets), 1000):
        common = triu(matrix[start:start + 1000] @ matrix.T, start + 1).tocoo()
        first, second, both = common.row + start, common.col, common.data
        near = both >= least * (sizes[first] + sizes[second] - both) - 1e-9
        yield from zip(first[near], second[near])


def main(path, least):
    names, sets = read(path)
    print(len(names))
    for first, second in pairs(sets, float(least)):
        print(f"{names[first]}\t{names[second]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
