"""Raw files in a bucket: the pack is that of a folder with the same files."""

from __future__ import annotations

import gc
import os
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from conftest import HANG, NAMES, SMALL_SHARDS, RawFolder, ended, errors_of, good, make_raw, pack, python, run
from drills.published import same
from faulty_proxy import BUSY, ERROR, times
from store_servers import credentials, new_url, proxy, upload

import packer.workers.run
from packer.errors import BusyError
from packer.plan.make_plan import make_plan
from packer.plan.request import Request
from packer.plan.write_plan import write_plan
from packer.recipe.row_ref import RowRef
from packer.sources.files import read_ahead
from packer.sources.files.objects import ObjectsSource
from packer.sources.files.ranged_file import BLOCK, MOST_BLOCKS, RangedFile
from packer.sources.files.read_ahead import ObjectsAhead
from packer.sources.portable import moved
from packer.sources.reopen import reopen
from packer.workers.in_process import InProcess
from packer.workers.messages import error_answer, read_fingerprint
from readers.contract.atomic import PARTIAL, partial_path
from readers.contract.manifest import Manifest
from readers.stores.object_store import ObjectStore
from readers.stores.open_store import open_store, url_of
from readers.stores.store import Version

SHARDS = ("--labels", "index", *SMALL_SHARDS)


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    with mock.patch.dict(os.environ, credentials(proxy("ministack").url)):
        yield


def uploaded(folder: Path) -> str:
    """Return the URL of a copy of a folder."""
    url = new_url()
    upload(folder, url)
    return url


@pytest.fixture(scope="module")
def bucket(raw_folder: RawFolder) -> str:
    with mock.patch.dict(os.environ, credentials(proxy("ministack").url)):
        return uploaded(raw_folder.path)


def test_the_pack_is_that_of_a_local_folder(raw_folder: RawFolder, bucket: str, tmp_path: Path) -> None:
    pack(raw_folder.path, tmp_path / "local", *SHARDS)
    out = pack(Path(bucket), tmp_path / "out", *SHARDS)
    assert same(tmp_path / "local", out)
    assert f'raw = "{bucket}"' in (out / "packer.toml").read_text()


def test_a_second_build_asks_for_the_listing_and_the_class_table_only(bucket: str, tmp_path: Path) -> None:
    out = pack(Path(bucket), tmp_path / "out", *SHARDS)
    with proxy("ministack").doing(lambda request: None) as network:
        before = (out / "manifest.json").read_bytes()
        pack(Path(bucket), out, *SHARDS)
    assert (out / "manifest.json").read_bytes() == before
    assert [request.is_listing for request in network.requests] == [True, True, False], (
        "the end of a listing is asked for"
    )
    assert network.requests[2].name.endswith("class_dict.csv")


def test_a_first_build_reads_each_file_once_and_its_head_before(
    bucket: str, raw_folder: RawFolder, tmp_path: Path
) -> None:
    with proxy("ministack").doing(lambda request: None) as network:
        pack(Path(bucket), tmp_path / "out", *SHARDS)
    files = 2 * len(raw_folder.images)
    listings = [request for request in network.requests if request.is_listing]
    assert len(listings) == 2, "the names, and whether it was the end"
    assert len(network.requests) <= 1 + 1 + 2 * files + 64, "head, rows, and a sample of 64 labels"


def test_the_rows_of_a_shard_are_read_ahead_in_their_order(bucket: str, raw_folder: RawFolder, tmp_path: Path) -> None:
    expect, expected = ObjectsAhead.expect, list[list[str]]()

    def watching(self: ObjectsAhead, names: Iterable[str]) -> None:
        expected.append(list(names))
        expect(self, expected[-1])

    with mock.patch.object(ObjectsAhead, "expect", watching):
        out = pack(Path(bucket), tmp_path / "out", *SHARDS)
    shards = expected[-Manifest.load(out).shards :]  # the plan has looked at a sample of pairs before
    assert len(set(chain(*shards))) == len(list(chain(*shards))) == 2 * len(raw_folder.images)
    assert all(names[0::2] == sorted(names[0::2]) for names in shards)
    assert all(len(names) == 2 for names in expected[: -len(shards)])


