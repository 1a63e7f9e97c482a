"""TFRecord files as a source: Examples are read strictly, and every checksum is checked."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import good
from stored_scenes import example, message, png, record, scenes_of, varint, write_tfrecord

from packer.errors import BadPair
from packer.sources.archives.tf_example import features_of, first_values
from packer.sources.archives.tfrecord import TfRecordSource
from packer.sources.container import Names
from readers.contract.manifest import Manifest

pytestmark = pytest.mark.usefixtures("in_process")

SCENES = scenes_of({f"k{number}": number for number in range(5)})
IMAGE, LABEL = (png(pixels) for pixels in SCENES["k0"])


def source_of(path: Path, *names: str | None) -> TfRecordSource:
    return TfRecordSource.at(path, Names(*names))


def parse(data: bytes) -> None:
    for feature in features_of(memoryview(data)).values():
        first_values(feature)


def written(path: Path, *features: Mapping[str, Any]) -> Path:
    path.write_bytes(b"".join(record(example(each)) for each in features))
    return path


@pytest.mark.parametrize(
    ("image", "label", "names"),
    [
        ("image/encoded", "image/segmentation/class/encoded", ()),
        ("image", "mask", ()),
        ("photo", "second", ()),
        ("first", "second", ("first", "second")),
    ],
)
def test_features_are_known_or_named(tmp_path: Path, image: str, label: str, names: tuple[str, ...]) -> None:
    features = {"height": 12, "text": b"road", image: IMAGE, label: LABEL, "id": 7, "ids": [1, 2]}
    source = source_of(written(tmp_path / "val-00000-of-00001.tfrecord", features, features), *names)
    refs = list(source.rows())
    assert [(ref.split, ref.key) for ref in refs] == [("val", f"val-00000-of-00001/0000000{row}") for row in (0, 1)]
    assert [source.load(ref).data for ref in refs] == [(IMAGE, LABEL)] * 2


def test_a_feature_may_have_the_keys(tmp_path: Path) -> None:
    rows = [{"image": IMAGE, "label": LABEL, "name": f"k{row}".encode(), "id": 1 << row} for row in range(3)]
    path = written(tmp_path / "a.tfrecords", *rows)
    assert [ref.key for ref in source_of(path, None, None, "name").rows()] == ["k0", "k1", "k2"]
    assert [ref.key for ref in source_of(path, None, None, "id").rows()] == ["1", "2", "4"]
    source = source_of(path, None, None, "other")
    assert not list(source.rows())
    assert "has no value of --key other in the record at byte 12" in str(source.problems[0])


def test_unclear_features_are_listed(tmp_path: Path) -> None:
    source = source_of(written(tmp_path / "a.tfrecord", {"a": IMAGE, "b": LABEL, "c": 3}))
    assert not list(source.rows())
    assert "does not say which features are image and label; name them: --image, --label; it has a, b, c" in str(
        source.problems[0]
    )


def test_a_record_without_a_field_is_a_bad_row(tmp_path: Path) -> None:
    whole = {"image": IMAGE, "label": LABEL}
    source = source_of(written(tmp_path / "a.tfrecord", whole, {"image": IMAGE}, {"image": IMAGE, "label": 3}, whole))
    reasons = [source.load(ref).bad for ref in source.rows()]
    assert [reason and reason.partition("label: ")[2] for reason in reasons] == [
        None,
        "has no value; expected the bytes of one picture file",
        "has a number; expected the bytes of one picture file",
        None,
    ]


def test_a_file_that_was_cut_anywhere_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", *[{"image": IMAGE, "label": LABEL}] * 3)
    whole = path.read_bytes()
    for size in range(len(whole) - 1, 0, -61):
        path.write_bytes(whole[:size])
        source = source_of(path)
        rows = list(source.rows())
        if size % (len(whole) // 3):
            assert [problem.files for problem in source.problems] == [("a.tfrecord",)]
        assert len(rows) == 3 * size // len(whole)


def test_any_changed_byte_is_found_by_a_checksum(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", *[{"image": IMAGE, "label": LABEL}] * 2)
    whole, dice = path.read_bytes(), random.Random(0)
    for _ in range(200):
        data = bytearray(whole)
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        path.write_bytes(data)
        source = source_of(path)
        loaded = [source.load(ref) for ref in source.rows()]
        bad = [row.bad for row in loaded if row.bad is not None]
        assert len(bad) + len(source.problems) == 1
        assert "does not have its checksum" in str([*bad, *source.problems][0]) or "cut off" in str(source.problems[0])


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a",
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\x0a" + b"\xff" * 11,
        b"\x0b",
        b"\x09\0",
        b"\x0d\0\0",
        message(1, message(1, message(2, message(3, message(1, b"\xff"))))),
    ],
)
def test_what_is_not_an_example_is_refused(data: bytes) -> None:
    with pytest.raises(BadPair, match="is not an Example"):
        parse(data)


def test_numbers_are_read_packed_and_apart() -> None:
    for numbers in (message(1, varint(300) + varint(7)), b"\x08" + varint(300) + b"\x08" + varint(7)):
        feature = message(1, b"n") + message(2, message(3, numbers))
        assert first_values(features_of(memoryview(message(1, message(1, feature))))["n"]) == [300, 7]


def listed(*lists: bytes) -> bytes:
    return message(1, message(1, b"n") + b"".join(message(2, values) for values in lists))


ONE, TWO = message(1, message(1, b"one")), message(1, message(1, b"two"))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (message(1, listed(ONE) + listed(TWO)), "it has the feature n twice"),
        (message(1, listed(ONE)) + message(1, listed(TWO)), "it has the feature n twice"),
        (message(1, listed(ONE, TWO)), "a feature with two names or two lists"),
        (message(1, message(1, message(1, b"n") + message(1, b"m") + message(2, ONE))), "two names or two lists"),
        (message(1, listed(ONE + TWO)), "a feature with two lists of values"),
        (message(1, listed(ONE + message(3, b"\x08\7"))), "a feature with two lists of values"),
    ],
)
def test_what_occurs_twice_in_an_example_is_refused(data: bytes, reason: str) -> None:
    """Programs differ in which one they take, and a label may be the other."""
    with pytest.raises(BadPair, match=reason):
        parse(data)


def test_numbers_below_zero_are_keys() -> None:
    for number in (0, 5, -5, -(1 << 63), (1 << 63) - 1):
        for numbers in (message(1, varint(number % (1 << 64))), b"\x08" + varint(number % (1 << 64))):
            assert first_values(memoryview(message(3, numbers))) == [number]


def test_the_values_of_a_feature_are_not_all_read() -> None:
    """Those of a feature of many numbers took forty times its bytes."""
    many = memoryview(message(3, message(1, b"\1" * (8 << 20))))
    texts = memoryview(message(1, message(1, b"") * (1 << 20)))
    tracemalloc.start()
    assert first_values(many) == [1, 1]
    assert first_values(texts) == [b"", b""]
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_features_and_records_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "a.tfrecord", {"image": IMAGE, "label": LABEL})
    for name, value, words in (
        ("archives.tf_example.MOST_FEATURES", 1, "has more than 1 features"),
        ("archives.tfrecord.MOST_BYTES", 100, "bytes at byte 0; 100 are read at most"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"packer.sources.{name}", value)
            source = source_of(path)
            assert not list(source.rows())
            assert words in str(source.problems[0])


def test_the_command_packs_records(tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    write_tfrecord(tmp_path / "records" / "train-00000-of-00001.tfrecord", SCENES)
    out = tmp_path / "out"
    good("build", "--quiet", "--classes", "4", "--from", tmp_path / "records", "--key", "name", out)
    assert [(split.name, split.rows) for split in Manifest.load(out).splits] == [("train", 5)]
