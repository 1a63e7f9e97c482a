"""Tars and tables below URLs: the pack is that of the same files on this machine, and few requests bring it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from conftest import pack_from, run
from drills.published import same
from store_servers import credentials, new_url, proxy, upload
from stored_scenes import scenes_of, write_parquet, write_recordio, write_tar, write_tfrecord

from packer.recipe.source import Source
from packer.sources.container import Names
from packer.sources.containers import container_of

SERVER = "ministack"
OPTIONS = ("--labels", "index", "--classes", 4, "--shard-size", "9KB")
pytestmark = pytest.mark.usefixtures("in_process")


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    with mock.patch.dict(os.environ, credentials(proxy(SERVER).url)):
        yield


def uploaded(folder: Path) -> str:
    """Return the URL of a copy of a folder."""
    url = new_url()
    upload(folder, url)
    return url


def opened(url: str, *names: str | None) -> Source:
    """Return the source that --from opens."""
    container = container_of(Path(url))
    assert container is not None
    return container.at(Path(url), Names(*names))


def scenes(first: int, count: int) -> Any:
    return scenes_of({f"scan {number:03}": number for number in range(first, first + count)})


def tars(folder: Path) -> Path:
    folder.mkdir()
    for number, split in enumerate(("train", "val")):
        for part in range(2):
            write_tar(folder / f"{split}-{part}.tar", scenes(100 * number + 10 * part, 5))
    return folder


def tables(folder: Path) -> Path:
    folder.mkdir()
    write_parquet(folder / "train-0.parquet", scenes(0, 12))
    write_parquet(folder / "val-0.parquet", scenes(20, 5))
    return folder


def pairs_of_records(folder: Path) -> Path:
    write_recordio(folder, scenes(0, 6))
    return folder


def records(folder: Path) -> Path:
    folder.mkdir()
    write_tfrecord(folder / "train.tfrecord", scenes(0, 6))
    return folder


KINDS = {
    "tars": (tars, ()),
    "tables": (tables, ()),
    "tables with keys": (tables, ("--key", "name")),
    "records": (records, ("--key", "name")),
    "pairs of records": (pairs_of_records, ()),
}


@pytest.mark.parametrize("name", KINDS)
def test_the_pack_is_that_of_the_same_files_on_this_machine(name: str, tmp_path: Path) -> None:
    make, options = KINDS[name]
    url = uploaded(make(tmp_path / "raw"))
    local = pack_from(tmp_path / "raw", tmp_path / "local", *OPTIONS, *options)
    remote = pack_from(Path(url), tmp_path / "remote", *OPTIONS, *options)
    assert same(local, remote)
    assert f'from = "{url}"' in (remote / "packer.toml").read_text()
    before = (remote / "manifest.json").read_bytes()
    with proxy(SERVER).doing(lambda request: None) as network:
        pack_from(Path(url), remote, *OPTIONS, *options)
    assert (remote / "manifest.json").read_bytes() == before
    assert len(network.requests) <= 24, "listings, and the places of the rows"
    assert run("diff", url, remote).exit_code == 0
    next((remote / "shards").glob("*.image.npy")).write_bytes(b"damaged")
    assert run("repair", remote).exit_code == 0
    assert same(local, remote)


@pytest.mark.parametrize("pattern", ["train-{0..1}.tar", "train-0.tar", "*-1.tar", "{train,val}-[0].tar"])
def test_patterns_name_the_objects_that_they_name_in_a_folder(pattern: str, tmp_path: Path) -> None:
    raw, url = tars(tmp_path / "raw"), uploaded(tmp_path / "raw")
    assert same(
        pack_from(raw / pattern, tmp_path / "local", *OPTIONS),
        pack_from(Path(f"{url}/{pattern}"), tmp_path / "remote", *OPTIONS),
    )
