"""Parquet files joined without encoding: the same bytes as those of one writer, and what readers make of them."""
import datetime
import decimal
import io
import random

import pytest

from conftest import FULL

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from doppel import _parquet_join as join  # noqa: E402

try:
    from hypothesis import example, given
    from hypothesis import strategies as st
except ImportError:

    class st:  # noqa: N801
        """Stands in for the strategies of tests that are skipped."""

        def __getattr__(self, name):
            return lambda *arguments, **options: self

    st = st()

    def given(*arguments, **options):
        def skipped():
            pytest.skip("needs hypothesis")

        return lambda test: skipped

    def example(*arguments, **options):
        return lambda test: test


CODECS = [name for name in ("none", "snappy", "gzip", "brotli", "zstd", "lz4")
          if name == "none" or pa.Codec.is_available(name)]
# Numbers of parts for each codec.
CASES = [(codec, count) for codec in CODECS for count in (1, 7, 300) if FULL or count < 300 or codec == "snappy"]
SEEDS = range(200 if FULL else 25)
DEPTH = 3
THREE = pa.table({"number": [1, None, 3], "text": ["one", "two", "three"]})


# ---- tables at random ----


def random_type(choice, depth):
    """A type and a function that makes one of its values."""
    flat = [
        (pa.bool_(), lambda: choice.random() < 0.5),
        (pa.int8(), lambda: choice.randrange(-128, 128)),
        (pa.uint32(), lambda: choice.randrange(2**32)),
        (pa.int64(), lambda: choice.randrange(-2**63, 2**63)),
        (pa.uint64(), lambda: choice.randrange(2**64)),
        (pa.float32(), lambda: float(choice.randrange(-1000, 1000))),
        (pa.float64(), choice.random),
        (pa.string(), lambda: "aé文"[:choice.randrange(4)] * choice.randrange(30)),
        (pa.large_string(), lambda: str(choice.randrange(5))),
        (pa.binary(), lambda: choice.randbytes(choice.randrange(20))),
        (pa.binary(7), lambda: choice.randbytes(7)),
        (pa.decimal128(9, 2), lambda: decimal.Decimal(choice.randrange(-10**9, 10**9)).scaleb(-2)),
        (pa.decimal128(30, 5), lambda: decimal.Decimal(choice.randrange(-10**9, 10**9)).scaleb(-5)),
        (pa.date32(), lambda: datetime.date.fromordinal(choice.randrange(600000, 800000))),
        (pa.time64("us"), lambda: datetime.time(choice.randrange(24), choice.randrange(60), 5, 77)),
        (pa.timestamp("ms"), lambda: datetime.datetime(2000 + choice.randrange(50), 2, 3, 4, 5, 6)),
        (pa.timestamp("us", "UTC"), lambda: datetime.datetime(1950, 1, 2, tzinfo=datetime.timezone.utc)),
        (pa.timestamp("ns"), lambda: datetime.datetime(2000, 1, 2, 3, 4, 5, choice.randrange(10**6))),
        (pa.null(), lambda: None),
    ]
    if depth == DEPTH:  # pyarrow cannot write null structs with dictionaries inside
        flat += [(pa.dictionary(pa.int32(), pa.string()), lambda: choice.choice(["red", "green", "blue"]))] * 3
    kind = choice.randrange(8) if depth else 7
    if kind > 2:
        return choice.choice(flat)
    inner, make = random_type(choice, depth - 1)
    other, make_other = random_type(choice, depth - 1)
    if kind == 0:
        return pa.list_(pa.field("element", inner)), lambda: [maybe(choice, make) for _ in range(choice.randrange(4))]
    if kind == 1:
        return (pa.struct([("x", inner), ("y", other)]),
                lambda: {"x": maybe(choice, make), "y": maybe(choice, make_other)})
    return (pa.map_(pa.string(), other),
            lambda: [(str(n), maybe(choice, make_other)) for n in range(choice.randrange(3))])


def maybe(choice, make):
    return None if choice.random() < 0.2 else make()


