"""Parquet files and saved data sets of Hugging Face as a source: columns, keys, class names, and damaged files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import good, run
from drills.damaged_packs import Worker
from stored_scenes import png, scenes_of, table_of, write_hugging_face, write_parquet

from packer import build_pack
from packer.errors import InputError
from packer.sources.archives.archive import ArchiveSource
from packer.sources.archives.hugging_face import HuggingFaceSource
from packer.sources.archives.parquet import MOST_KEPT, ROWS, ParquetSource
from packer.sources.container import Names
from readers import open_dataset
from readers.contract.manifest import Manifest

pytestmark = pytest.mark.usefixtures("in_process")

SCENES = scenes_of({f"k{number}": number for number in range(7)})
IMAGES, LABELS = ([png(row[side]) for row in SCENES.values()] for side in (0, 1))


def parquet(path: Path, columns: dict[str, Any], *names: str | None) -> ParquetSource:
    pq.write_table(pa.table(columns), path)
    return ParquetSource.at(path, Names(*names))


def loaded(source: ArchiveSource) -> list[tuple[Any, ...]]:
    return [source.load(ref).data for ref in source.rows()]


def causes(source: ArchiveSource) -> list[str]:
    assert not list(source.rows())
    return [str(problem) for problem in source.problems]


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ({"image": IMAGES, "label": LABELS}, ()),
        ({"Image": IMAGES, "seg.png": LABELS, "text": ["x"] * 7}, ()),
        ({"photo": IMAGES, "second": LABELS}, ()),
        ({"first": IMAGES, "mask": LABELS}, ()),
        ({"first": IMAGES, "second": LABELS}, ("first", "second")),
        ({"image": LABELS, "second": LABELS, "label": IMAGES}, ("label", "image")),
        ({"image": pa.array(IMAGES, pa.large_binary()), "label": pa.array(LABELS, pa.large_binary())}, ()),
    ],
)
def test_columns_are_known_or_named(tmp_path: Path, columns: dict[str, Any], names: tuple[str, ...]) -> None:
    assert loaded(parquet(tmp_path / "a.parquet", columns, *names)) == list(zip(IMAGES, LABELS, strict=True))


@pytest.mark.parametrize(
    ("columns", "names", "message"),
    [
        ({"a": IMAGES, "b": LABELS}, (), "does not say which columns are image and label; name them: --image, --label"),
        ({"image": IMAGES, "mask": LABELS, "label": LABELS}, (), "it has image, mask, label"),
        ({"image": IMAGES}, (), "does not say which columns"),
        ({"image": IMAGES, "label": list(range(7))}, (), "does not say which columns"),
        ({"image": IMAGES, "label": LABELS}, ("img",), "has no column of pictures --image img; it has image, label"),
        ({"image": IMAGES, "label": LABELS, "id": [0.5] * 7}, (None, None, "id"), "has no column --key id of texts"),
        ({"image": IMAGES, "label": LABELS}, (None, None, "id"), "has no column --key id of texts or whole numbers"),
    ],
)
def test_unclear_columns_are_an_error_that_lists_them(
    tmp_path: Path, columns: dict[str, Any], names: tuple[str, ...], message: str
) -> None:
    (cause,) = causes(parquet(tmp_path / "a.parquet", columns, *names))
    assert message in cause
    assert cause.startswith("a.parquet: ")


def test_keys_are_those_of_a_column_or_the_numbers_of_rows(tmp_path: Path) -> None:
    columns = {"image": IMAGES, "label": LABELS, "id": [10 * row for row in range(7)]}
    source = parquet(tmp_path / "val-00000-of-00001.parquet", columns, None, None, "id")
    assert [(ref.split, ref.key) for ref in source.rows()][:2] == [("val", "0"), ("val", "10")]
    source = ParquetSource.at(tmp_path, Names())
    assert [ref.key for ref in source.rows()][-1] == "val-00000-of-00001/00000006"


def test_lists_of_numbers_are_pictures_too(tmp_path: Path) -> None:
    images, labels = ([row[side].tolist() for row in SCENES.values()] for side in (0, 1))
    kind = pa.list_(pa.list_(pa.list_(pa.uint8())))
    columns = {"image": pa.array(images, kind), "label": pa.array(labels, pa.large_list(pa.list_(pa.int64())))}
    for data, (image, label) in zip(loaded(parquet(tmp_path / "a.parquet", columns)), SCENES.values(), strict=True):
        assert np.array_equal(data[0], image)
        assert np.array_equal(data[1], label)
        assert data[1].dtype == np.uint8


def test_other_values_are_bad_rows(tmp_path: Path) -> None:
    struct = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    images = pa.array([{"bytes": None, "path": "/etc/passwd"}, None, {"bytes": b"\x80\x04.", "path": None}], struct)
    source = parquet(tmp_path / "a.parquet", {"image": images, "label": LABELS[:3]})
    reasons = [heads for heads in source.heads(list(source.rows())) if isinstance(heads, str)]
    assert [reason.split(": ")[1].split(";")[0] for reason in reasons] == [
        "has the path of a picture and not its bytes",
        "is empty",
        "is not a PNG, JPEG, TIFF, JPEG 2000, BMP, WebP or npy",
    ]
    lists = pa.array([[[1, 2], [3]], [[1, None], [2, 3]], [[70000, 1]]], pa.list_(pa.list_(pa.int32())))
    source = parquet(tmp_path / "b.parquet", {"image": IMAGES[:3], "label": lists})
    reasons = [str(source.load(ref).bad) for ref in source.rows()]
    for reason, words in zip(reasons, ("different lengths", "empty places", "70000"), strict=True):
        assert words in reason


def test_row_groups_are_read_in_parts(tmp_path: Path) -> None:
    """Rows in any order; and what is kept of a file does not grow with it."""
    count = 40 * ROWS
    columns = {"image": [IMAGES[row % 7] for row in range(count)], "label": [LABELS[row % 7] for row in range(count)]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=count // 2)
    source = ParquetSource.at(tmp_path / "a.parquet", Names())
    refs = list(source.rows())
    for row in [*range(count), 3, count - 1, count // 2, 0]:
        assert source.load(refs[row]).data == (IMAGES[row % 7], LABELS[row % 7]), row
        assert len(source._kept) <= MOST_KEPT


def test_class_names_of_the_features_are_taken(tmp_path: Path) -> None:
    labels = pa.array([row[1].tolist() for row in SCENES.values()], pa.list_(pa.list_(pa.int64())))
    names = ["sky", "road", "car", "tree"]
    feature = {"feature": {"feature": {"names": names, "_type": "ClassLabel"}, "_type": "List"}, "_type": "List"}
    metadata = {"huggingface": json.dumps({"info": {"features": {"image": {"_type": "Image"}, "label": feature}}})}
    table = pa.table({"image": IMAGES, "label": labels}).replace_schema_metadata(metadata)
    pq.write_table(table, tmp_path / "a.parquet")
    build_pack(tmp_path / "a.parquet", tmp_path / "out")
    assert Manifest.load(tmp_path / "out").classes.names == tuple(names)
    build_pack(tmp_path / "a.parquet", tmp_path / "given", classes=["a", "b", "c", "d"])
    assert Manifest.load(tmp_path / "given").classes.names == ("a", "b", "c", "d")
    for wrong in ("{", '{"info": 3}', '{"info": {"features": {"label": {"names": [1], "_type": "ClassLabel"}}}}'):
        pq.write_table(table.replace_schema_metadata({"huggingface": wrong}), tmp_path / "a.parquet")
        assert ParquetSource.at(tmp_path / "a.parquet", Names()).class_names == ()


def test_the_splits_of_a_saved_data_set_are_its_folders(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    folder.mkdir()
    for split, keys in (("train", ("k0", "k1", "k2", "k3", "k4", "k5")), ("holdout", ("k6",))):
        write_hugging_face(folder / split, {key: SCENES[key] for key in keys})
    (folder / "dataset_dict.json").write_text('{"splits": ["train", "holdout"]}')
    good("build", "--quiet", "--classes", "4", "--key", "name", "--from", folder, tmp_path / "out")
    assert {split.name: split.rows for split in Manifest.load(tmp_path / "out").splits} == {"train": 6, "holdout": 1}
    image = open_dataset(tmp_path / "out", "holdout")[0].image.numpy()
    assert np.array_equal(image, SCENES["k6"][0].transpose(2, 0, 1))
    assert run("diff", folder, tmp_path / "out").exit_code == 0


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("{", "state.json: cannot be read: JSONDecodeError"),
        ("[]", "state.json: cannot be read: TypeError"),
        (
            '{"_data_files": [{"filename": "../other.arrow"}]}',
            "names '../other.arrow', which is not",
        ),
        ('{"_data_files": [{"filename": ".."}]}', "names '..', which is not"),
        ('{"_data_files": [{}]}', "state.json: cannot be read: KeyError"),
        ('{"_data_files": [{"filename": "data.arrow"}]}', "data.arrow: cannot be read (No such file or directory)"),
    ],
)
def test_a_saved_data_set_that_is_not_whole_is_named(tmp_path: Path, state: str, message: str) -> None:
    write_hugging_face(tmp_path / "saved", SCENES)
    (tmp_path / "saved/state.json").write_text(state)
    with pytest.raises(InputError) as error:
        build_pack(tmp_path / "saved", tmp_path / "out", classes=4)
    assert message in str(error.value)


def test_a_table_that_was_cut_anywhere_is_named(tmp_path: Path) -> None:
    write_hugging_face(tmp_path / "saved", SCENES)
    write_parquet(tmp_path / "a.parquet", SCENES)
    file = tmp_path / "saved/data-00000-of-00002.arrow"
    for path, source in ((file, HuggingFaceSource.at), (tmp_path / "a.parquet", ParquetSource.at)):
        whole = path.read_bytes()
        for size in [*range(0, len(whole), 997), len(whole) - 8, len(whole) - 1]:
            path.write_bytes(whole[:size])
            opened = source(path if path != file else tmp_path / "saved", Names())
            list(opened.rows())
            (problem,) = opened.problems
            assert problem.files == (path.name,)


@pytest.mark.parametrize("kind", [ParquetSource, HuggingFaceSource])
def test_damaged_tables_cost_rows_or_are_named(tmp_path: Path, kind: type[ArchiveSource]) -> None:
    """Any four bytes may change: rows are listed, or the file is a problem, and loading gives bytes or a reason."""
    folder = tmp_path / "saved"
    write_hugging_face(folder, SCENES)
    path = folder / "data-00000-of-00002.arrow" if kind is HuggingFaceSource else tmp_path / "a.parquet"
    pq.write_table(table_of(SCENES), tmp_path / "a.parquet", compression="snappy")
    whole, dice = path.read_bytes(), np.random.default_rng(0)
    for _ in range(100):
        data = bytearray(whole)
        at = int(dice.integers(len(data))) if dice.random() < 0.5 else -int(dice.integers(1, 2000)) % len(data)
        data[at : at + 4] = dice.bytes(4)
        path.write_bytes(data)
        source = kind.at(folder if kind is HuggingFaceSource else path, Names())
        for ref in source.rows():
            found = source.load(ref)
            assert found.bad is not None or len(found.data) == 2


def test_rows_of_a_file_that_changed_after_the_plan_are_bad(tmp_path: Path) -> None:
    for kind, write in ((ParquetSource, write_parquet), (HuggingFaceSource, write_hugging_face)):
        path = tmp_path / kind.kind
        write(path, SCENES)
        source = kind.at(path, Names())
        refs = list(source.rows())
        assert source.load(refs[0]).bad is None
        write(path, dict(reversed(SCENES.items())))
        for ref in refs:
            assert "was changed after the build was planned; build again" in str(source.load(ref).bad)


@pytest.mark.parametrize("kind", [ParquetSource, HuggingFaceSource])
def test_keys_that_are_not_texts_are_a_problem_of_their_file(tmp_path: Path, kind: type[ArchiveSource]) -> None:
    is_saved = kind is HuggingFaceSource
    (write_hugging_face if is_saved else write_parquet)(tmp_path / "table", SCENES)
    file = tmp_path / "table/data-00000-of-00002.arrow" if is_saved else tmp_path / "table"
    whole = file.read_bytes()
    name = b"k0k1k2" if is_saved else b"k1\x02\0\0\0k2"  # as a column of Arrow, and of Parquet
    assert name in whole
    file.write_bytes(whole.replace(name, name.replace(b"k1", b"\xff\xff")))
    source = kind.at(tmp_path / "table", Names(None, None, "name"))
    list(source.rows())
    (problem,) = source.problems
    assert "cannot be read: " in problem.cause
    assert problem.files == (file.name,)


def list_and_cut(path: Path) -> str:
    """Cut a table after its rows were listed, and return what becomes of their headers and of the rows."""
    source = HuggingFaceSource.at(path, Names())
    refs = list(source.rows())
    for file in path.glob("*.arrow"):
        os.truncate(file, 0)
    found = {str(heads) for heads in source.heads(refs)} | {str(source.load(ref).bad) for ref in refs}
    return str(all("was changed after the build was planned" in text for text in found))


def test_rows_of_a_mapped_table_that_is_cut_are_bad(tmp_path: Path) -> None:
    """To read them through the map would end the process with SIGBUS."""
    write_hugging_face(tmp_path, SCENES)
    worker = Worker(list_and_cut)
    worker.ask(tmp_path)
    answer = worker.answer()
    worker.close()
    assert answer == "True"


def test_a_row_without_a_key_is_named(tmp_path: Path) -> None:
    """Its key was None, as a text."""
    columns = {"image": IMAGES, "label": LABELS, "id": [*"abc", None, *"efg"]}
    source = parquet(tmp_path / "a.parquet", columns, None, None, "id")
    list(source.rows())
    assert [str(problem) for problem in source.problems] == ["a.parquet: has no --key id in row 3"]


def test_columns_that_store_equal_values_once_are_read(tmp_path: Path) -> None:
    """pandas writes categories, and Arrow dictionaries."""
    pictures = {name: pa.array(values).dictionary_encode() for name, values in (("image", IMAGES), ("label", LABELS))}
    keys = pa.array(list("abcdefg")).dictionary_encode()
    source = parquet(tmp_path / "a.parquet", {**pictures, "id": keys}, None, None, "id")
    assert [ref.key for ref in source.rows()] == list("abcdefg")
    assert loaded(source) == list(zip(IMAGES, LABELS, strict=True))
    holes = pa.array([*IMAGES[:3], None]).dictionary_encode()
    source = parquet(tmp_path / "b.parquet", {"image": IMAGES[:4], "label": holes})
    assert [source.load(ref).bad for ref in source.rows()] == [None] * 3 + ["b.parquet@3/label: is empty"]


def test_a_struct_without_bytes_and_path_is_empty(tmp_path: Path) -> None:
    struct = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    rows = pa.array([{"bytes": None, "path": None}, {"bytes": None, "path": "a.png"}], struct)
    source = parquet(tmp_path / "a.parquet", {"image": IMAGES[:2], "label": rows})
    reasons = [str(source.load(ref).bad) for ref in source.rows()]
    assert reasons[0].endswith("label: is empty")
    assert "has the path of a picture and not its bytes" in reasons[1]


def test_a_table_that_claims_too_many_rows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = parquet(tmp_path / "a.parquet", {"image": IMAGES, "label": LABELS})
    monkeypatch.setattr(ParquetSource, "count", lambda self, file: 1 << 50)
    assert "bytes, and claims 1125899906842624 rows" in causes(source)[0]


def test_fewer_keys_than_rows_are_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"image": IMAGES, "label": LABELS, "id": list("abcdefg")}
    source = parquet(tmp_path / "a.parquet", columns, None, None, "id")
    monkeypatch.setattr(ParquetSource, "count", lambda self, file: 9)
    list(source.rows())
    assert "has 7 values of --key id in 9 rows" in str(source.problems[0])