def test_a_changed_object_is_packed_again(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 12})
    url = uploaded(raw.path)
    out = pack(Path(url), tmp_path / "out", *SHARDS)
    other = make_raw(tmp_path / "other", {"train": 13})
    last = "train/images/street_012.png", "train/masks/street_012.png"
    open_store(url).put("train/images/street_003.png", (other.path / last[0]).read_bytes())
    open_store(url).delete(["train/images/street_005.png", "train/masks/street_005.png"])
    pack(Path(url), out, *SHARDS)
    assert same(pack(Path(url), tmp_path / "fresh", *SHARDS), out)


def test_a_probe_proposes_what_it_proposes_for_a_folder(raw_folder: RawFolder, bucket: str) -> None:
    local, remote = run("probe", raw_folder.path), run("probe", bucket)
    assert (local.exit_code, remote.exit_code) == (0, 0)
    assert remote.output == local.output.replace(str(raw_folder.path), bucket)


def test_a_dry_run_and_diff_and_repair_know_the_bucket(bucket: str, tmp_path: Path) -> None:
    assert run("build", "--dry-run", *SHARDS, bucket, tmp_path / "none").exit_code == 0
    out = pack(Path(bucket), tmp_path / "out", *SHARDS)
    changes = run("diff", bucket, out)
    assert (changes.exit_code, changes.stderr) == (0, "")
    victim = next((out / "shards").glob("*.image.npy"))
    victim.write_bytes(victim.read_bytes()[:-9])
    assert run("repair", out).exit_code == 0
    assert run("verify", out).exit_code == 0


def test_a_class_table_may_lie_in_a_folder_of_the_bucket(raw_folder: RawFolder, tmp_path: Path) -> None:
    url = uploaded(raw_folder.path)
    store = open_store(url)
    store.put("notes/my_classes.csv", store.read("class_dict.csv")[0])
    store.delete(["class_dict.csv"])
    good("probe", "--write", tmp_path / "packer.toml", url)
    assert f'classes = "{url}/notes/my_classes.csv"' in (tmp_path / "packer.toml").read_text()
    out = pack(Path(url), tmp_path / "out", "--config", tmp_path / "packer.toml")
    assert [known.name for known in Manifest.load(out).classes.classes] == list(NAMES)


def test_a_plan_names_the_bucket_and_another_one_can_be_read(bucket: str, tmp_path: Path) -> None:
    settings = {"raw": bucket, "out": str(tmp_path / "out"), "labels": "index", "workers": "1"}
    with mock.patch.object(packer.workers.run, "POOL", InProcess):
        folder = write_plan(make_plan(Request.from_settings(settings)), tmp_path / "plan")
    assert folder.facts.raw == bucket
    piece = folder.spec(0).pieces[0]
    assert reopen(folder.facts.source).load(piece.ref).bad is None
    elsewhere = reopen(moved(folder.facts.source, folder.facts.raw, Path(new_url())))
    assert "is not in the store" in str(elsewhere.load(piece.ref).bad)


def test_errors_name_the_url(tmp_path: Path) -> None:
    url = new_url()
    open_store(url).put("readme.md", b"x")
    for command in (("build", url, tmp_path / "out"), ("probe", url)):
        result = run(*command)
        assert result.exit_code == 1
        assert url in result.stderr
        assert PARTIAL not in result.stderr + result.output
    assert "no object below this URL" in errors_of(1, "build", new_url(), tmp_path / "out")
    secret = run("build", "s3://me:hush@bucket/raw", tmp_path / "out")
    assert secret.exit_code != 0
    assert "has a user, a key or options" in secret.stderr
    assert "hush" not in secret.stderr


