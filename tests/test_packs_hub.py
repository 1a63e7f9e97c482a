"""Packs on the Hugging Face Hub: what is sent, by which commits, and what a reader sees when something fails."""

from __future__ import annotations

import json
import re
import socket
import sys
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import HANG, good, pack_from, run
from drills.hub_server import TOKEN, HubServer, Repo
from drills.published import same
from faulty_proxy import BUSY, CUT, ERROR, LOST, Proxy, Request, times
from stored_scenes import scenes_of, write_parquet
from test_packs_push import files

import packer.packs.hub_commits
from packer import pull_pack, push_pack
from packer.errors import BusyError, TargetError
from packer.packs.copy_shards import Copying
from packer.packs.hub_commits import HubCommits
from packer.packs.verify_pack import verify_pack
from packer.publish.generation import current_manifest
from packer.sources.container import Names
from packer.sources.containers import container_of
from packer.sources.reopen import reopen
from readers import open_dataset
from readers.contract.errors import NoPackError, RequestError, StoreBusyError, StoreError
from readers.contract.manifest import MANIFEST, Manifest
from readers.stores import hub_store
from readers.stores.hub_store import HubStore
from readers.stores.open_store import open_store
from readers.stores.store import Listed

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # huggingface_hub to its client
URL = "hf://datasets/me/pack"


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[HubServer, Proxy]]:
    hub = HubServer()
    proxy = Proxy(hub.url)
    yield hub, proxy
    proxy.close()
    hub.close()


@pytest.fixture
def hub(servers: tuple[HubServer, Proxy], monkeypatch: pytest.MonkeyPatch) -> HubServer:
    """A Hub with one empty repository, behind a proxy. Xet, which has a server of its own, is off. Nobody waits."""
    server, proxy = servers
    server.repos.clear()
    server.large.clear()
    server.make("me/pack")
    monkeypatch.setenv("HF_ENDPOINT", proxy.url)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr("huggingface_hub.utils._http.time", SimpleNamespace(sleep=lambda seconds: None))
    monkeypatch.setattr(packer.packs.hub_commits, "PAUSE", 0)
    monkeypatch.setattr("readers.stores.waiting.FIRST_PAUSE", 0)
    return server


@pytest.fixture
def proxy(servers: tuple[HubServer, Proxy]) -> Proxy:
    return servers[1]


def commits(hub: HubServer) -> list[dict[str, bytes]]:
    """Return the files of each commit after the first one."""
    return [commit.files for commit in hub.repos["me/pack"].branches["main"][1:]]


def test_tables_of_the_hub_are_packed_and_a_commit_after_the_plan_is_noticed(hub: HubServer, tmp_path: Path) -> None:
    write_parquet(tmp_path / "train-0.parquet", scenes_of({f"{number}": number for number in range(9)}))
    table = (tmp_path / "train-0.parquet").read_bytes()
    hub.add(hub.repos["me/pack"], "main", "data", {"data/train-0.parquet": table, "README.md": b"x"})
    options = ("--labels", "index", "--classes", 4)
    local = pack_from(tmp_path / "train-0.parquet", tmp_path / "local", *options)
    for name, url in (("folder", f"{URL}/data"), ("file", f"{URL}/data/train-0.parquet"), ("all", f"{URL}/data/*")):
        assert same(local, pack_from(Path(url), tmp_path / name, *options))
    container = container_of(Path(f"{URL}/data"))
    assert container is not None
    source = container.at(Path(URL), Names())
    ref = next(iter(source.rows()))
    hub.add(hub.repos["me/pack"], "main", "new data", {"data/train-0.parquet": table + b" "})
    assert "was changed after the build was planned" in str(reopen(source.to_text()).load(ref).bad)


