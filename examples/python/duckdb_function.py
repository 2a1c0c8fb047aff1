"""doppel in SQL: a fingerprint function for DuckDB, and a query result without near-duplicates.

    pip install libdoppel duckdb pyarrow
    python examples/python/duckdb_function.py
"""
import random

import doppel
import duckdb
import pyarrow


def register(connection: duckdb.DuckDBPyConnection) -> None:
    """doppel_fingerprint(text) for SQL. DuckDB hands over Arrow arrays of some 2,000 texts, and takes Arrow back."""
    def fingerprint(texts: pyarrow.Array) -> pyarrow.Array:
        return pyarrow.array(doppel.fingerprint(texts, missing="skip"))
    connection.create_function("doppel_fingerprint", fingerprint, ["VARCHAR"], "UBIGINT", type="arrow",
                               null_handling="special")


def make_table(connection: duckdb.DuckDBPyConnection) -> None:
    """41 documents: from the 31st on they are earlier ones with a new first word, and the last one has no text."""
    words = "river stone lamp winter paper garden engine signal quiet morning letter window copper field voice".split()
    chance = random.Random(1)
    texts = [" ".join(chance.choices(words, k=80)) for _ in range(30)]
    texts += ["Again " + text.split(" ", 1)[1] for text in texts[:10]] + [None]
    documents = pyarrow.table({"id": range(len(texts)), "text": texts})
    connection.sql("create table documents as from documents")


def main() -> None:
    connection = duckdb.connect()
    register(connection)
    make_table(connection)

    # Pairs of fingerprints that differ in few bits, by a SQL join that compares all of them. That is fine for some
    # thousands of rows; doppel.pairs finds all pairs among millions.
    pairs = connection.sql("""
        with marked as (select id, doppel_fingerprint(text) as print from documents)
        select a.id as a, b.id as b, bit_count(xor(a.print, b.print)) as distance
        from marked a join marked b on a.id < b.id and bit_count(xor(a.print, b.print)) <= 8
        order by a, b""")
    print(pairs)
    without = connection.execute("select id from documents where doppel_fingerprint(text) is null").fetchall()
    assert without == [(40,)]

    # One of each: a relation in, Arrow out, which DuckDB queries by the name of the variable.
    unique = doppel.dedup(connection.sql("from documents"), missing="skip")
    kept = pyarrow.table(unique)
    print(connection.sql("select count(*) as kept, max(id) as last from kept"))
    removed = pyarrow.table(unique.removed)
    print(connection.sql("from removed order by id limit 3"))
    assert connection.execute("select originalId from removed order by id").fetchall() == [(i,) for i in range(10)]
    assert all(b == a + 30 for a, b, _ in pairs.fetchall())


if __name__ == "__main__":
    main()
