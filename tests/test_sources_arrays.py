"""`packer build --from`: HDF5 and `.npy` arrays of any shape and type; what is wrong with them is named at once."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import h5py
import numpy as np
import pytest
import torch
from conftest import errors_of, pack_from, run
from numpy.typing import NDArray
from stored_scenes import write_array

from packer import build_pack
from packer.errors import InputError, UsageError
from packer.recipe.source import UNKNOWN
from packer.sources.arrays.hdf5_arrays import DataSet, Hdf5Arrays
from packer.sources.arrays.npy_arrays import NpyArrays
from packer.sources.arrays.plain_array import PlainArray
from packer.sources.arrays.zarr_arrays import ZarrArrays
from packer.sources.arrays.zarr_layout import layout_of
from packer.sources.container import Names
from packer.sources.containers import container_of
from packer.sources.reopen import reopen
from readers import open_dataset

pytestmark = pytest.mark.usefixtures("in_process")

RNG = np.random.default_rng(7)
IMAGES = RNG.integers(0, 256, (6, 10, 14, 3), np.uint8)
LABELS = RNG.integers(0, 3, (6, 10, 14), np.uint8)
OPTIONS = ("--image", "images", "--label", "labels", "--classes", "3")
Arrays = dict[str, NDArray[Any]]


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open HDF5 files here: a process for each takes a third of a second. test_sources_damaged_arrays.py has those."""
    monkeypatch.setattr(Hdf5Arrays, "may_crash", False)


def npy(folder: Path, arrays: Arrays) -> Path:
    folder.mkdir(exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return folder


def hdf5(path: Path, arrays: Arrays) -> Path:
    new = path.with_name(f"{path.name}.new")  # a process may not have a file open twice
    with h5py.File(new, "w") as file:
        for name, array in arrays.items():
            file[name] = array if array.dtype.kind != "U" else array.astype(object)
    return new.replace(path)


def torch_file(path: Path, arrays: Arrays) -> Path:
    path = path.with_suffix(".pth")
    others = {name: array.tolist() for name, array in arrays.items() if array.dtype.kind in "US"}
    numbers = {name: torch.from_numpy(array.copy()) for name, array in arrays.items() if name not in others}
    torch.save({**numbers, **others}, path)
    return path


def built(source: Path, out: Path, *options: object) -> Path:
    return pack_from(source, out, *OPTIONS, *options)


def stored(out: Path, split: str = "all") -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    rows = open_dataset(out, split, label="index")
    return {rows.key(index): (rows[index][0].numpy(), rows[index][1].numpy()) for index in range(len(rows))}


FORMS: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {
    "channels last": (IMAGES, LABELS),
    "channels first": (np.ascontiguousarray(IMAGES.transpose(0, 3, 1, 2)), LABELS),
    "labels of 64 bits": (IMAGES, LABELS.astype(np.int64)),
    "the other byte order": (IMAGES, LABELS.astype(">u2")),
    "a channel of the label": (IMAGES, LABELS[..., None]),
    "its channel first": (IMAGES, LABELS[:, None]),
    "an opaque alpha": (np.concatenate([IMAGES, np.full_like(IMAGES[..., :1], 255)], 3), LABELS),
    "two classes as truth values": (IMAGES, LABELS > 0),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("write", [npy, hdf5, torch_file])
def test_arrays_of_any_form_are_packed(tmp_path: Path, write: Callable[[Path, Arrays], Path], form: str) -> None:
    images, labels = FORMS[form]
    if write is torch_file and labels.dtype.byteorder == ">":
        pytest.skip("tensors have the byte order of the machine")
    source = write(tmp_path / "arrays", {"images": images, "labels": labels})
    rows = stored(built(source, tmp_path / "out"))
    assert list(rows) == [f"{number:08}" for number in range(6)]
    for number, (image, label) in enumerate(rows.values()):
        assert np.array_equal(image, IMAGES[number].transpose(2, 0, 1))
        assert np.array_equal(label, LABELS[number] > 0 if form.startswith("two") else LABELS[number])


SQUARE = RNG.integers(0, 3, (6, 12, 12, 3), np.uint8)
"""Pictures whose sides could be channels, too."""
COLOURED: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {
    "channels last": (IMAGES, IMAGES),
    "channels first": (IMAGES.transpose(0, 3, 1, 2), IMAGES.transpose(0, 3, 1, 2)),
    "first and last": (IMAGES.transpose(0, 3, 1, 2), IMAGES),
    "square": (SQUARE, SQUARE),
}


@pytest.mark.parametrize("form", COLOURED)
def test_labels_may_be_colours_wherever_their_channels_are(tmp_path: Path, form: str) -> None:
    images, labels = COLOURED[form]
    source = NpyArrays.at(npy(tmp_path / "arrays", {"images": images, "labels": labels}), NAMES)
    expected = SQUARE if form == "square" else IMAGES
    assert [head.size for head in next(iter(source.heads(list(source.rows()))))] == [expected.shape[1:3]] * 2  # type: ignore[union-attr]
    for number, ref in enumerate(source.rows()):
        assert all(np.array_equal(data, expected[number]) for data in source.load(ref).data)


@pytest.mark.parametrize(("image", "label"), [((6, 3, 5, 3), (6, 3, 5, 3)), ((6, 3, 3, 3), (6, 3, 3))])
def test_channels_that_may_be_first_or_last_are_refused(
    tmp_path: Path, image: tuple[int, ...], label: tuple[int, ...]
) -> None:
    arrays = {"images": np.zeros(image, np.uint8), "labels": np.zeros(label, np.uint8)}
    assert refused(npy(tmp_path / "arrays", arrays), NAMES)[1:] == [
        f"channels may be the first or the last: images {image} uint8, labels {label} uint8; "
        "give the rows with a function (Rows) that knows which"
    ]


def test_arrays_that_claim_more_than_can_be_are_refused(tmp_path: Path) -> None:
    """A sparse file has any size, and takes no memory."""
    for shape in ((6, 1 << 15, 1 << 15), (6, 0, 5), ((1 << 30) + 1, 2, 2)):
        (tmp_path / "arrays").mkdir(exist_ok=True)
        for name in ("images", "labels"):
            header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}}}\n".encode()
            with (tmp_path / "arrays" / f"{name}.npy").open("wb") as file:
                file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
                file.truncate(file.tell() + math.prod(shape))
        assert any("pixels" in problem or "rows" in problem for problem in refused(tmp_path / "arrays", NAMES)[1:])