def test_a_pack_goes_to_the_hub_and_back(
    hub: HubServer, proxy: Proxy, two_nights: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packer.packs.hub_commits, "MOST_FILES", 10)
    first, second = two_nights
    done = run("push", "--json", "--quiet", first, URL)
    assert done.stderr == ""
    assert done.exit_code == 0
    assert json.loads(done.stdout)["copied_shards"] == Manifest.load(first).shards
    sent = commits(hub)
    assert files(first).items() == {name: sent[-1][name] for name in sent[-1] if name != ".gitattributes"}.items()
    assert len(sent) > 2
    assert max(new - old for old, new in pairwise([1, *map(len, sent)])) == 10
    assert MANIFEST in sent[-1]
    assert not any(name.startswith(("manifest", "generations/0")) for name in sent[-2])

    assert push_pack(first, URL).shards == 0
    assert commits(hub) == sent, "nothing was committed"

    with proxy.doing(lambda request: None):
        night = push_pack(second, URL)
        uploads = [request for request in proxy.requests if request.method == "PUT"]
    assert 0 < night.shards < night.manifest.shards
    new = {name for name in commits(hub)[-1].keys() - sent[-1].keys() if name.startswith("shards/")}
    assert len(new) == night.shards * len([name for name in files(first) if name.startswith("shards/")]) // (
        Manifest.load(first).shards
    )
    assert len(uploads) <= len(new) + 3
    assert files(second).items() <= commits(hub)[-1].items()
    assert open_store(URL).read(MANIFEST)[0] == (second / MANIFEST).read_bytes()

    done = run("pull", "--quiet", f"{URL}@main", tmp_path / "back")
    assert done.stderr == ""
    assert done.exit_code == 0
    assert not verify_pack(tmp_path / "back")
    assert files(tmp_path / "back").items() <= files(second).items()
    assert run("info", URL).stdout == run("info", second).stdout
    old = hub.repos["me/pack"].branches["main"][len(sent)].oid
    assert pull_pack(f"{URL}@{old}", tmp_path / "old").manifest == Manifest.load(first), "a commit is a version, too"


def test_a_training_reads_from_the_hub(hub: HubServer, two_nights: tuple[Path, Path], tmp_path: Path) -> None:
    push_pack(two_nights[0], f"{URL}/v1")
    there = open_dataset(f"{URL}/v1", split="train", cache=tmp_path / "cache")
    here = open_dataset(two_nights[0], split="train")
    assert len(there) == len(here) > 0
    for row in range(len(here)):
        assert (there[row].image == here[row].image).all()
        assert (there[row].label == here[row].label).all()


@pytest.mark.parametrize("fault", [ERROR, BUSY, LOST])
def test_any_request_may_fail_once(
    fault: str, hub: HubServer, proxy: Proxy, two_nights: tuple[Path, Path], tmp_path: Path
) -> None:
    for out in two_nights:
        met: set[Request] = set()

        def once(request: Request, met: set[Request] = met) -> str | None:
            again = request in met
            met.add(request)
            return None if again else fault

        with proxy.doing(once):
            done = run("push", "--quiet", out, URL)
            assert done.stderr == ""
            assert done.exit_code == 0
            assert proxy.faults > 8
        assert current_manifest(open_store(URL)) == Manifest.load(out)
        assert files(out).items() <= commits(hub)[-1].items()
    assert len(commits(hub)) == 4, "of each push, the shards and the manifest, each once"
    met.clear()
    with proxy.doing(once):
        pull_pack(URL, tmp_path / "back")
    assert not verify_pack(tmp_path / "back")


@pytest.mark.parametrize("ranges", [True, False])
def test_answers_that_are_cut_are_continued(
    ranges: bool,
    hub: HubServer,
    proxy: Proxy,
    two_nights: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hub, "ranges", ranges)
    push_pack(two_nights[0], URL)
    met: set[str] = set()

    def cut(request: Request) -> str | None:
        """Cut the first answer for each file, and with it the second one in the middle of the rest."""
        again = request.name in met
        met.add(request.name)
        return None if again or request.method != "GET" else CUT

    with proxy.doing(cut):
        pull_pack(URL, tmp_path / "back")
        assert proxy.faults > 10
    assert not verify_pack(tmp_path / "back")
    monkeypatch.setattr("readers.stores.waiting.RETRY_SECONDS", 0.5)
    with proxy.doing(times(1000, CUT, "GET", "resolve")), pytest.raises(BusyError, match="cut again and again"):
        pull_pack(URL, tmp_path / "other")


