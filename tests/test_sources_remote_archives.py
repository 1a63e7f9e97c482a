"""Tars and tables below URLs: the pack is that of the same files on this machine, and few requests bring it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from conftest import RawFolder, errors_of, good, pack, pack_from, run
from drills.published import same
from faulty_proxy import BUSY, ERROR, times
from store_servers import credentials, new_url, proxy, upload
from stored_scenes import (
    scenes_of,
    tar_of,
    write_hdf5,
    write_hugging_face,
    write_npy,
    write_parquet,
    write_recordio,
    write_tar,
    write_tfrecord,
)

from packer import build_pack
from packer.errors import BusyError
from packer.recipe.plan_folder import PlanFolder
from packer.recipe.source import Source
from packer.sources.archives.archive import ArchiveSource
from packer.sources.archives.files_in_store import FilesInStore
from packer.sources.container import Names
from packer.sources.containers import container_of
from packer.sources.reopen import reopen
from readers.stores.object_store import ObjectStore
from readers.stores.open_store import open_store

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


def test_a_list_of_small_members_is_a_few_requests(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    noise = np.random.default_rng(0)
    files = {f"{number:04}.{end}": noise.bytes(20_000) for number in range(250) for end in ("jpg", "png")}
    (tmp_path / "raw/train.tar").write_bytes(tar_of(files))
    url = uploaded(tmp_path / "raw")
    with proxy(SERVER).doing(lambda request: None) as network:
        source = opened(url)
        refs = list(source.rows())
        indexed = len(network.requests)
        assert len(list(source.heads(refs))) == 250
        with_heads = len(network.requests)
        source.expect(refs)
        rows = [source.load(ref) for ref in refs]
    assert [row.data for row in rows] == [(files[f"{n:04}.jpg"], files[f"{n:04}.png"]) for n in range(250)]
    assert indexed < 12
    assert with_heads - indexed < 12
    assert len(network.requests) - with_heads < 12


@pytest.mark.parametrize("name", KINDS)
def test_a_file_that_changed_after_the_plan_is_refused(name: str, tmp_path: Path) -> None:
    make, (_, *key) = KINDS[name][0], KINDS[name][1] or ("", None)
    url = uploaded(make(tmp_path / "raw"))
    planned = opened(url, None, None, *key)
    refs = list(planned.rows())
    worker = reopen(planned.to_text())
    assert worker.load(refs[0]).bad is None
    assert (worker.states(refs) == planned.states(refs)).all()
    store = open_store(url)
    for entry in list(store.list("")):
        store.put(entry.name, store.read(entry.name)[0] + b"more")
    for source in (worker, reopen(planned.to_text())):
        row = source.load(refs[-1])
        assert row.is_lost
        assert "was changed after the build was planned; build again" in str(row.bad)
    changed = opened(url, None, None, *key)
    assert (changed.states(refs) != planned.states(refs)).any(1).all()
    store.delete([entry.name for entry in store.list("")])
    gone = reopen(planned.to_text()).load(refs[0])
    assert gone.is_lost
    assert "is not in the store any more" in str(gone.bad)


def test_a_changed_tar_is_packed_again_and_the_others_are_not_read(tmp_path: Path) -> None:
    raw, out = tars(tmp_path / "raw"), tmp_path / "out"
    url = uploaded(raw)
    pack_from(Path(url), out, *OPTIONS)
    write_tar(raw / "val-0.tar", scenes(300, 4))
    open_store(url).put("val-0.tar", (raw / "val-0.tar").read_bytes())
    with mock.patch.object(ArchiveSource, "load", autospec=True, side_effect=ArchiveSource.load) as load:
        pack_from(Path(url), out, *OPTIONS)
    assert {call.args[1].parts[0].partition("@")[0] for call in load.call_args_list} <= {"val-0.tar", "val-1.tar"}
    assert same(out, pack_from(raw, tmp_path / "local", *OPTIONS))


def test_a_missing_object_and_an_unknown_file_are_named(tmp_path: Path) -> None:
    url = uploaded(tars(tmp_path / "raw"))
    errors = errors_of(1, "build", "--from", f"{url}/train-{{0..2}}.tar", tmp_path / "out")
    assert f"1 of its files are missing\n  {url}/train-2.tar: there is no such object" in errors
    assert "there is no such object" in errors_of(1, "build", "--from", f"{url}/none", tmp_path / "out")
    assert "all of its files are missing" in errors_of(1, "build", "--from", f"{url}/*.zip", tmp_path / "out")
    open_store(url).put("notes.xyz", b"x" * 600)
    assert "is a file of an unknown kind" in errors_of(1, "build", "--from", f"{url}/notes.xyz", tmp_path / "out")


def test_keys_in_a_url_are_refused_and_not_shown(tmp_path: Path) -> None:
    for url in ("s3://me:hush@bucket/x.tar", "s3://bucket/x.tar?hush", "s3://me:hush@bucket/x{0..9999999}.tar"):
        result = run("build", "--from", url, tmp_path / "out")
        assert result.exit_code != 0
        assert "has a user, a key or options" in result.stderr
        assert "hush" not in result.stderr


def arrays(folder: Path) -> Path:
    write_npy(folder, scenes(0, 3))
    return folder


def volumes(folder: Path) -> Path:
    folder.mkdir()
    (folder / "scan.nii.gz").write_bytes(b"x")
    return folder


def zarr(folder: Path) -> Path:
    (folder / "images").mkdir(parents=True)
    (folder / ".zgroup").write_text("{}")
    return folder


def saved(folder: Path) -> Path:
    write_hugging_face(folder, scenes(0, 6))
    return folder


def hdf5(folder: Path) -> Path:
    folder.mkdir()
    write_hdf5(folder / "cells.h5", scenes(0, 5))
    return folder


@pytest.mark.parametrize(
    ("make", "name", "kind"),
    [
        (arrays, "", "npy"),
        (arrays, "/images.npy", "npy"),
        (volumes, "", "nifti"),
        (zarr, "", "zarr"),
        (saved, "", "hugging-face"),
        (hdf5, "/cells.h5", "hdf5"),
    ],
)
def test_kinds_that_need_a_disk_are_refused_by_name(
    make: Callable[[Path], Path], name: str, kind: str, tmp_path: Path
) -> None:
    url = uploaded(make(tmp_path / "raw")) + name
    errors = errors_of(1, "build", "--from", url, tmp_path / "out")
    assert f"{url}: holds rows of the kind {kind}, which are read from a disk alone; copy it" in errors


def test_a_pack_below_a_url_is_refused_and_raw_files_are_read(tmp_path: Path, raw_folder: RawFolder) -> None:
    out = pack(raw_folder.path, tmp_path / "local")
    errors = errors_of(1, "build", "--from", uploaded(out), tmp_path / "out")
    assert "is a pack; to pack its rows again, copy it first: packer pull s3://" in errors
    assert same(out, pack_from(Path(uploaded(raw_folder.path)), tmp_path / "remote"))


def test_python_knows_archives_by_the_text_of_a_url(tmp_path: Path) -> None:
    raw, url = tars(tmp_path / "raw"), uploaded(tmp_path / "raw")
    for number, path in enumerate((str(raw / "train-0.tar"), f"{url}/train-0.tar")):
        build_pack(path, tmp_path / str(number), labels="index", classes=4)
    assert same(tmp_path / "0", tmp_path / "1")


def test_a_plan_in_parts_names_the_url_and_another_one_can_be_read(tmp_path: Path) -> None:
    raw, plan, out = tars(tmp_path / "raw"), tmp_path / "plan", tmp_path / "out"
    first, second = uploaded(raw), uploaded(raw)
    good("plan", *OPTIONS, "--from", f"{first}/train-{{0..1}}.tar", plan)
    assert PlanFolder.open(plan).facts.raw == f"{first}/train-{{0..1}}.tar"
    for part, options in (("1/2", ()), ("2/2", ("--raw", f"{second}/train-{{0..1}}.tar"))):
        good("build-part", "--plan", plan, "--part", part, *options, out)
    good("commit", "--plan", plan, out)
    local = pack_from(raw / "train-{0..1}.tar", tmp_path / "local", *OPTIONS)
    assert {path.name: path.read_bytes() for path in (out / "shards").iterdir()} == {
        path.name: path.read_bytes() for path in (local / "shards").iterdir()
    }
    moved = errors_of(2, "build-part", "--plan", plan, "--part", "1/1", "--raw", f"{second}/other.tar", tmp_path / "x")
    assert "must keep that name" in moved


@pytest.mark.parametrize("name", ["tars", "tables"])
def test_a_store_that_does_not_answer_ends_the_build_and_rejects_no_row(name: str, tmp_path: Path) -> None:
    url = uploaded(KINDS[name][0](tmp_path / "raw"))
    with proxy(SERVER).doing(times(3, ERROR, "GET", "train-0")):
        pack_from(Path(url), tmp_path / "out", *OPTIONS)
    source = opened(url)
    refs = list(source.rows())
    patched = mock.patch.object(FilesInStore, "store", ObjectStore(url, {"max_retries": 1}))
    impatient = mock.patch("readers.stores.waiting.RETRY_SECONDS", 0.0)
    for expected in ([], refs):
        worker = reopen(source.to_text())
        with patched, impatient, proxy(SERVER).doing(times(999, BUSY)):
            worker.expect(expected)
            with pytest.raises(BusyError, match=url):
                worker.load(refs[0])