@pytest.mark.parametrize("gray", [IMAGES[..., 0], IMAGES[..., :1], IMAGES[:, None, :, :, 0]])
def test_gray_images_have_one_channel_or_none(tmp_path: Path, gray: NDArray[np.uint8]) -> None:
    rows = stored(built(npy(tmp_path / "arrays", {"images": gray, "labels": LABELS}), tmp_path / "out"))
    assert all(
        np.array_equal(image, np.stack([IMAGES[number, ..., 0]] * 3)) for number, (image, _) in enumerate(rows.values())
    )


def test_16_bits_and_floats_need_a_range(tmp_path: Path) -> None:
    source = npy(tmp_path / "arrays", {"images": IMAGES.astype(np.float32) / 255, "labels": LABELS})
    rows = stored(built(source, tmp_path / "out", "--image-range", "0,1"))
    assert np.array_equal(rows["00000002"][0], IMAGES[2].transpose(2, 0, 1))
    errors = errors_of(1, "build", "--quiet", "--from", source, *OPTIONS, tmp_path / "no")
    assert "6 images: 32 bits per channel, not 8. Give --image-range LOW,HIGH" in errors


@pytest.mark.parametrize(
    "keys", [np.array(list("fbdeca")), np.array(list("fbdeca")).astype("S3"), np.array([7, 10, 2, 3, 8, 9])]
)
@pytest.mark.parametrize("write", [npy, hdf5])
def test_keys_are_texts_or_numbers(tmp_path: Path, write: Callable[[Path, Arrays], Path], keys: NDArray[Any]) -> None:
    source = write(tmp_path / "arrays", {"images": IMAGES, "labels": LABELS, "names": keys})
    rows = stored(built(source, tmp_path / "out", "--key", "names"))
    texts = [key.decode() if isinstance(key, bytes) else str(key) for key in keys.tolist()]
    assert list(rows) == sorted(texts)
    assert all(np.array_equal(rows[key][1], LABELS[number]) for number, key in enumerate(texts))
    assert run("diff", source, tmp_path / "out").exit_code == 0


def test_one_npy_file_names_the_others_next_to_it(tmp_path: Path) -> None:
    source = npy(tmp_path / "arrays", {"images": IMAGES, "labels": LABELS}) / "images.npy"
    assert len(stored(built(source, tmp_path / "out"))) == 6