def test_copies_of_texts_are_deleted_also_those_of_a_process_that_was_killed(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    partial_path(tmp_path, ended(), "1").mkdir()
    source = ObjectsSource.at(bucket)
    assert list(tmp_path.iterdir()) == [source.raw]
    del source
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_a_store_that_does_not_answer_ends_the_build_and_rejects_no_row(bucket: str, tmp_path: Path) -> None:
    source = ObjectsSource.at(bucket)
    with proxy("ministack").doing(times(3, ERROR, "GET", ".png")):
        pack(Path(bucket), tmp_path / "out", *SHARDS)
    gone = RowRef("", "", ("gone.png", "gone.png"))
    assert source.load(gone).bad == "gone.png: is not in the store any more"
    store = ObjectStore(bucket, {"max_retries": 1})
    silent = proxy("ministack").doing(times(9, BUSY))
    impatient = mock.patch("readers.stores.waiting.RETRY_SECONDS", 0.0)
    patched = mock.patch.object(ObjectsSource, "store", store)
    with patched, impatient, silent, pytest.raises(BusyError, match=bucket) as busy:
        ObjectsSource(Path(), url=bucket).load(gone)
    with pytest.raises(BusyError, match=bucket):  # what the process that plans hears of a worker
        read_fingerprint(error_answer(busy.value))


def test_folder_markers_hidden_objects_and_packs_are_passed_over(raw_folder: RawFolder, tmp_path: Path) -> None:
    url = uploaded(raw_folder.path)
    store = open_store(url)
    for name in ("train", "train/images", ".hidden/x.png", "old/.segpack", "old/train/images/street_000.png"):
        store.put(name, b"")
    local = pack(raw_folder.path, tmp_path / "local", *SHARDS)
    assert same(local, pack(Path(url), tmp_path / "out", *SHARDS))


def test_a_url_is_known_as_a_path_too() -> None:
    for url in ("s3://bucket/a/b", "gs://bucket", "memory://x", "file:///data/x"):
        assert url_of(url) == url_of(Path(url)) == url_of(f"{url}/") == url
    for path in ("/data/s3:/x", "raw", "C:/x", "./s3:/x/y", "raw/a:b"):
        assert url_of(path) is None


def test_what_is_read_ahead_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "MOST_BYTES", 1000)
    read: list[str] = []
    arrived = threading.Semaphore(0)

    def load(name: str) -> tuple[bytes, Version]:
        read.append(name)
        arrived.release()
        return bytes(100), Version(name)

    monkeypatch.setattr(read_ahead, "FIRST_GUESS", 100)
    ahead = ObjectsAhead(load)
    names = [f"{number}" for number in range(200)]
    ahead.expect(names)
    for _ in range(10):
        arrived.acquire()
    assert len(read) == 10
    for number, name in enumerate(names):
        assert ahead.look(name)[1].tag == name
        assert ahead.take(name)[1].tag == name
        assert len(read) <= number + 11
    assert sorted(read) == sorted(names)


