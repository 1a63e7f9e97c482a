"""Files that go past the kernel's cache: whole, hashed, and as ever where a file system has no such way."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from blake3 import blake3
from conftest import HANG

from packer.publish import direct_file as direct
from packer.publish.direct_file import BLOCK, BUFFER, DirectFile


def write(path: Path, parts: Iterable[bytes]) -> DirectFile:
    with DirectFile(path) as file:
        for part in parts:
            file.write(part)
    return file


@pytest.mark.parametrize(
    "sizes", [(), (0,), (1,), (BLOCK,), (BLOCK + 1,), (128, BUFFER), (BUFFER, 1), (7, 3 * BUFFER + 5, 9)]
)
def test_any_bytes_in_any_parts_are_written_and_hashed(sizes: tuple[int, ...], tmp_path: Path) -> None:
    dice = np.random.default_rng(sum(sizes))
    parts = [dice.bytes(size) for size in sizes]
    file = write(tmp_path / "file", parts)
    whole = b"".join(parts)
    assert (tmp_path / "file").read_bytes() == whole
    assert file.size == len(whole)
    assert file.digest == blake3(whole).hexdigest()


@pytest.mark.parametrize("size", [0, 1, BLOCK + 1, BUFFER, 2 * BUFFER + 7])
@pytest.mark.parametrize("most", [1000, BUFFER, 4 * BUFFER])
def test_what_is_read_into_its_memory_is_written_and_hashed(size: int, most: int, tmp_path: Path) -> None:
    whole = np.random.default_rng(size).bytes(size)
    source = io.BytesIO(whole)
    with DirectFile(tmp_path / "file") as file:
        file.write(b"before")
        while file.fill(lambda memory: source.readinto(memory[:most])):
            pass
        file.write(b"after")
    whole = b"before" + whole + b"after"
    assert (tmp_path / "file").read_bytes() == whole
    assert (file.size, file.digest) == (len(whole), blake3(whole).hexdigest())


def test_arrays_are_bytes_too(tmp_path: Path) -> None:
    array = np.arange(12, dtype="<u2").reshape(3, 4)
    with DirectFile(tmp_path / "file") as file:
        assert file.write(array.data) == 24
    assert (tmp_path / "file").read_bytes() == array.tobytes()


def test_a_file_system_that_refuses_at_the_first_write_is_written_to_as_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    refused: list[int] = []

    def picky(descriptor: int, data: bytes) -> int:
        if not refused:
            refused.append(descriptor)
            raise OSError(22, "Invalid argument")
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", picky)
    monkeypatch.setattr(direct, "_switch_to_cache", lambda descriptor: True)
    write(tmp_path / "file", [b"abc"])
    assert refused
    assert (tmp_path / "file").read_bytes() == b"abc"


def test_a_file_system_that_refuses_to_open_so_is_opened_as_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def picky(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & direct._DIRECT:
            raise OSError(22, "Invalid argument")
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", picky)
    write(tmp_path / "file", [b"abc"])
    assert (tmp_path / "file").read_bytes() == b"abc"


def test_an_error_of_the_disk_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    for size in (3, BUFFER, 3 * BUFFER, 5 * BUFFER + 1):
        with pytest.raises(OSError, match="No space left"):
            write(tmp_path / "file", [bytes(size)])


def test_one_buffer_is_filled_while_the_other_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk waits for the next bytes here, so with one buffer this would wait for ever."""
    real, next_bytes, before = os.write, threading.Event(), threading.active_count()

    def slow(descriptor: int, data: bytes) -> int:
        assert next_bytes.wait(HANG)
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", slow)
    with DirectFile(tmp_path / "file") as file:
        file.write(bytes(BUFFER))
        file.write(b"more")
        next_bytes.set()
    assert (tmp_path / "file").read_bytes() == bytes(BUFFER) + b"more"
    assert threading.active_count() <= before


def test_an_error_elsewhere_ends_the_thread(tmp_path: Path) -> None:
    def parts() -> Iterator[bytes]:
        yield bytes(3 * BUFFER)
        raise ZeroDivisionError

    before = threading.active_count()
    with pytest.raises(ZeroDivisionError):
        write(tmp_path / "file", parts())
    assert threading.active_count() <= before
