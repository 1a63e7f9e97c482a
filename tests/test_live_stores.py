"""A live pack of raw files in a bucket is the pack of the same files on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from conftest import make_raw, without_workers
from store_servers import credentials, new_url, proxy, upload
from stored_scenes import scenes_of, write_tar
from test_live import rows_of, tree, wait_until_published

from packer import build_pack
from readers import Window, open_dataset
from readers.contract.manifest import Manifest

SERVER = "ministack"


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    with mock.patch.dict(os.environ, credentials(proxy(SERVER).url)):
        yield


def folder_of_pairs(raw: Path) -> str:
    make_raw(raw, {"train": 20})
    return ""


def tars(raw: Path) -> str:
    raw.mkdir()
    for part in range(3):
        write_tar(raw / f"train-{part}.tar", scenes_of({f"{part}{number:02}": number for number in range(6)}))
    return "/train-{0..2}.tar"


@pytest.mark.parametrize("write", [folder_of_pairs, tars])
def test_a_live_pack_of_raw_files_in_a_bucket(write: Callable[[Path], str], tmp_path: Path) -> None:
    raw, built, url = tmp_path / "raw", tmp_path / "built", new_url()
    files = write(raw)
    upload(raw, url)
    options: Any = {"shard_size": "8KiB"} | ({"classes": 4} if files else {})
    with without_workers():
        build_pack(f"{raw}{files}", built, **options)
    train = open_dataset(f"{url}{files}", pack=tmp_path / "live", workers=2, **options)
    first = rows_of(train.loader(4, shuffle=Window(3, 2), output="numpy"))
    assert wait_until_published(tmp_path / "live").same_data(Manifest.load(built))
    assert tree(tmp_path / "live") == tree(built)
    assert first == rows_of(open_dataset(built).loader(4, shuffle=Window(3, 2), output="numpy"))