@pytest.mark.parametrize("fault", [ERROR, LOST])
def test_a_push_that_fails_leaves_the_old_generation_or_the_new_one(
    fault: str, hub: HubServer, proxy: Proxy, two_nights: tuple[Path, Path]
) -> None:
    first, second = two_nights
    push_pack(first, URL)
    with proxy.doing(lambda request: fault if "/commit" in request.name else None):
        done = run("push", "--quiet", second, URL)
    assert done.exit_code == 75, done.stderr
    assert TOKEN not in done.stderr
    assert current_manifest(open_store(URL)) == Manifest.load(first)
    good("push", "--quiet", second, URL)
    assert current_manifest(open_store(URL)) == Manifest.load(second)


def test_a_killed_push_is_continued(
    hub: HubServer, two_nights: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packer.packs.hub_commits, "MOST_FILES", 10)
    real = HubCommits.add
    left = iter(range(15))

    def dying(store: HubCommits, name: str, content: Path | bytes) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        real(store, name, content)

    monkeypatch.setattr(HubCommits, "add", dying)
    with pytest.raises(KeyboardInterrupt):
        push_pack(two_nights[0], URL, workers=1)
    monkeypatch.setattr(HubCommits, "add", real)
    assert len(commits(hub)) == 1
    assert current_manifest(open_store(URL)) is None
    done = push_pack(two_nights[0], URL)
    assert 0 < done.shards < done.manifest.shards
    assert files(two_nights[0]).items() <= commits(hub)[-1].items()