def test_python_takes_the_path_of_a_container(tmp_path: Path) -> None:
    source = hdf5(tmp_path / "cells.h5", {"images": IMAGES, "labels": LABELS})
    summary = build_pack(source, tmp_path / "out", image="images", label="labels", classes=["a", "b", "c"], workers=1)
    assert (summary.rows, summary.rejects) == (6, ())
    assert np.array_equal(stored(tmp_path / "out")["00000003"][1], LABELS[3])


def refused(path: Path, names: Names) -> list[str]:
    """Return the problems of a container that is refused before work."""
    kind = container_of(path)
    assert kind is not None
    with pytest.raises(InputError) as error:
        kind.at(path, names)
    return [str(error.value).partition(": ")[2].partition("\n")[0], *error.value.problems]


NAMES = Names("images", "labels")


@pytest.mark.parametrize("write", [npy, hdf5])
def test_all_names_that_are_wrong_are_named_at_once(tmp_path: Path, write: Callable[[Path, Arrays], Path]) -> None:
    source = write(tmp_path / "arrays", {"images": IMAGES, "labels": LABELS})
    suffix = "" if write is hdf5 else ".npy"
    summary, *problems = refused(source, Names(None, "lables", "keys"))
    assert summary == f"holds images{suffix} (6, 10, 14, 3) uint8; labels{suffix} (6, 10, 14) uint8"
    assert problems[0] == "--image is missing: name the array"
    assert [problem.partition(": ")[0] for problem in problems[1:]] == ["--label lables", "--key keys"]