def random_parts(seed, count):
    """Lists of tables, all with the same schema: the row groups of the parts."""
    choice = random.Random(seed)
    kinds = [random_type(choice, DEPTH) for _ in range(choice.randrange(1, 7))]
    metadata = {"key": "value", "seed": str(seed)} if choice.random() < 0.5 else None
    schema = pa.schema([(f"c{n}", kind) for n, (kind, _) in enumerate(kinds)], metadata=metadata)

    def table():
        rows = choice.choice([0, 1, 2, 20])
        return pa.table([pa.array([maybe(choice, make) for _ in range(rows)], kind) for kind, make in kinds],
                        schema=schema)

    return schema, [[table() for _ in range(choice.choice([0, 1, 1, 1, 3]))] for _ in range(count)]


def random_options(seed):
    choice = random.Random(seed)
    return {"compression": choice.choice(CODECS), "version": choice.choice(["1.0", "2.4", "2.6"]),
            "data_page_version": choice.choice(["1.0", "2.0"]), "use_dictionary": choice.random() < 0.7,
            "write_statistics": choice.random() < 0.7, "write_page_checksum": choice.random() < 0.3,
            "sorting_columns": choice.choice([None, [pq.SortingColumn(0)]])}


# ---- files ----


def encoded(schema, tables, **options):
    """A Parquet file with these row groups."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, **options) as writer:
        for table in tables:
            writer.write_table(table)
    return sink.getvalue()


def joined(parts):
    sink = io.BytesIO()
    whole = join.Joined(sink)
    for part in parts:
        whole.add(part)
    whole.finish()
    return sink.getvalue()


def footer_of(file):
    file = bytes(file)
    return file[len(file) - 8 - int.from_bytes(file[-8:-4], "little"):-8]


def with_footer(file, footer):
    """The file with another footer, as bytes or as read."""
    if isinstance(footer, dict):
        footer = written(footer)
    return bytes(file)[:-8 - len(footer_of(file))] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def read(footer):
    fields, end = join._read_struct(footer, 0)
    assert end == len(footer)
    return fields


def written(fields):
    out = bytearray()
    join._write_struct(out, fields)
    return bytes(out)


def groups_of(metadata):
    return metadata[4][1][1]


def chunks_of(group):
    return group[1][1][1]


def rows_of(file):
    return pq.read_table(io.BytesIO(file)).to_pylist()


# ---- what comes of it ----


@pytest.mark.parametrize("seed", SEEDS)
def test_the_bytes_are_those_of_one_writer(seed):
    """Row groups that one writer writes after another are encoded as those of files of their own."""
    schema, parts = random_parts(seed, 1 + seed % 12)
    options = random_options(seed)
    tables = [table for part in parts for table in part]
    whole = joined(encoded(schema, part, **options) for part in parts)
    assert whole == bytes(encoded(schema, tables, **options))
    assert rows_of(whole) == [row for table in tables for row in table.to_pylist()]


@pytest.mark.parametrize("codec, count", CASES)
def test_readers_see_all_rows(codec, count, tmp_path):
    schema, parts = random_parts(count, count)
    path = tmp_path / "joined.parquet"
    path.write_bytes(joined(encoded(schema, part, compression=codec) for part in parts))
    table = pa.concat_tables([schema.empty_table()] + [table for part in parts for table in part])
    found = pq.read_table(path)
    found.validate(full=True)
    assert found.schema.equals(pq.read_schema(pa.BufferReader(encoded(schema, []))), check_metadata=True)
    assert found.to_pylist() == table.to_pylist()


def plain_parts(count):
    """Parts of nested and flat columns that all readers know."""
    choice = random.Random(count)
    schema = pa.schema([
        ("id", pa.int64()), ("text", pa.string()), ("colour", pa.dictionary(pa.int32(), pa.string())),
        ("price", pa.decimal128(12, 3)), ("at", pa.timestamp("us")), ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("x", pa.float64()), ("names", pa.list_(pa.string()))]))])

    def row(number):
        place = {"x": choice.random(), "names": [f"n{number}", None][:choice.randrange(3)]}
        values = [number, f"text {number} " * choice.randrange(9), choice.choice(["red", "blue"]),
                  decimal.Decimal(choice.randrange(10**9)).scaleb(-3), datetime.datetime(2020, 1, 1, 0, 0, number % 60),
                  ["a", None, "b"][:choice.randrange(4)], place]
        return dict(zip(schema.names, [values[0]] + [maybe(choice, lambda value=value: value) for value in values[1:]]))

    numbers = iter(range(10**9))
    return schema, [[pa.Table.from_pylist([row(next(numbers)) for _ in range(choice.choice([0, 1, 50]))], schema)
                     for _ in range(choice.choice([0, 1, 2]))] for _ in range(count)]


@pytest.mark.parametrize("codec, count", CASES)
def test_duckdb_reads_it(codec, count, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    schema, parts = plain_parts(count)
    path = tmp_path / "joined.parquet"
    path.write_bytes(joined(encoded(schema, part, compression=codec) for part in parts))
    expected = [tuple(row.values()) for part in parts for table in part for row in table.to_pylist()]
    assert duckdb.sql(f"select * from read_parquet('{path}') order by id").fetchall() == expected
    ids = [row[0] for row in expected]
    assert duckdb.sql(f"select count(*) from read_parquet('{path}') where id >= 40").fetchall() == [
        (sum(number >= 40 for number in ids),)]


@pytest.mark.parametrize("codec, count", CASES)
def test_polars_reads_it(codec, count, tmp_path):
    polars = pytest.importorskip("polars")
    schema, parts = plain_parts(count)
    path = tmp_path / "joined.parquet"
    path.write_bytes(joined(encoded(schema, part, compression=codec) for part in parts))
    expected = [row for part in parts for table in part for row in table.to_pylist()]
    assert polars.read_parquet(path).to_dicts() == expected
    assert polars.scan_parquet(path).filter(polars.col("id") >= 40).collect().height == sum(
        row["id"] >= 40 for row in expected)


def test_metadata_is_that_of_the_first_part_and_of_all_row_groups():
    schemas = [THREE.schema.with_metadata({"part": str(n)}) for n in range(2)]
    parts = [encoded(schemas[0], [THREE, THREE.slice(1)]), encoded(schemas[1], []), encoded(schemas[1], [THREE])]
    metadata = pq.read_metadata(io.BytesIO(joined(parts)))
    assert metadata.num_rows == 8
    assert [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)] == [3, 2, 3]
    assert metadata.metadata[b"part"] == b"0"
    own = pq.read_metadata(pa.BufferReader(parts[0]))
    assert metadata.created_by == own.created_by
    assert metadata.schema.equals(own.schema)
    last = pq.read_metadata(pa.BufferReader(parts[2])).row_group(0)
    for column in range(2):
        statistics = metadata.row_group(2).column(column).statistics
        assert statistics == last.column(column).statistics
        assert statistics.has_min_max
    assert read(footer_of(joined(parts)))[7] == read(footer_of(parts[0]))[7]


def test_an_empty_part_may_come_first_or_alone():
    empty = encoded(THREE.schema, [])
    assert joined([empty]) == bytes(empty)
    assert rows_of(joined([empty, empty, encoded(THREE.schema, [THREE]), empty])) == THREE.to_pylist()


def test_no_columns_and_no_rows_at_all():
    table = pa.table({})
    assert rows_of(joined([encoded(table.schema, [table])] * 2)) == []


def test_any_buffer_is_a_part():
    part = encoded(THREE.schema, [THREE])
    whole = joined([part, part])
    assert joined([bytes(part), memoryview(part)]) == whole
    assert joined([bytearray(part), io.BytesIO(bytes(part)).getbuffer()]) == whole
    sink = pa.BufferOutputStream()
    by_arrow = join.Joined(sink)
    by_arrow.add(part)
    by_arrow.add(part)
    by_arrow.finish()
    assert bytes(sink.getvalue()) == whole


def test_bloom_filters_are_found(tmp_path):
    """They stand after the row groups of their part. DuckDB looks into them."""
    duckdb = pytest.importorskip("duckdb")
    tables = [pa.table({"word": [f"{part}-{n}" for n in range(100)]}) for part in range(3)]
    try:
        parts = [encoded(table.schema, [table], bloom_filter_options={"word": {"ndv": 100}}) for table in tables]
    except TypeError:
        pytest.skip("this pyarrow writes no Bloom filters")
    assert 14 in chunks_of(groups_of(read(footer_of(parts[0])))[0])[0][3][1]
    path = tmp_path / "joined.parquet"
    path.write_bytes(joined(parts))
    for part in range(3):
        excluded = duckdb.sql("select row_group_id, bloom_filter_excludes "
                              f"from parquet_bloom_probe('{path}', 'word', '{part}-42')").fetchall()
        assert dict(excluded) == {n: n != part for n in range(3)}


# ---- offsets and ordinals ----


def test_every_offset_is_moved_if_it_is_set():
    part = encoded(THREE.schema, [THREE], use_dictionary=["number"])
    metadata = read(footer_of(part))
    group = groups_of(metadata)[0]
    chunk = chunks_of(group)[0]
    column = chunk[3][1]
    chunk[2] = (6, 40)
    column[10], column[14] = (6, 50), (6, 60)
    del group[5]
    chunks_of(group)[1][3][1][11] = (6, 0)
    part = with_footer(part, metadata)
    by = len(part) - len(footer_of(part)) - 12
    moved = groups_of(read(footer_of(joined([part, part]))))[1]
    first, second = chunks_of(moved)
    assert first[2] == (6, 40 + by)
    assert first[3][1] == {**column, 9: (6, column[9][1] + by), 10: (6, 50 + by), 11: (6, column[11][1] + by),
                           14: (6, 60 + by)}
    assert second[2] == (6, 0) and second[3][1][11] == (6, 0)
    assert 5 not in moved


def test_offsets_may_be_beyond_32_bits():
    fields = {9: (6, 100)}
    assert join._move(fields, (9,), 200, 2**40) == 100
    assert read(written(fields)) == {9: (6, 2**40 + 100)}


def test_ordinals_are_counted_as_long_as_they_have_16_bits(monkeypatch):
    part = encoded(THREE.schema, [THREE, THREE])
    metadata = read(footer_of(part))
    for group in groups_of(metadata):
        group[7], group[99] = (4, 1), (8, b"unknown")
    part = with_footer(part, metadata)
    assert join._MAX_ORDINAL == 2**15 - 1
    monkeypatch.setattr(join, "_MAX_ORDINAL", 4)
    groups = groups_of(read(footer_of(joined([part] * 3))))
    assert [group.get(7) for group in groups] == [(4, 0), (4, 1), (4, 2), (4, 3), (4, 4), None]
    assert all(group[99] == (8, b"unknown") for group in groups)


def test_many_row_groups():
    part = encoded(THREE.schema, [THREE] * 100)
    metadata = pq.read_metadata(io.BytesIO(joined([part] * (400 if FULL else 20))))
    assert metadata.num_rows == 3 * metadata.num_row_groups == (120000 if FULL else 6000)


# ---- what is refused ----


def refused(part, why, first=None):
    """The message fits, nothing is written, and other parts may still come."""
    whole = encoded(THREE.schema, [THREE])
    sink = io.BytesIO()
    file = join.Joined(sink)
    file.add(whole)
    before = sink.getvalue()
    for each in file, join.Joined(io.BytesIO()):
        if each is file or first is None:
            with pytest.raises(ValueError, match=why):
                each.add(part)
    assert sink.getvalue() == before
    file.add(whole)
    file.finish()
    assert sink.getvalue() == joined([whole, whole])


def test_truncated_parts_are_refused():
    part = bytes(encoded(THREE.schema, [THREE]))
    for size in range(len(part)):
        with pytest.raises(ValueError, match="cannot be joined"):
            join.Joined(io.BytesIO()).add(part[:size])
        with pytest.raises(ValueError, match="cannot be joined"):
            join.Joined(io.BytesIO()).add(part[size + 1:])
        with pytest.raises(ValueError, match="cannot be joined"):  # the footer alone
            join.Joined(io.BytesIO()).add(with_footer(part, footer_of(part)[:size % len(footer_of(part))]))
    refused(part[:-1], "not a whole Parquet file")
    refused(b"", "not a whole Parquet file")
    refused(b"PAR1PAR1", "not a whole Parquet file")
    refused(with_footer(part, footer_of(part)[:-1]), "damaged")
    refused(with_footer(part, footer_of(part) + b"\0"), "another length")
    refused(part[:-8] + b"\xff\xff\xff\xff" + part[-4:], "longer than the part")
    refused(part[:-8] + (len(part) - 11).to_bytes(4, "little") + part[-4:], "longer than the part")


def test_an_altered_footer_is_refused_or_still_one():
    """Whatever byte is altered, there is no other exception, and what was joined can be read as Thrift again."""
    part = bytes(encoded(THREE.schema, [THREE]))
    footer = footer_of(part)
    for at in range(len(footer)):
        for bit in range(8) if FULL else (0, 3, 7):
            other = bytearray(footer)
            other[at] ^= 1 << bit
            try:
                read(footer_of(joined([with_footer(part, bytes(other))])))
            except ValueError as error:
                assert "cannot be joined" in str(error)


def altered(change):
    part = encoded(THREE.schema, [THREE])
    metadata = read(footer_of(part))
    group = groups_of(metadata)[0]
    change(metadata, group, chunks_of(group)[0])
    return with_footer(part, metadata)


@pytest.mark.parametrize("why, change", [
    ("number of rows", lambda file, group, chunk: file.update({3: (6, 4)})),
    ("number of rows", lambda file, group, chunk: group.update({3: (6, 4)})),
    ("missing", lambda file, group, chunk: file.pop(3)),
    ("missing", lambda file, group, chunk: file.pop(4)),
    ("missing", lambda file, group, chunk: group.pop(1)),
    ("missing", lambda file, group, chunk: chunk.pop(3)),
    ("missing", lambda file, group, chunk: chunk[3][1].pop(7)),
    ("another type", lambda file, group, chunk: file.update({4: (9, ((6,), [1]))})),
    ("another type", lambda file, group, chunk: chunk[3][1].update({9: (8, b"4")})),
    ("another type", lambda file, group, chunk: group.update({5: (5, 4)})),
    ("not in its pages", lambda file, group, chunk: chunk[3][1].update({9: (6, 3)})),
    ("not in its pages", lambda file, group, chunk: chunk[3][1].update({11: (6, -5)})),
    ("not in its pages", lambda file, group, chunk: group.update({5: (6, 10**6)})),
    ("longer than its pages", lambda file, group, chunk: chunk[3][1].update({7: (6, 10**6)})),
    ("longer than its pages", lambda file, group, chunk: chunk[3][1].update({7: (6, -1)})),
    ("another file", lambda file, group, chunk: chunk.update({1: (8, b"other.parquet")})),
    ("encrypted", lambda file, group, chunk: chunk.update({8: (12, {1: (12, {})})})),
    ("encrypted", lambda file, group, chunk: file.update({8: (12, {1: (12, {})})})),
    ("encrypted", lambda file, group, chunk: file.update({9: (8, b"key")})),
])
def test_a_footer_that_cannot_be_is_refused(why, change):
    refused(altered(change), why)


def test_page_indexes_are_refused():
    refused(encoded(THREE.schema, [THREE], write_page_index=True), "page index")


def test_encrypted_footers_are_refused():
    refused(bytes(encoded(THREE.schema, [THREE]))[:-4] + b"PARE", "encrypted")


def test_other_schemas_are_refused():
    for table in (THREE.select(["number"]), THREE.rename_columns(["number", "texts"]), THREE.select(["text", "number"]),
                  THREE.set_column(0, "number", pa.array([1, 2, 3], pa.int32()))):
        refused(encoded(table.schema, [table]), "schema", first="ours")
    refused(altered(lambda file, group, chunk: file.pop(7)), "schema", first="ours")


def test_no_parts_are_no_file():
    with pytest.raises(ValueError, match="needs a part"):
        join.Joined(io.BytesIO()).finish()


# ---- Thrift ----


@given(st.integers(0, 2**32))
def test_footers_of_pyarrow_are_written_as_they_were_read(seed):
    schema, parts = random_parts(seed, 1)
    footer = footer_of(encoded(schema, parts[0], **random_options(seed)))
    assert written(read(footer)) == footer


def thrift_values(kind, inner):
    """Values of a type, as they are read."""
    if kind in (1, 2, 3):
        return st.binary(min_size=1, max_size=1)
    if kind in (4, 5, 6):
        bits = {4: 15, 5: 31, 6: 63}[kind]
        return st.integers(-2**bits, 2**bits - 1)
    if kind in (7, 13):
        return st.binary(min_size=8 if kind == 7 else 16, max_size=8 if kind == 7 else 16)
    if kind == 8:
        return st.binary(max_size=200)
    if kind in (9, 10):
        return inner.flatmap(lambda typed: st.lists(st.just(typed[1]), max_size=20).map(lambda v: ((typed[0],), v)))
    if kind == 11:
        return st.tuples(inner, inner, st.integers(0, 20)).map(
            lambda t: ((t[0][0], t[1][0]), [t[0][1], t[1][1]] * t[2]) if t[2] else ((), []))
    return st.dictionaries(st.integers(-2**15, 2**15 - 1), inner.map(as_field), max_size=20)


def as_field(typed):
    """Booleans that are fields have no value."""
    return (typed[0], None) if typed[0] < 3 else typed


def typed_values(inner):
    return st.one_of(*[thrift_values(kind, inner).map(lambda value, kind=kind: (kind, value)) for kind in range(1, 14)])


FLAT = st.one_of(*[thrift_values(kind, None).map(lambda value, kind=kind: (kind, value)) for kind in range(1, 9)])


@given(st.dictionaries(st.integers(-2**15, 2**15 - 1), st.recursive(FLAT, typed_values, max_leaves=12).map(as_field)))
@example({1: (6, -2**63), 2: (6, 2**63 - 1), 17: (1, None), 33: (2, None), 3: (9, ((6,), list(range(15))))})
@example({1: (9, ((6,), list(range(14)))), 2: (10, ((1,), [b"\1", b"\2", b"\0"])), 3: (9, ((12,), [{}] * 300))})
@example({1: (11, ((8, 12), [b"key", {5: (7, b"12345678")}, b"", {}])), 2: (11, ((), [])), 3: (13, b"u" * 16)})
def test_structs_are_read_as_they_were_written(fields):
    assert read(written(fields)) == fields


def test_numbers_have_64_bits():
    assert read(b"\x16" + b"\xff" * 9 + b"\x01\0") == {1: (6, -2**63)}
    for number in b"\xff" * 9 + b"\x02", b"\x80" * 10 + b"\0":
        with pytest.raises(ValueError, match="64 bits"):
            read(b"\x16" + number + b"\0")


def test_known_bytes():
    """The examples are worked out by hand from the specification of the compact protocol."""
    for fields, data in [
        ({}, "00"),
        ({1: (5, 1)}, "15 02 00"),
        ({1: (5, -1), 16: (6, 50399), 32: (4, 2)}, "15 01 f6 be 93 06 04 40 04 00"),
        ({3: (1, None), 4: (2, None)}, "31 12 00"),
        ({2: (8, b"ab"), 3: (12, {})}, "28 02 61 62 1c 00 00"),
        ({1: (9, ((5,), [1, 2]))}, "19 25 02 04 00"),
        ({1: (9, ((3,), [b"x"] * 15))}, "19 f3 0f" + " 78" * 15 + " 00"),
        ({1: (11, ((8, 5), [b"k", 7]))}, "1b 01 85 01 6b 0e 00"),
    ]:
        assert written(fields) == bytes.fromhex(data)
        assert read(bytes.fromhex(data)) == fields


@given(st.binary(max_size=60))
@example(b"\x1c" * 100000)  # structs in structs
@example(b"\x19\xf7\xff\xff\xff\xff\xff\xff\xff\x7f\0")  # a list of very many doubles
@example(b"\x1b\xff\xff\xff\xff\xff\xff\xff\x7f\x77\0")  # a map of them
@example(b"\x16" + b"\x80" * 1000 + b"\0")  # very long numbers
@example(b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\x7f\0")  # a very long string
@example(b"\x1e\0")  # no such type
@example(b"\x10\0")
def test_no_bytes_do_worse_than_being_refused(footer):
    with pytest.raises(ValueError, match="cannot be joined"):
        joined([b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"])
