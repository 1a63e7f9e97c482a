"""Files of `torch.save` made to take memory or time without end, or to be read wrong, are refused in words."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from pickle import dumps
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
import torch

from packer.errors import InputError
from packer.sources.arrays import torch_pickle, torch_tensors
from packer.sources.arrays.stacked import MOST_LISTED
from packer.sources.arrays.torch_pickle import tensors_in
from packer.sources.arrays.torch_tensors import TorchTensors
from packer.sources.container import Names

IMAGES = torch.arange(6 * 10 * 14 * 3, dtype=torch.uint8).reshape(6, 10, 14, 3)
LABELS = IMAGES[..., 0].contiguous() % 3
NAMES = Names("images", "labels")
NUMBERS = {"images": IMAGES, "labels": LABELS}
GLOBAL, REDUCE, STOP = "c{}\n{}\n", b"R", b"."


def saved(path: Path, value: Any) -> Path:
    torch.save(value, path)
    return path


def zipped(path: Path, pickle: bytes, **members: bytes) -> Path:
    with ZipFile(path, "w") as file:
        file.writestr("a/data.pkl", pickle)
        for name, content in members.items():
            file.writestr(f"a/data/{name}", content)
    return path


def refused(path: Path, names: Names = NAMES) -> list[str]:
    with pytest.raises(InputError) as error:
        TorchTensors.at(path, names)
    return [str(error.value).partition("\n")[0], *error.value.problems]


def called(module: str, name: str, arguments: bytes) -> bytes:
    """Return the operations that call a function."""
    return GLOBAL.format(module, name).encode() + arguments + REDUCE


# What the files of PyTorch may hold


@pytest.mark.skipif(torch.__version__.startswith("2.3."), reason="PyTorch 2.3 cannot save uint16")
def test_tensors_of_models_and_unsigned_numbers_are_read(tmp_path: Path) -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.images = torch.nn.Parameter(IMAGES.float())
            self.register_buffer("labels", LABELS.to(torch.uint16))

    others = {"device": torch.device("cpu"), "size": torch.Size([2]), "text": b"\xff", "set": {1}, "few": {(1, 2): 3}}
    path = saved(tmp_path / "model.pt", {"state": Model().state_dict(), "big": 1 << 40, **others})
    source = TorchTensors.at(path, Names("state/images", "state/labels"))
    for number, ref in enumerate(source.rows()):
        image, label = source.load(ref).data
        assert np.array_equal(image, IMAGES[number].float().numpy())
        assert np.array_equal(label, LABELS[number].numpy())


def test_tensors_are_found_without_pytorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "rows.pt", NUMBERS)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert len(list(TorchTensors.at(path, NAMES).rows())) == 6


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_of_pickle_is_read(protocol: int) -> None:
    value = {"a": [1, 2.5, "text", None, True, 1 << 70], "b": {"c": (), "d": (1, 2, 3, 4)}, "long": "x" * 300}
    assert tensors_in(dumps(value, protocol)) == value


def test_a_negative_view_is_refused(tmp_path: Path) -> None:
    """Its numbers in the file are the opposites of its values."""
    view = torch.complex(LABELS.double(), LABELS.double()).conj().imag
    packed = torch.zeros_like(view)._neg_view()
    assert packed.is_neg()
    path = saved(tmp_path / "rows.pt", {"images": IMAGES, "labels": packed})
    assert "is a view whose rows do not lie one after the other" in refused(path)[-1]


# Containers that hold themselves, or others many times


def test_a_dictionary_that_holds_itself_is_listed_once(tmp_path: Path) -> None:
    loop: dict[str, Any] = {"images": IMAGES}
    loop["again"], loop["list"] = loop, [loop]
    path = saved(tmp_path / "loop.pt", loop)
    assert refused(path)[0].endswith("holds images (6, 10, 14, 3) uint8; list")
    assert "labels: there is no such tensor" in refused(path)[-1]


@pytest.mark.parametrize("kind", ["dict", "tuple"])
def test_sharing_does_not_multiply_names(tmp_path: Path, kind: str) -> None:
    shared: Any = {}
    for _ in range(60):
        shared = {"a": shared, "b": shared} if kind == "dict" else (shared, shared)
    assert "there is no such tensor" in refused(saved(tmp_path / "shared.pt", {"images": IMAGES, "deep": shared}))[-1]


def test_shared_tuples_are_never_hashed_or_printed() -> None:
    """Python hashes a tuple of tuples as often as it is held: 2**100 times here."""
    shared = b"(t" + b"q\0h\0\x86" * 100
    assert tensors_in(b"\x80\x02}" + shared + b"K\1s.") == {}
    with pytest.raises(ValueError, match="is damaged: it was not pickled by"):
        tensors_in(b"\x80\x02" + shared + b"K\1a.")


def test_only_the_first_names_are_listed(tmp_path: Path) -> None:
    many = {f"tensor{number}" * 100: torch.zeros(1) for number in range(100)}
    first = refused(saved(tmp_path / "many.pt", many))[0]
    assert first.endswith("; and others")
    assert first.count("; ") == MOST_LISTED
    assert len(first) < MOST_LISTED * 300


def test_deep_lists_end(tmp_path: Path) -> None:
    depth = 100_000
    path = zipped(tmp_path / "deep.pt", b"\x80\x02" + b"]" * depth + b"a" * (depth - 1) + STOP)
    assert "there is no such tensor" in refused(path)[-1]


# Memory


@pytest.mark.parametrize(
    "operations",
    [
        called("__builtin__", "bytearray", b"\x8a\x06\0\0\0\0\0\1\x85"),
        called("torch._utils", "_rebuild_qtensor", b"\x8a\x06\0\0\0\0\0\1\x85"),
        b"X\1\0\0\0a" + b"".join(b"q\0" + called("_codecs", "encode", b"h\0X\3\0\0\0hex\x86") for _ in range(60)),
        b"K\1r\xff\xff\xff\xff",
    ],
)
def test_what_a_file_calls_takes_no_memory(tmp_path: Path, operations: bytes) -> None:
    """A terabyte of zeros, a tensor of it, a text of 2**60 characters, a memo of 2**32 places."""
    path = zipped(tmp_path / "bomb.pt", b"\x80\x02" + operations + STOP)
    assert "there is no such tensor" in refused(path)[-1]


@pytest.mark.parametrize("function", ["torch Tensor", "os system", "builtins eval", "torch._utils_evil _rebuild_x"])
def test_other_functions_are_named_and_not_called(tmp_path: Path, function: str) -> None:
    module, name = function.split()
    path = zipped(tmp_path / "call.pt", b"\x80\x02" + called(module, name, b"K\1\x85") + STOP)
    assert f"holds objects besides tensors, which are never built ({function})" in refused(path)[-1]


def test_operations_and_members_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "rows.pt", NUMBERS)
    with monkeypatch.context() as patch:
        patch.setattr(torch_pickle, "MOST_OPERATIONS", 20)
        assert "has more than 20 pickled operations; save fewer tensors" in refused(path)[-1]
    with monkeypatch.context() as patch:
        patch.setattr(torch_tensors, "MOST_PICKLE", 200)
        assert "bytes in rows/data.pkl; 200 are read at most" in refused(path)[-1]
    monkeypatch.setattr(torch_tensors._Bounded, "most", 100)
    assert "bytes of names of members" in refused(path)[-1]


def test_one_long_key_costs_its_own_bytes(tmp_path: Path) -> None:
    keys = ["x" * 1_000_000, *(str(number) for number in range(20_000))]
    text = {"images": torch.zeros(20_001, 1, 1), "labels": torch.zeros(20_001, 1, 1, dtype=torch.uint8), "keys": keys}
    source = TorchTensors.at(saved(tmp_path / "keys.pt", text), Names("images", "labels", "keys"))
    assert sum(len(ref.key) for ref in source.rows()) == sum(map(len, keys))


# Sizes


def tensor(shape: bytes, strides: bytes, member: bytes = b"0", offset: bytes = b"K\0") -> bytes:
    """Return a pickle of a dictionary with one tensor of bytes, `images`, and its labels."""
    storage = b"(X\7\0\0\0storagectorch\nByteStorage\nX" + len(member).to_bytes(4, "little") + member
    storage += b"X\3\0\0\0cpuM\xe8\3tQ"
    numbers = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + offset + shape + strides + b"\x89}tR"
    return b"\x80\x02}X\6\0\0\0images" + numbers + b"s."


@pytest.mark.parametrize(
    ("pickle", "message"),
    [
        (tensor(b"K\5K\2K\2\x87", b"K\4K\2K\1\x87"), "has 12 bytes, and its shape needs 20"),
        (tensor(b"K\1K\2K\2\x87", b"K\4K\2K\1\x87", offset=b"K\x09"), "has 12 bytes, and its shape needs 13"),
        (tensor(b"K\1K\2K\2\x87", b"K\4K\2K\1\x87", b"7"), "has 0 bytes, and its shape needs 4"),
        (tensor(b"K\1K\2K\2\x87", b"K\4K\2K\1\x87", b"../0"), "has 0 bytes, and its shape needs 4"),
        (tensor(b"K\3K\2K\2\x87", b"K\0K\2K\1\x87"), "is a view whose rows do not lie one after the other"),
        (tensor(b"K\3K\2K\2\x87", b"K\4K\2\x86"), "is damaged: it was not pickled by torch.save"),
        (tensor(b"J\xff\xff\xff\xffK\2K\2\x87", b"K\4K\2K\1\x87"), "is damaged: it was not pickled by torch.save"),
        (tensor(b"(" + b"K\1" * 65 + b"t", b"(" + b"K\1" * 65 + b"t"), "is damaged: it was not pickled by"),
        (tensor(b"\x8a\x09\0\0\0\0\0\0\0\0\1K\2K\2\x87", b"K\4K\2K\1\x87"), "is damaged: it was not pickled by"),
    ],
)
def test_a_tensor_has_all_its_numbers_in_its_own_member(tmp_path: Path, pickle: bytes, message: str) -> None:
    """Before, a shape might reach into the numbers of the next tensor."""
    path = zipped(tmp_path / "sizes.pt", pickle, **{"0": bytes(12), "1": bytes(1000)})
    assert message in refused(path)[1]


def test_damaged_files_are_refused_or_read(tmp_path: Path) -> None:
    """Any byte may be wrong; those of the numbers cannot be found by anybody."""
    rows = {"images": IMAGES[:2, :1].contiguous(), "labels": LABELS[:2, :1].contiguous()}
    whole = saved(tmp_path / "rows.pt", rows).read_bytes()
    dice, path = random.Random(5), tmp_path / "damaged.pt"
    reasons, read = set[str](), 0
    for _ in range(2000):
        data = bytearray(whole)
        for _ in range(dice.randint(1, 3)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        path.write_bytes(data[: dice.choice([len(data), dice.randrange(len(data))])])
        try:
            source = TorchTensors.at(path, NAMES)
            assert all(source.load(ref).bad is None for ref in source.rows())
            read += 1
        except InputError as error:
            reasons.update(problem.partition(": ")[2][:20] for problem in error.problems)
    assert len(reasons) > 3
    assert read > 100
