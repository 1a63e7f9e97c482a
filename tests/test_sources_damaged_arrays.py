"""Damaged HDF5 files: planning refuses them in words, whatever libhdf5 does. Their process ends, and no other."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from conftest import HANG, errors_of
from drills.damaged_arrays import IMAGES, KINDS, LABELS, REFUSED, drill

from packer.errors import InputError
from packer.sources import library_process
from packer.sources.arrays.hdf5_arrays import Hdf5Arrays
from packer.sources.container import Names

NAMES = Names("images", "labels", "keys")


@pytest.fixture
def cells(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "cells.h5", "w") as file:
        file["images"], file["keys"] = IMAGES, np.array(list("abcdef"), object)
        file.create_dataset("labels", data=LABELS, chunks=(2, 10, 14), compression="gzip")
    return tmp_path / "cells.h5"


@pytest.mark.parametrize("kind", KINDS)
def test_damage_anywhere_has_words_of_ours(tmp_path: Path, kind: str, pytestconfig: pytest.Config) -> None:
    """The short form of drills.damaged_arrays."""
    tally = drill(kind, 0, 2000 if pytestconfig.getoption("long") else 300, tmp_path)
    assert tally.broken == []
    assert tally.counts[REFUSED] > 50


class Crashing(Hdf5Arrays):
    """Its library does at an array what a damaged file may make it do."""

    def stack(self, name: str) -> Any:
        if name == "labels":
            ENDS[self.path.name](self)
        return super().stack(name)


def crash(source: Hdf5Arrays) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def hang(source: Hdf5Arrays) -> None:
    end = time.monotonic() + HANG
    while time.monotonic() < end:
        pass


def end(source: Hdf5Arrays) -> None:
    os._exit(7)


def kill(source: Hdf5Arrays) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def half_a_line(source: Hdf5Arrays) -> None:
    os.write(1, b'["--lab')
    os._exit(1)


ENDS: dict[str, Callable[[Hdf5Arrays], None]] = {each.__name__: each for each in (crash, hang, end, kill, half_a_line)}
WORDS = {
    "crash": "crashed the process that read it (SIGSEGV); the file is damaged",
    "hang": "kept the process that read it busy for 1 s of CPU time; the file is damaged",
    "end": "ended the process that read it (exit code 7)",
    "kill": "had the process that read it killed (SIGKILL), perhaps for want of memory",
    "half_a_line": "ended the process that read it (exit code 1)",
}


@pytest.mark.parametrize("name", WORDS)
def test_a_library_that_crashes_or_hangs_is_named_with_its_data_set(
    cells: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library_process, "CPU_SECONDS", 1)
    with pytest.raises(InputError) as error:
        Crashing.at(cells.rename(cells.with_name(name)), NAMES)
    assert error.value.problems == (f"--label labels: {WORDS[name]}",)


class CrashingKeys(Hdf5Arrays):
    """Its library crashes where it reads keys."""

    def read_keys(self) -> Iterator[list[str]]:
        yield ["a"]
        os.kill(os.getpid(), signal.SIGSEGV)


def test_a_library_that_crashes_at_keys_is_named(cells: Path) -> None:
    with pytest.raises(InputError, match="has keys that cannot be read") as error:
        list(CrashingKeys.at(cells, NAMES).rows())
    assert error.value.problems == (f"--key keys: {WORDS['crash']}",)


def test_planning_does_not_open_the_file_with_libhdf5(cells: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(h5py, "File", None)
    source = Hdf5Arrays.at(cells, NAMES)
    assert [ref.key for ref in source.rows()] == list("abcdef")
    assert list(source.identities(list(source.rows()))) == [None] * 6


def test_a_row_whose_data_set_cannot_be_opened_is_bad(cells: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Hdf5Arrays.at(cells, NAMES)
    (ref, *_) = source.rows()
    for error in (KeyError("bad symbol table node"), RuntimeError("unable to get info"), OSError(5, "Input error")):
        with monkeypatch.context() as patch:
            patch.setattr(h5py, "File", raising(error))
            assert str(source.load(ref).bad).startswith("labels[0]: cannot be read")
    assert source.load(ref).bad is None


def raising(error: Exception) -> Callable[..., Any]:
    def function(*arguments: object, **options: object) -> Any:
        raise error

    return function


def test_a_damaged_file_is_bad_input(cells: Path, tmp_path: Path) -> None:
    data = bytearray(cells.read_bytes())
    at = data.index(b"HEAP")
    data[at : at + 4] = b"PAEH"
    cells.write_bytes(data)
    names = ("--image", "images", "--label", "labels", "--classes", "3")
    errors = errors_of(1, "build", "--from", cells, *names, tmp_path / "out")
    assert f"{cells}: holds no arrays that can be listed" in errors
    assert "--label labels: cannot be read: " in errors


def test_another_file_is_not_even_looked_at(cells: Path, tmp_path: Path) -> None:
    """An external link may lead to a pipe, and whoever opens that waits for ever."""
    os.mkfifo(tmp_path / "pipe")
    with h5py.File(cells, "a") as file:
        file["outside"], file["soft"] = h5py.ExternalLink("pipe", "/labels"), h5py.SoftLink("/nowhere")
        file["through"] = h5py.SoftLink("/outside/labels")
    for name, path in (("outside", "/labels"), ("soft", "/nowhere"), ("through", "/outside/labels")):
        with pytest.raises(InputError) as error:
            Hdf5Arrays.at(cells, NAMES._replace(label=name))
        assert error.value.problems == (f"--label {name}: is a link to {path}; name the data set itself",)


def test_more_rows_than_the_file_can_have_are_refused(cells: Path) -> None:
    with h5py.File(cells, "a") as file:
        file.create_dataset("endless", (1 << 40, 10, 14), "u1", chunks=(1, 10, 14))
    with pytest.raises(InputError, match=r"--image endless: claims 1099511627776 rows; the file has \d+ bytes"):
        Hdf5Arrays.at(cells, NAMES._replace(image="endless"))


def test_a_data_set_beyond_the_end_of_the_file_is_refused(cells: Path, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "long.h5", "w") as file:
        file["labels"], file["images"] = LABELS, IMAGES
    whole = (tmp_path / "long.h5").read_bytes()
    at = whole.index(IMAGES.nbytes.to_bytes(8, "little")) - 8  # the position of the numbers, before their length
    (tmp_path / "long.h5").write_bytes(whole[:at] + (len(whole) - 8).to_bytes(8, "little") + whole[at + 8 :])
    with pytest.raises(InputError, match="--image images: cannot be read: "):
        Hdf5Arrays.at(tmp_path / "long.h5", NAMES._replace(key=None))
