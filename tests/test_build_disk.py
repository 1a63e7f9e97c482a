"""A disk that fills up, and other things in the way of writing: an error of ours, and nothing is published."""

from __future__ import annotations

import re
import resource
from pathlib import Path

import pytest
from conftest import HANG, errors_of, make_raw, pack, python, run

from readers.contract.manifest import STORAGES


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_file_that_cannot_be_written_is_an_error_and_leaves_the_old_generation(
    storage: str, workers: str, tmp_path: Path
) -> None:
    """A limit on the size of files stands for a full disk: the write fails half-way."""
    raw = make_raw(tmp_path / "raw", {"train": 2})
    out = pack(raw.path, tmp_path / "out", "--format", storage)
    before = (out / "manifest.json").read_bytes()
    make_raw(tmp_path / "raw", {"train": 60})
    command = ["build", "--quiet", "--format", storage, "--workers", workers, "--shard-size", "60KB"]
    done = python(
        "-m",
        "packer",
        *command,
        raw.path,
        out,
        code=1,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (24_000, resource.RLIM_INFINITY)),
        timeout=HANG,
    )
    message = r"the shard train-\w+ of about [0-9,]+ bytes cannot be written \(.*File too large"
    assert re.search(message, done.stderr, re.IGNORECASE), done.stderr
    assert "Traceback" not in done.stderr
    assert (out / "manifest.json").read_bytes() == before
    assert not list(out.glob("shards/.partial-*"))
    assert run("verify", out).exit_code == 0


def test_names_and_places_that_cannot_be_are_one_line(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 1})
    for arguments in ((raw.path, tmp_path / ("x" * 300)), (tmp_path / ("x" * 300), tmp_path / "out")):
        errors = errors_of(1, "build", *arguments)
        assert "File name too long" in errors
        assert errors.count("\n") <= 2


def test_a_size_beyond_reason_is_refused(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 1})
    assert "over the limit" in errors_of(2, "build", "--size", "99999x99999", raw.path, tmp_path / "out")