def test_rows_may_be_taken_in_any_order_and_by_many_threads() -> None:
    def load(name: str) -> tuple[bytes, Version]:
        if name == "bad":
            raise FileNotFoundError(name)
        time.sleep(0.0005)
        return name.encode(), Version(name)

    ahead = ObjectsAhead(load)
    names = [f"{number}" for number in range(300)]
    ahead.expect([*names, "bad"])
    taken: list[bytes] = []

    def take(chosen: list[str]) -> None:
        taken.extend(ahead.take(name)[0] for name in chosen)

    threads = [threading.Thread(target=take, args=(names[::-1][start::4],)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(name.encode() for name in names)
    with pytest.raises(FileNotFoundError):
        ahead.take("bad")
    assert ahead.take("7")[0] == b"7", "what was taken can be read once more"


def test_a_ranged_file_keeps_few_blocks() -> None:
    """A hostile header leads through the whole object."""
    starts: list[int] = []

    def read(start: int, stop: int) -> bytes:
        starts.append(start)
        return bytes(stop - start)

    with RangedFile((MOST_BLOCKS + 1) * BLOCK, read).buffered() as file:
        for number in (*range(MOST_BLOCKS + 1), 0):
            file.seek(number * BLOCK)
            assert file.read(8) == bytes(8)
    assert starts.count(0) == 2  # it was forgotten


def test_a_ranged_file_reads_only_the_blocks_that_are_asked_for() -> None:
    data = np.random.default_rng(1).bytes(5 * BLOCK + 17)
    asked: list[tuple[int, int]] = []

    def read(start: int, stop: int) -> bytes:
        asked.append((start, stop))
        return data[start:stop]

    with RangedFile(len(data), read).buffered() as file:
        assert file.read(100) == data[:100]
        assert asked == [(0, BLOCK)]
        file.seek(-20, os.SEEK_END)
        assert file.read() == data[-20:]
        assert file.seek(BLOCK - 5) == BLOCK - 5
        assert file.read(10) == data[BLOCK - 5 : BLOCK + 5]
    assert set(asked) <= {(0, BLOCK), (BLOCK, 2 * BLOCK), (4 * BLOCK, 5 * BLOCK), (5 * BLOCK, len(data))}


def test_a_plan_of_a_bucket_is_built_in_parts(raw_folder: RawFolder, bucket: str, tmp_path: Path) -> None:
    plan, out = tmp_path / "plan", tmp_path / "out"
    assert run("plan", *SHARDS, bucket, plan).exit_code == 0
    assert "holds no objects" in errors_of(1, "build-part", "--plan", plan, "--part", "1/1", "--raw", new_url(), out)
    for part in ("2/2", "1/2"):
        assert run("build-part", "--plan", plan, "--part", part, out).exit_code == 0
    assert run("commit", "--plan", plan, out).exit_code == 0
    local = pack(raw_folder.path, tmp_path / "local", *SHARDS)
    assert names_and_bytes(out) == names_and_bytes(local)


def names_and_bytes(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "shards").iterdir()}


@pytest.mark.parametrize("command", ["bench", "repair"])
def test_commands_of_folders_refuse_urls_before_work(bucket: str, command: str) -> None:
    assert f"{bucket}: expected a folder of this machine" in errors_of(2, *command.split(), bucket)


def test_a_bucket_that_is_not_there_is_a_mistake_and_no_reason_to_try_again(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 2}).path
    for arguments in (("s3://no-such-bucket/raw", tmp_path / "out"), (raw, "s3://no-such-bucket/out")):
        assert "there is no such bucket" in errors_of(1, "build", *arguments)


def test_workers_have_the_environment_of_now(raw_folder: RawFolder, bucket: str, tmp_path: Path) -> None:
    """A notebook may set its credentials after a first build, which has started the server of all later workers."""
    known = {name: os.environ[name] for name in credentials("")}
    program = f"""
import os
from packer import build_pack
build_pack({str(raw_folder.path)!r}, {str(tmp_path / "local")!r}, labels="index", workers=2)
os.environ.update({known!r})
build_pack({bucket!r}, {str(tmp_path / "out")!r}, labels="index", workers=2)
"""
    bare = {name: value for name, value in os.environ.items() if name not in known}
    python("-c", program, env=bare, timeout=HANG)
    assert names_and_bytes(tmp_path / "out") == names_and_bytes(tmp_path / "local")


def test_a_name_that_no_client_can_use_is_named_with_what_to_do(raw_folder: RawFolder, tmp_path: Path) -> None:
    url = uploaded(raw_folder.path)
    bucket, _, folder = url.removeprefix("s3://").partition("/")
    where = f"{os.environ['AWS_ENDPOINT_URL']}/{bucket}/{folder}//odd.png"
    with urllib.request.urlopen(urllib.request.Request(where, data=b"1", method="PUT"), timeout=HANG):
        pass
    errors = errors_of(1, "build", url, tmp_path / "out")
    assert "//odd.png" in errors
    assert "rename or delete it" in errors