WRONG: dict[str, tuple[Arrays, list[str]]] = {
    "lengths": (
        {"images": IMAGES[:5]},
        ["different numbers of rows: images (5, 10, 14, 3) uint8, labels (6, 10, 14) uint8"],
    ),
    "sizes": (
        {"images": IMAGES[:, :9]},
        ["no common height and width: images (6, 9, 14, 3) uint8, labels (6, 10, 14) uint8; expected (N, H, W), "],
    ),
    "a single image": ({"images": IMAGES[0], "labels": LABELS[0]}, ["no common height"]),
    "types": (
        {"images": IMAGES.astype("S3"), "labels": LABELS.astype(np.float32)},
        [
            "images: has the dtype bytes24; expected whole numbers",
            "labels: has floating-point numbers; labels must be integers",
        ],
    ),
    "complex": ({"images": IMAGES.astype(np.complex64)}, ["images: has the dtype complex64; expected whole numbers"]),
    "channels": ({"images": np.repeat(IMAGES, 171, 3)}, ["images: has the shape (10, 14, 513); expected (H, W)"]),
    "planes": ({"labels": np.repeat(LABELS[:, None], 5, 1)}, ["labels: has 5 bands; a label has one, or colours"]),
    "number of keys": ({"keys": np.arange(5)}, ["different numbers of rows: "]),
    "keys of a wrong type": (
        {"keys": np.linspace(0, 1, 6)},
        ["keys (6,) float64: keys must be texts or whole numbers"],
    ),
    "keys of a wrong shape": ({"keys": np.zeros((6, 2), int)}, ["keys (6, 2) int64: keys must be texts or whole"]),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("write", [npy, hdf5, torch_file])
def test_arrays_that_do_not_fit_are_refused_before_work(
    tmp_path: Path, write: Callable[[Path, Arrays], Path], case: str
) -> None:
    arrays, expected = WRONG[case]
    if write is torch_file and case == "types":
        pytest.skip("tensors hold numbers")
    source = write(tmp_path / "arrays", {"images": IMAGES, "labels": LABELS, **arrays})
    _, *problems = refused(source, Names("images", "labels", "keys" if "keys" in arrays else None))
    assert len(problems) == len(expected)
    assert all(problem.startswith(start) for problem, start in zip(problems, expected, strict=True)), problems


def objects(folder: Path) -> str:
    np.save(folder / "labels.npy", np.array([{"a": 1}] * 6), allow_pickle=True)
    return "is a NumPy array of the type '|O'; expected plain numbers or texts"


def fortran(folder: Path) -> str:
    np.save(folder / "labels.npy", np.asfortranarray(LABELS))
    return "is in Fortran order, where no row is in one piece"


def cut(folder: Path) -> str:
    (folder / "labels.npy").write_bytes((folder / "labels.npy").read_bytes()[:-1])
    return "has 967 bytes, which is not the size of (6, 10, 14) uint8 with its header"


def two(folder: Path) -> str:
    with (folder / "labels.npy").open("ab") as file:
        np.save(file, LABELS)
    return "has 1936 bytes, which is not the size of (6, 10, 14) uint8 with its header"


def records(folder: Path) -> str:
    np.save(folder / "labels.npy", np.zeros(6, [("a", "u1")]))
    return "is a NumPy array with a header that is damaged, or of a type that is not plain numbers or texts"


def text(folder: Path) -> str:
    (folder / "labels.npy").write_text("hello, here are labels")
    return "is not a .npy file"


def no_header(folder: Path) -> str:
    (folder / "labels.npy").write_bytes(b"\x93NUMPY\x01\x00\x40")
    return "ends within its header"


HEADERS = [objects, records, text, no_header]


@pytest.mark.parametrize("spoil", [fortran, cut, two, *HEADERS])
def test_a_npy_file_that_is_not_whole_and_plain_is_refused(tmp_path: Path, spoil: Callable[[Path], str]) -> None:
    folder = npy(tmp_path / "arrays", {"images": IMAGES, "labels": LABELS})
    check_refusal(folder, spoil(folder))


def check_refusal(folder: Path, expected: str) -> None:
    summary, problem = refused(folder, NAMES)
    assert problem.startswith(f"--label labels: {expected}"), problem
    assert "images.npy (6, 10, 14, 3) uint8; labels.npy, which " in summary


DAMAGED = "is a NumPy array with a header that is damaged"
SHAPES: dict[str, tuple[bytes, int, str]] = {
    "code": (b"(print(1),)", 117, DAMAGED),
    "a long header": (b"(6, 10, 14)", 20_000, "is a NumPy array with a header of 20001 bytes; at most 4096 are read"),
    "huge": (
        b"(6, 4294967296, 4294967296)",
        117,
        "has 968 bytes, which is not the size of (6, 4294967296, 4294967296) ",
    ),
    "negative": (b"(-6, -10, 14)", 117, DAMAGED),
    "so deep that Python runs out of memory": (b"(" * 3900 + b")", 0, DAMAGED),
    "more digits than Python converts": (b"(" + b"9" * 3900 + b",)", 0, DAMAGED),
}


@pytest.mark.parametrize("case", SHAPES)
def test_a_npy_header_with_an_impossible_shape_is_refused(tmp_path: Path, case: str) -> None:
    """The header of a .npy file is a literal of Python."""
    shape, width, expected = SHAPES[case]
    write_labels(tmp_path, b"{'descr': '|u1', 'fortran_order': False, 'shape': " + shape + b", }", width)
    check_refusal(tmp_path, expected)


def test_a_npy_file_of_blocks_is_refused(tmp_path: Path) -> None:
    write_labels(tmp_path, b"{'descr': '(4,)u1', 'fortran_order': False, 'shape': (6,), }")
    check_refusal(tmp_path, "is a NumPy array of the type '(4,)u1'; expected plain numbers or texts")


def write_labels(folder: Path, header: bytes, width: int = 0) -> None:
    """Write images, and labels whose header is filled with spaces up to this width."""
    npy(folder, {"images": IMAGES, "labels": LABELS})
    header = header.ljust(width) + b"\n"
    start = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
    (folder / "labels.npy").write_bytes(start + header + LABELS.tobytes())


def external_link(file: h5py.File, folder: Path) -> str:
    file["labels"] = h5py.ExternalLink("other.h5", "/labels")
    return "is a link to /labels; name the data set itself"


def soft_link(file: h5py.File, folder: Path) -> str:
    file["labels"] = h5py.SoftLink("/real")
    return "is a link to /real; name the data set itself"


def linked_group(file: h5py.File, folder: Path) -> str:
    file["labels"] = h5py.ExternalLink("other.h5", "/")
    return "is a link to /; name the data set itself"


def external_storage(file: h5py.File, folder: Path) -> str:
    (folder / "secret").write_bytes(LABELS.tobytes())
    file.create_dataset("labels", LABELS.shape, "u1", external=[(str(folder / "secret"), 0, LABELS.size)])
    return "is stored in other files, which are not opened"


def virtual(file: h5py.File, folder: Path) -> str:
    layout = h5py.VirtualLayout(LABELS.shape, "u1")
    layout[:] = h5py.VirtualSource("other.h5", "labels", LABELS.shape)
    file.create_virtual_dataset("labels", layout)
    return "is stored in other files, which are not opened"


def group(file: h5py.File, folder: Path) -> str:
    file["labels/one"] = LABELS
    return "is a group; name one of its data sets"


def compound(file: h5py.File, folder: Path) -> str:
    file["labels"] = np.zeros(6, [("a", "u1")])
    return "holds [('a', 'u1')]; expected plain numbers or texts"


def lists(file: h5py.File, folder: Path) -> str:
    file.create_dataset("labels", 6, h5py.vlen_dtype(np.uint8))
    return "holds object; expected plain numbers or texts"


def scalar(file: h5py.File, folder: Path) -> str:
    file["labels"] = 5
    return "is a single number"


@pytest.mark.parametrize(
    "spoil",
    [external_link, soft_link, linked_group, external_storage, virtual, group, compound, lists, scalar],
)
def test_what_is_not_a_plain_data_set_of_the_file_itself_is_refused(
    tmp_path: Path, spoil: Callable[[h5py.File, Path], str]
) -> None:
    hdf5(tmp_path / "other.h5", {"labels": LABELS})
    with h5py.File(tmp_path / "cells.h5", "w") as file:
        file["images"], file["real"] = IMAGES, LABELS
        expected = spoil(file, tmp_path)
    names = NAMES._replace(label="labels/labels") if spoil is linked_group else NAMES
    _, *problems = refused(tmp_path / "cells.h5", names)
    problem = problems[-1]
    assert problem.partition(": ")[2].startswith(expected), problem


def test_a_filter_that_h5py_lacks_is_named(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "cells.h5", "w") as file:
        file["images"] = IMAGES
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((1, 10, 14))
        properties.set_filter(32015, h5py.h5z.FLAG_OPTIONAL)
        space = h5py.h5s.create_simple(LABELS.shape)
        h5py.h5d.create(file.id, b"labels", h5py.h5t.STD_U8LE, space, properties)
    _, problem = refused(tmp_path / "cells.h5", NAMES)
    assert problem.startswith("--label labels: is compressed by a filter that h5py lacks here: ")
    assert problem.endswith("(32015)")


def test_rows_in_the_same_chunks_are_decompressed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with h5py.File(tmp_path / "cells.h5", "w") as file:
        file.create_dataset("images", data=IMAGES, chunks=(4, 5, 14, 3), compression="gzip")
        file.create_dataset("labels", data=LABELS, chunks=(6, 10, 14), compression="lzf")
    reads: list[tuple[int, int]] = []

    class Counted(DataSet):
        def rows(self, start: int, stop: int) -> NDArray[Any]:
            reads.append((start, stop))
            return super().rows(start, stop)

    monkeypatch.setattr("packer.sources.arrays.hdf5_arrays.DataSet", Counted)
    source = Hdf5Arrays.at(tmp_path / "cells.h5", NAMES)
    for number, ref in enumerate(source.rows()):
        image, label = source.load(ref).data
        assert np.array_equal(image, IMAGES[number])
        assert np.array_equal(label, LABELS[number])
        image[:], label[:] = 0, 0
    assert sorted(reads) == [(0, 4), (0, 6), (4, 6)]


def test_data_sets_in_one_piece_are_read_without_the_library(tmp_path: Path) -> None:
    source = Hdf5Arrays(hdf5(tmp_path / "cells.h5", {"images": IMAGES, "labels": LABELS}), NAMES)
    assert isinstance(source.stack("images"), PlainArray)
    with h5py.File(tmp_path / "block.h5", "w", userblock_size=512) as file:
        file["images"] = IMAGES
    assert np.array_equal(Hdf5Arrays(tmp_path / "block.h5", NAMES).stack("images").rows(2, 3)[0], IMAGES[2])


def test_a_folder_of_pictures_is_no_container(tmp_path: Path) -> None:
    """A folder of files may have an array of its own, such as the mean of the images."""
    assert container_of(tmp_path) is None
    np.save(tmp_path / "mean.npy", IMAGES[0])
    assert container_of(tmp_path) is NpyArrays
    for name in ("a.png", "images"):
        (tmp_path / name).mkdir()
        assert container_of(tmp_path) is None
        (tmp_path / name).rmdir()


def test_a_folder_with_an_array_for_each_row_is_a_folder_of_files(tmp_path: Path) -> None:
    rows = {f"{key}_{name}": array[row] for row, key in enumerate("ab") for name, array in FIELDS.items()}
    source = npy(tmp_path / "rows", rows)
    build_pack(source, tmp_path / "out", image="{key}_image.npy", label="{key}_label.npy", classes=3, workers=1)
    assert np.array_equal(stored(tmp_path / "out")["b"][0], IMAGES[1].transpose(2, 0, 1))


FIELDS = {"image": IMAGES, "label": LABELS}


def test_repair_and_diff_know_the_container(tmp_path: Path) -> None:
    source = hdf5(tmp_path / "cells.h5", {"images": IMAGES, "labels": LABELS})
    out = built(source, tmp_path / "out")
    before = stored(out)
    shard = next(out.glob("shards/*.image.npy"))
    shard.write_bytes(shard.read_bytes()[:-1] + b"!")
    assert run("repair", "--quiet", out).exit_code == 0
    assert all(np.array_equal(stored(out)[key][0], row[0]) for key, row in before.items())
    assert run("diff", source, out).exit_code == 0
    changed = hdf5(tmp_path / "cells.h5", {"images": IMAGES[::-1], "labels": LABELS})
    result = run("diff", changed, out)
    assert (result.exit_code, result.stdout.count("changed ")) == (1, 6)
    source.unlink()
    shard.write_bytes(shard.read_bytes()[:-1] + b"?")
    assert f"{source}: does not exist, and {out} was built from it" in run("repair", "--quiet", out).stderr


def test_options_that_a_container_has_not_are_refused(tmp_path: Path) -> None:
    source = npy(tmp_path / "arrays", {"images": IMAGES, "labels": LABELS})
    errors = errors_of(2, "build", "--from", source, *OPTIONS, "--pairs", "pairs.csv", tmp_path / "out")
    assert "--pairs: pairs the files of a folder, and rows of the kind" in errors
    (tmp_path / "raw").mkdir()
    errors = errors_of(2, "build", "--key", "keys", tmp_path / "raw", tmp_path / "out")
    assert "--key keys: names the keys in a container" in errors
    errors = errors_of(1, "build", "--from", source, *OPTIONS[:4], tmp_path / "out")
    assert "no class table" in errors
    assert "perhaps --classes 3" in errors


def test_tensors_are_found_in_lists_and_files_of_a_folder(tmp_path: Path) -> None:
    images, labels = torch.from_numpy(IMAGES), torch.from_numpy(LABELS)
    padded = torch.cat([labels, labels])[6:]  # a part of a storage
    torch.save((images, padded), tmp_path / "pair.pt")
    rows = stored(pack_from(tmp_path / "pair.pt", tmp_path / "pair", "--image", 0, "--label", 1, "--classes", 3))
    assert np.array_equal(rows["00000004"][1], LABELS[4])
    (tmp_path / "folder").mkdir()
    torch.save(images, tmp_path / "folder" / "images.pt")
    torch.save({"train": labels}, tmp_path / "folder" / "masks.pth")
    names = ("--image", "images", "--label", "masks.pth/train")
    rows = stored(pack_from(tmp_path / "folder", tmp_path / "out", *names, "--classes", 3))
    assert np.array_equal(rows["00000004"][0], IMAGES[4].transpose(2, 0, 1))


class Trap:
    """An object that makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._path,)


def test_tensors_that_cannot_be_read_as_plain_numbers_are_refused(tmp_path: Path) -> None:
    images, labels = torch.from_numpy(IMAGES), torch.from_numpy(LABELS)

    def problem(name: str, value: Any, **options: Any) -> str:
        torch.save({"images": images, "labels": value}, tmp_path / name, **options)
        return refused(tmp_path / name, NAMES)[-1]

    assert "is a view whose rows do not lie one after the other" in problem("view.pt", labels[:, ::2])
    assert "is a view whose rows do not lie one after the other" in problem("sparse.pt", labels.to_sparse())
    assert "holds bfloat16, which NumPy lacks" in problem("brain.pt", labels.to(torch.bfloat16))
    assert problem("lists.pt", [[1], [2]]) == "--label labels: there is no such tensor"
    assert "was saved before PyTorch 1.6" in problem("old.pt", labels, _use_new_zipfile_serialization=False)
    assert "holds objects besides tensors, which are never built" in problem("trap.pt", Trap(tmp_path / "touched"))
    assert not (tmp_path / "touched").exists()
    with ZipFile(tmp_path / "view.pt") as file, ZipFile(tmp_path / "small.pt", "w", ZIP_DEFLATED) as small:
        for item in file.infolist():
            small.writestr(item.filename, file.read(item), ZIP_DEFLATED if "/data/" in item.filename else ZIP_STORED)
    assert "was compressed after torch.save" in refused(tmp_path / "small.pt", NAMES)[-1]
    cut = tmp_path / "cut.pt"
    cut.write_bytes((tmp_path / "brain.pt").read_bytes()[:-100])
    assert "is damaged" in refused(cut, NAMES)[-1]


def test_workers_read_plain_numbers_without_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for write in (npy, hdf5, torch_file):
        source = write(
            tmp_path / write.__name__, {"images": IMAGES, "labels": LABELS, "keys": np.array(list("abcdef"))}
        )
        kind = container_of(source)
        assert kind is not None
        text = kind.at(source, Names("images", "labels", "keys")).to_text()
        refs = list(kind.at(source, Names("images", "labels", "keys")).rows())
        with monkeypatch.context() as patch:
            patch.setattr(f"{kind.__module__}.{kind.__name__}.stack", None)  # type: ignore[attr-defined]
            assert np.array_equal(reopen(text).load(refs[3]).data[0], IMAGES[3])


LAYOUTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("zarr", {}),
    ("zarr", {"dimension_separator": "/"}),
    ("zarr3", {}),
    ("zarr3", {"chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}}}),
    ("n5", {}),
)


@pytest.fixture
def zarr_group(tmp_path: Path) -> Path:
    pytest.importorskip("tensorstore")
    group = tmp_path / "group"
    for number, (driver, more) in enumerate(LAYOUTS):
        write_array(group / f"images{number}", driver, IMAGES, (4, 5, 14, 3), **more)
        write_array(group / f"labels{number}", driver, LABELS.astype(np.int64), (1, 10, 5), **more)
    (group / ".zgroup").write_text('{"zarr_format": 2}')
    return group


@pytest.mark.parametrize("number", range(len(LAYOUTS)))
def test_arrays_of_zarr_and_n5_are_packed_whatever_their_layout(
    zarr_group: Path, tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names(f"images{number}", f"labels{number}")
    source = ZarrArrays.at(zarr_group, names)
    assert container_of(zarr_group) is ZarrArrays
    refs = list(source.rows())
    for row, ref in enumerate(refs):
        image, label = source.load(ref).data
        assert np.array_equal(image, IMAGES[row])
        assert np.array_equal(label, LABELS[row])
    before = source.states(refs)
    layout = layout_of(zarr_group / f"labels{number}")
    chunks = [zarr_group / f"labels{number}" / name for name in layout.names(3)]
    assert len(chunks) == 3
    for chunk in chunks:
        os.utime(chunk, (1, 1))
    assert (before == source.states(refs)).all(1).tolist() == [True, True, True, False, True, True]
    pack_from(zarr_group, tmp_path / "out", "--image", names.image, "--label", names.label, "--classes", 3)
    assert np.array_equal(stored(tmp_path / "out")["00000004"][1], LABELS[4])


def test_what_is_wrong_with_arrays_of_zarr_is_named(zarr_group: Path) -> None:
    _, *problems = refused(zarr_group, Names("images9", "labels0/0"))
    assert problems == ["--image images9: there is no such array", "--label labels0/0: there is no such array"]
    for text in ("{}", "[]", "{", "[" * 100_000, '{"shape": [6], "chunks": [0]}', '{"shape": "a", "chunks": 5}'):
        (zarr_group / "labels0" / ".zarray").write_text(text)
        assert (
            refused(zarr_group, Names("images0", "labels0"))[-1] == "--label labels0: has no array described in .zarray"
        )
    facts = json.loads((zarr_group / "labels1" / ".zarray").read_text())
    (zarr_group / "labels1" / ".zarray").write_text(json.dumps({**facts, "dtype": "|O", "filters": [{"id": "pickle"}]}))
    assert (
        "cannot be opened; its type or compression may be one" in refused(zarr_group, Names("images0", "labels1"))[-1]
    )


def test_zarr_without_its_library_names_the_extra(zarr_group: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorstore", None)
    with pytest.raises(UsageError, match=r"pip install 'segpack\[zarr\]'"):
        ZarrArrays.at(zarr_group, Names("images0", "labels0"))


@pytest.mark.parametrize("write", [npy, hdf5, torch_file])
def test_rows_of_a_file_that_changed_since_the_plan_are_bad(
    tmp_path: Path, write: Callable[[Path, Arrays], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a pack never mixes rows of the old file with rows of the new one."""
    path = write(tmp_path / "arrays", {"images": IMAGES, "labels": LABELS})
    kind = container_of(path)
    assert kind is not None
    source = kind.at(path, NAMES)
    worker, refs = reopen(source.to_text()), list(source.rows())
    assert (worker.load(refs[0]).bad, int(worker.states(refs)[0, 0]) == UNKNOWN) == (None, False)
    write(tmp_path / "arrays", {"images": IMAGES[::-1], "labels": LABELS})
    for opened in (source, worker):
        assert str(opened.load(refs[1]).bad).endswith(" changed while it was packed; build again")
        assert (opened.states(refs)[:, 0] == UNKNOWN).all()


def test_neighbours_in_a_chunk_that_changed_are_read_again(
    zarr_group: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a row would be old pixels with the state of the new ones, and no later build would notice."""
    source = ZarrArrays.at(zarr_group, Names("images0", "labels0"))
    refs = list(source.rows())
    before = source.load(refs[0])
    write_array(tmp_path / "new", LAYOUTS[0][0], IMAGES[::-1], (4, 5, 14, 3), **LAYOUTS[0][1])
    for chunk in (tmp_path / "new").iterdir():
        if not chunk.name.startswith("."):
            chunk.replace(zarr_group / "images0" / chunk.name)
    state, after = source.states(refs[1:2])[0], source.load(refs[1])
    assert np.array_equal(before.data[0], IMAGES[0])
    assert np.array_equal(after.data[0], IMAGES[::-1][1])
    assert (state == source.states(refs[1:2])[0]).all()


def test_tensors_of_a_big_endian_machine_are_refused(tmp_path: Path) -> None:
    path = torch_file(tmp_path / "arrays", {"images": IMAGES, "labels": LABELS})
    with ZipFile(path) as whole, ZipFile(tmp_path / "big.pth", "w") as big:
        for item in whole.infolist():
            big.writestr(item, b"big" if item.filename.endswith("byteorder") else whole.read(item))
    assert "has big-endian numbers" in refused(tmp_path / "big.pth", NAMES)[-1]


def test_numbers_of_fewer_bits_than_their_bytes_are_read_by_hdf5(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "few.h5", "w") as file:
        file["images"] = IMAGES
        kind = h5py.h5t.STD_U16LE.copy()
        kind.set_precision(12)
        kind.set_offset(4)
        h5py.h5d.create(file.id, b"labels", kind, h5py.h5s.create_simple(LABELS.shape)).write(
            h5py.h5s.ALL, h5py.h5s.ALL, LABELS.astype("<u2")
        )
    source = Hdf5Arrays.at(tmp_path / "few.h5", NAMES)
    for number, ref in enumerate(source.rows()):
        assert np.array_equal(source.load(ref).data[1], LABELS[number])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nothing", "cannot be read (No such file or directory)"),
        ("pipe", "is not a regular file"),
        ("folder", "is not a regular file"),
    ],
)
def test_what_is_not_a_file_is_named_without_waiting(tmp_path: Path, name: str, words: str) -> None:
    folder = npy(tmp_path / "arrays", {"images": IMAGES, "labels": LABELS})
    os.mkfifo(folder / "pipe.npy")
    (folder / "folder.npy").mkdir()
    with pytest.raises(InputError) as error:
        NpyArrays.at(folder, NAMES._replace(label=name))
    assert error.value.problems == (f"--label {name}: {words}",)


def test_texts_of_impossible_characters_are_keys_that_cannot_be_read(tmp_path: Path) -> None:
    keys = np.full(6, 0x110000, np.uint32).view("U1")
    source = NpyArrays.at(
        npy(tmp_path / "arrays", {"images": IMAGES, "labels": LABELS, "keys": keys}), NAMES._replace(key="keys")
    )
    with pytest.raises(InputError, match="has keys that cannot be read\n  --key keys: has texts with numbers"):
        list(source.rows())


@pytest.mark.parametrize("write", [npy, hdf5])
def test_arrays_without_rows_are_bad_input(tmp_path: Path, write: Callable[[Path, Arrays], Path]) -> None:
    source = write(tmp_path / "arrays", {"images": IMAGES[:0], "labels": LABELS[:0]})
    assert "the source has no rows" in errors_of(1, "build", "--from", source, *OPTIONS, tmp_path / "out")
