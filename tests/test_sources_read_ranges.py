"""Requests for files in a store: ranges ahead in windows, blocks of a tar, pieces of columns."""

from __future__ import annotations

import tarfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packer.errors import BusyError, LostFile
from packer.sources.archives import columns_file, ranges_ahead, streamed_file
from packer.sources.archives.archive_files import Span
from packer.sources.archives.columns_file import ColumnsFile
from packer.sources.archives.parquet_footer import ranges_of
from packer.sources.archives.ranges_ahead import RangesAhead
from packer.sources.archives.streamed_file import StreamedFile
from packer.sources.archives.tar import members

DATA = np.random.default_rng(1).bytes(1 << 20)
KIB = 1 << 10


class Asked:
    """Bytes as a file in a store, and the ranges that were requested."""

    def __init__(self, data: bytes = DATA) -> None:
        self.data, self.ranges = data, list[tuple[int, int]]()

    def __call__(self, start: int, stop: int) -> bytes:
        assert 0 <= start < stop <= len(self.data)
        self.ranges.append((start, stop))
        return self.data[start:stop]

    def span(self, span: Span) -> bytes:
        return self(span.start, min(span.start + span.size, len(self.data)))


@pytest.fixture(scope="module")
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as pool:
        yield pool


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes of a thousandth."""
    monkeypatch.setattr(ranges_ahead, "MOST_BYTES", 64 * KIB)
    monkeypatch.setattr(ranges_ahead, "WINDOW", 32 * KIB)
    monkeypatch.setattr(ranges_ahead, "GAP", 64)
    monkeypatch.setattr(ranges_ahead, "MOST_TOGETHER", 8 * KIB)
    for module, name in ((streamed_file, "BLOCK"), (columns_file, "PIECE")):
        monkeypatch.setattr(module, name, 4 * KIB)
    monkeypatch.setattr(streamed_file, "FAR", 8 * KIB)
    monkeypatch.setattr(streamed_file, "LANDING", 1 * KIB)
    monkeypatch.setattr(streamed_file, "BUFFER", 512)


@pytest.mark.usefixtures("small")
def test_near_parts_are_one_request_and_memory_is_bounded(threads: ThreadPoolExecutor) -> None:
    asked = Asked()
    ahead = RangesAhead(asked.span, threads)
    spans = [Span("a", 1000 * number, 950) for number in range(1000)]
    ahead.expect(spans)
    for number, span in enumerate(spans):
        assert ahead.take(span) == DATA[span.start : span.start + 950]
        requested = sum(stop - start for start, stop in asked.ranges)
        assert requested <= 1000 * number + 64 * KIB + 8 * KIB, "what is not forgotten, and the request in use"
        ahead.forget([span])
    assert len(asked.ranges) < 1000 / 7
    assert all(stop - start <= 8 * KIB for start, stop in asked.ranges)
    assert ahead.take(spans[0]) is None, "it was forgotten"


@pytest.mark.usefixtures("small")
def test_far_parts_of_many_files_are_read_in_the_order_of_rows(threads: ThreadPoolExecutor) -> None:
    files: list[tuple[str, int]] = []

    def read(span: Span) -> bytes:
        files.append(span[:2])
        return DATA[span.start : span.start + span.size]

    with ThreadPoolExecutor(1) as one_thread:
        ahead = RangesAhead(read, one_thread)
        spans = [Span("ab"[number % 2], 5000 * (99 - number), 300) for number in range(100)]
        ahead.expect([*spans, *spans])
        for span in spans:
            assert ahead.take(span) == DATA[span.start : span.start + 300]
            ahead.forget([span, span])
    assert files == [span[:2] for span in spans]


def test_errors_reach_each_row_of_a_request_and_new_rows_replace_expected_ones(threads: ThreadPoolExecutor) -> None:
    def read(span: Span) -> bytes:
        if span.file == "lost":
            raise LostFile("is lost")
        time.sleep(0.001)
        return DATA[span.start : span.start + span.size]

    ahead = RangesAhead(read, threads)
    lost = [Span("lost", 0, 10), Span("lost", 10, 10)]
    ahead.expect([*lost, Span("a", 0, 10)])
    for span in lost:
        with pytest.raises(LostFile):
            ahead.take(span)
    ahead.expect([Span("a", 20, 10)])
    assert ahead.take(Span("a", 0, 10)) is None
    assert ahead.take(Span("a", 20, 10)) == DATA[20:30]
    assert ahead.take(Span("a", 20, 9)) is None


def test_a_store_that_does_not_answer_is_asked_no_more() -> None:
    asked: list[Span] = []

    def read(span: Span) -> bytes:
        asked.append(span)
        raise BusyError("the store is silent")

    with ThreadPoolExecutor(2) as two_threads:
        ahead = RangesAhead(read, two_threads)
        spans = [Span(f"{number}", 0, 10) for number in range(50)]
        ahead.expect(spans)
        for span in spans:
            with pytest.raises(BusyError, match="is silent"):
                ahead.take(span)
    assert len(asked) <= 2


@pytest.mark.usefixtures("small")
def test_many_threads_take_rows_in_any_order(threads: ThreadPoolExecutor) -> None:
    ahead = RangesAhead(Asked().span, threads)
    spans = [Span("a", 1000 * number, 500) for number in range(1000)]
    ahead.expect(spans)
    wrong: list[Span] = []

    def take(chosen: list[Span]) -> None:
        for span in chosen:
            data = ahead.take(span)
            if data is not None and data != DATA[span.start : span.start + span.size]:
                wrong.append(span)
            ahead.forget([span])

    takers = [threading.Thread(target=take, args=(spans[start::4],)) for start in range(4)]
    for taker in takers:
        taker.start()
    for taker in takers:
        taker.join()
    assert not wrong


def tar_with(sizes: list[int]) -> bytes:
    with tarfile.open(fileobj=(data := BytesIO()), mode="w") as tar:
        for number, size in enumerate(sizes):
            member = tarfile.TarInfo(f"{number}.png")
            member.size = size
            tar.addfile(member, BytesIO(bytes(size)))
    return data.getvalue()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("sizes", "most", "share"),
    [
        ([200] * 500, 130, 1),  # small members: blocks of 4 KiB
        ([40 * KIB] * 50, 70, 0.1),  # each is jumped over
        ([40 * KIB, 500] * 50, 140, 0.2),
        ([3 * KIB] * 100, 110, 1.1),
    ],
)
def test_a_tar_is_read_in_blocks_and_large_members_are_jumped_over(
    sizes: list[int], most: int, share: float, threads: ThreadPoolExecutor
) -> None:
    asked = Asked(tar_with(sizes))
    with StreamedFile(len(asked.data), asked, threads).buffered() as file:
        assert [member.size for member in members(file, len(asked.data))] == sizes
    assert len(asked.ranges) <= most
    assert sum(stop - start for start, stop in asked.ranges) <= share * len(asked.data)


SEEKS = st.lists(st.tuples(st.integers(0, 200_000), st.integers(0, 9000)), max_size=40)


@given(SEEKS)
def test_a_streamed_file_is_the_file(seeks: list[tuple[int, int]]) -> None:
    data = DATA[:150_001]
    with ThreadPoolExecutor(2) as pool, pytest.MonkeyPatch.context() as patch:
        for name, size in (("BLOCK", 4096), ("FAR", 8192), ("LANDING", 1000), ("BUFFER", 512)):
            patch.setattr(streamed_file, name, size)
        with StreamedFile(len(data), Asked(data), pool).buffered() as file:
            for start, size in seeks:
                file.seek(start)
                assert file.read(size) == data[start : start + size]


@given(SEEKS, st.lists(st.integers(0, 150_001), max_size=8))
def test_a_file_of_columns_is_the_file(seeks: list[tuple[int, int]], ends: list[int]) -> None:
    data = DATA[:150_001]
    ranges = list(zip(sorted(ends)[::2], sorted(ends)[1::2], strict=False))
    with ThreadPoolExecutor(2) as pool, pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns_file, "PIECE", 4096)
        file = ColumnsFile(len(data), Asked(data), pool)
        file.follow([ranges[::2], ranges[1::2]])
        for number, (start, size) in enumerate(seeks):
            file.seek(start)
            assert file.read(size) == data[start : start + size]
            if number % 9 == 8:
                file.rest()


def test_claims_of_a_damaged_table_are_not_followed(threads: ThreadPoolExecutor) -> None:
    for ranges in ([(0, 1 << 60)], [(-5, 10)], [(0, 1 << 20)] * 1000):
        asked = Asked()
        file = ColumnsFile(len(DATA), asked, threads)
        file.follow([ranges])
        assert file.read(10) == DATA[:10]
        assert asked.ranges == [(0, 10)]


@pytest.mark.usefixtures("small")
def test_columns_that_are_not_read_are_not_requested_and_others_are_requested_ahead(
    threads: ThreadPoolExecutor,
) -> None:
    noise = np.random.default_rng(2)
    columns = {name: [noise.bytes(2000) for _ in range(200)] for name in ("image", "other", "label")}
    pq.write_table(pa.table(columns), data := BytesIO(), row_group_size=50, compression="none", use_dictionary=False)
    asked = Asked(data.getvalue())
    file = ColumnsFile(len(asked.data), asked, threads)
    table = pq.ParquetFile(file, pre_buffer=False, buffer_size=1 << 12)
    footer = len(asked.ranges)
    file.follow(ranges_of(file.footer(), ["image", "label"]))
    assert len(asked.ranges) == footer, "Arrow has read it"
    for number in range(4):
        for batch in table.iter_batches(8, [number], ["image", "label"], use_threads=False):
            assert batch.num_rows
    requested = sum(stop - start for start, stop in asked.ranges[footer:])
    assert requested < 0.7 * len(asked.data), "a third of the bytes is of another column"
    assert len(asked.ranges) - footer < 230


def table_of_many() -> bytes:
    kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    images = pa.array([{"bytes": bytes([number] * 50), "path": None} for number in range(90)], kind)
    columns = {"image": images, "flags": [[True, False]] * 90, "name": [f"{number}" for number in range(90)]}
    table = pa.table(columns).replace_schema_metadata({"huggingface": "{}"})
    pq.write_table(table, file := BytesIO(), row_group_size=20, write_page_index=True)
    return file.getvalue()


def test_the_ranges_of_columns_are_those_that_arrow_shows(threads: ThreadPoolExecutor) -> None:
    content = table_of_many()
    metadata = pq.ParquetFile(BytesIO(content)).metadata
    footer = ColumnsFile(len(content), Asked(content), threads).footer()
    for columns in (["image"], ["name", "image"], ["flags"]):
        shown: dict[str, list[tuple[int, int]]] = {}
        for number in range(metadata.num_row_groups):
            for chunk in map(metadata.row_group(number).column, range(metadata.num_columns)):
                if chunk.path_in_schema.partition(".")[0] in columns:
                    start = chunk.dictionary_page_offset or chunk.data_page_offset
                    ranges = shown.setdefault(chunk.path_in_schema, [])
                    ranges.append((start, start + chunk.total_compressed_size))
        assert len(shown) >= len(columns)
        assert ranges_of(footer, columns) == list(shown.values())


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 255)), min_size=1, max_size=8), st.integers(0, 3000))
def test_a_damaged_footer_has_ranges_or_none(changes: list[tuple[int, int]], cut: int) -> None:
    content = table_of_many()
    with ThreadPoolExecutor(1) as pool:
        footer = bytearray(ColumnsFile(len(content), Asked(content), pool).footer())
        for place, byte in changes:
            footer[place % len(footer)] = byte
        for damaged in (bytes(footer), bytes(footer[: cut % len(footer)]), b""):
            ranges = ranges_of(damaged, ["image", "name"])
            ColumnsFile(len(content), Asked(content), pool).follow(ranges)
            assert all(isinstance(start, int) and isinstance(stop, int) for part in ranges for start, stop in part)