def test_of_two_pushes_one_is_refused(
    hub: HubServer, two_nights: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two_nights
    push_pack(first, URL)
    real = Copying.missing

    def overtaken(*arguments: object) -> list[int]:
        found = real(*arguments)  # type: ignore[arg-type]
        hub.add(hub.repos["me/pack"], "main", "a card", {"README.md": b"# Pack"})
        return found

    monkeypatch.setattr(Copying, "missing", overtaken)
    with pytest.raises(BusyError, match="another user has committed"):
        push_pack(second, URL)
    monkeypatch.setattr(Copying, "missing", real)
    assert current_manifest(open_store(URL)) == Manifest.load(first)
    push_pack(second, URL)
    assert current_manifest(open_store(URL)) == Manifest.load(second)


def test_files_that_the_repository_ignores_are_missed_before_the_manifest(
    hub: HubServer, two_nights: tuple[Path, Path]
) -> None:
    shard = next(name for name in files(two_nights[0]) if name.endswith(".image.npy"))
    hub.repos["me/pack"].ignored = frozenset({shard})
    with pytest.raises(TargetError, match=f"{shard}: was left out of a commit; does a .gitignore"):
        push_pack(two_nights[0], URL)
    assert current_manifest(open_store(URL)) is None


def test_too_many_files_are_refused_before_the_first(
    hub: HubServer, two_nights: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two_nights
    count = sum(name.startswith("shards/") for name in files(first))
    monkeypatch.setattr(packer.packs.hub_commits, "MOST_ENTRIES", count - 1)
    with pytest.raises(TargetError, match=f"there would be {count} files .* --shard-size"):
        push_pack(first, URL)
    assert not commits(hub)
    monkeypatch.setattr(packer.packs.hub_commits, "MOST_ENTRIES", count)
    push_pack(first, URL)
    new = sum(name.startswith("shards/") for name in files(second).keys() - files(first).keys())
    with pytest.raises(TargetError, match=f"there would be {count + new} files"):
        push_pack(second, URL)


@pytest.mark.parametrize(
    ("url", "error", "words"),
    [
        ("hf://me/pack", RequestError, "names a model of the Hub; packs go to hf://datasets/OWNER/NAME"),
        ("hf://models/me/pack", RequestError, "names a model"),
        ("hf://spaces/me/pack", RequestError, "names a space"),
        ("hf://buckets/me/pack", RequestError, "names a bucket of the Hub"),
        ("hf://datasets/pack", RequestError, "expected hf://datasets/OWNER/NAME"),
        ("hf://datasets/me/none", TargetError, "hf repos create me/none --type dataset"),
        ("hf://datasets/me/pack@none", TargetError, "there is no branch, tag or commit none"),
        ("hf://datasets/me/pack@HEAD", TargetError, "a commit never changes; name a branch"),
        ("hf://datasets/me/full", TargetError, "is not a packed data set .it holds cat.jpg"),
    ],
)
def test_what_cannot_be_pushed_to(
    url: str, error: type[Exception], words: str, hub: HubServer, two_nights: tuple[Path, Path]
) -> None:
    hub.make("me/full", {"cat.jpg": b"cat", "README.md": b"# Cats"})
    head = hub.repos["me/pack"].branches["main"][-1].oid
    with pytest.raises(error, match=words):
        push_pack(two_nights[0], url.replace("HEAD", head))
    assert not commits(hub)


@pytest.mark.parametrize("token", ["", "hf_" + "of_somebody_else"])
def test_the_token_decides_and_is_never_shown(
    token: str, hub: HubServer, two_nights: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.make("me/secret", private=True)
    push_pack(two_nights[0], "hf://datasets/me/secret")
    monkeypatch.setenv("HF_TOKEN", token)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "none"))
    for words, expected in (
        (("pull", "hf://datasets/me/secret", tmp_path / "out"), "if it is there and private, log in: hf auth login"),
        (("push", two_nights[0], "hf://datasets/me/secret"), "hf repos create me/secret --type dataset"),
        (("push", two_nights[0], URL), "403, You don't have the rights .* log in with a token that may do this"),
    ):
        done = run(*words)
        assert done.exit_code not in (0, 75)
        assert re.search(expected, done.stderr, re.IGNORECASE), done.stderr
        assert not token or token not in done.stderr


def test_signed_addresses_are_not_shown(hub: HubServer, proxy: Proxy, two_nights: tuple[Path, Path]) -> None:
    with proxy.doing(lambda request: BUSY if request.method == "PUT" else None):
        done = run("push", two_nights[0], URL)
    assert done.exit_code == 75
    assert "the Hub answers 503" in done.stderr
    assert "secret" not in done.stderr


def test_the_store_of_a_data_set(hub: HubServer, proxy: Proxy, tmp_path: Path) -> None:
    repo: Repo = hub.make("me/other", {"a/b": b"12345", "a/large": bytes(range(256)) * 20, "empty": b""})
    for number in range(120):
        hub.add(repo, "main", "more", {f"many/{number}": b"%d" % number})
    store = open_store("hf://datasets/me/other")
    assert {entry.name for entry in store.list("a")} == {"a/b", "a/large"}
    assert len(list(store.list("many"))) == 120
    assert list(store.list("none")) == []
    assert Listed("a/b", 5, next(store.list("a")).tag, 0) in store.list("")
    assert store.read("a/b", 1, 3)[0] == b"23"
    assert store.read("a/b", 1, 1)[0] == b""
    assert store.read("a/large", 5110, 9999)[0] == bytes(range(246, 256))
    assert store.read("empty", 0, 100)[0] == b""
    assert store.read("a/b")[1] == store.read("a/b", 2)[1] != store.read("a/large")[1]
    with pytest.raises(FileNotFoundError, match="other/c: there is no such file"):
        store.read("c")
    with pytest.raises(StoreError, match="packer push OUT hf://datasets/me/other"):
        store.put("c", b"")
    with pytest.raises(StoreError, match="deleted there"):
        store.delete(["a/b"])
    with proxy.doing(times(1, ERROR, "GET", "revision/nothing")):
        assert {entry.name for entry in open_store("hf://datasets/me/other/a").list("")} == {"b", "large"}
    with pytest.raises(NoPackError):
        open_dataset("hf://datasets/me/other", cache=tmp_path)


def test_without_huggingface_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(StoreError, match=r"needs huggingface_hub; pip install 'segpack\[hub\]'"):
        open_store(URL)


def test_a_hub_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its client has no limit of its own for a listing, and asks for a file again and again."""
    monkeypatch.setattr("huggingface_hub.utils._http.time", SimpleNamespace(sleep=lambda seconds: None))
    monkeypatch.setattr("readers.stores.waiting.RETRY_SECONDS", 0.5)
    monkeypatch.setattr(hub_store, "LIST_SECONDS", 0.5)
    monkeypatch.setattr(hub_store, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
        store = HubStore(URL)
        with pytest.raises(StoreBusyError, match=r"does not list its files \(no answer in 0 s"):
            list(store.list(""))
        with pytest.raises(StoreBusyError, match=f"{MANIFEST}: the Hub does not answer"):
            store.read(MANIFEST)
    for thread in threading.enumerate():
        if thread.name == "store":  # its connection is closed now
            thread.join(HANG)
            assert not thread.is_alive()
