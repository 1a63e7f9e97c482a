"""Raw files are opened in one place, which refuses pipes and devices. No command waits for one after a signal."""

from __future__ import annotations

import ast
import os
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from checks.house import module_of, sources
from conftest import HANG, make_raw
from drills.processes import start

from readers.contract.files import blake3_of
from readers.contract.regular_files import NotRegularError, digest_raw, open_raw, read_raw

OPENING = {
    "open",
    "fdopen",
    "sha256",
    "blake3_of",
    "file_digest",
    "fromfile",
    "imread",
    "memmap",
    "loadtxt",
    "genfromtxt",
}
READING = {"read_bytes", "read_text"}
"""Methods of a path."""
NOT_RAW = {
    "packer.annotations.labelme": "a mask within a file that was read",
    "packer.annotations.picture_index": "an index that this user saved",
    "packer.bench.loaders": "a pack",
    "packer.building.live": "files of a live pack that readers and the builder write",
    "packer.packs.so_far": "the records of a pack that is being built",
    "packer.building.plan_parts": "a plan",
    "packer.building.commit_plan": "a plan",
    "packer.cli.metrics": "the file of metrics",
    "packer.config.last_build": "the configuration in OUT",
    "packer.config.preset": "presets of this package",
    "packer.diagnose": "records of a training",
    "packer.packs.extract_predictions": "predictions, after they were found to be regular files",
    "packer.packs.extract": "the files that it writes, and a pack",
    "packer.packs.extract_layout": "the files that it writes, and a pack",
    "packer.packs.forget": "nothing; it hashes receipts",
    "packer.packs.layouts.coco": "the files that it writes",
    "packer.packs.layouts.nnunet": "the files that it writes",
    "packer.packs.smaller_shard": "a scratch file that it makes",
    "packer.packs.which": "the table of OUT",
    "packer.packs.inspect_row": "a pack",
    "packer.packs.list_keys": "a pack",
    "packer.packs.generations": "the table of OUT",
    "packer.packs.stage": "a pack and its copy",
    "packer.packs.staged_copies": "a copy of a pack",
    "packer.packs.stats": "a pack",
    "packer.packs.sha256sums": "a pack",
    "packer.packs.verify": "a pack",
    "packer.packs.verify_stored": "a shard that it has copied",
    "packer.plan.planned_files": "a plan",
    "packer.plan.write_plan": "files of a plan that it makes",
    "packer.publish.direct_file": "a file that it makes",
    "packer.publish.free_space": "the mounts of the machine",
    "packer.publish.generation": "the table of OUT",
    "packer.publish.lock": "the lock of OUT",
    "packer.publish.next_manifest": "nothing; it hashes the table",
    "packer.recipe.plan_folder": "files of a plan, by open_raw; then numpy maps one",
    "packer.packs.trial_packs": "a pack",
    "packer.report.croissant": "nothing; it hashes the manifest",
    "packer.report.write_card": "a pack",
    "packer.shards.formats.lmdb": "a file that it makes",
    "packer.publish.upload": "shards that it sends",
    "packer.publish.local_mirror": "files that it makes",
    "packer.publish.remarks": "what the build of a generation noticed, in OUT",
    "packer.shards.giant_rows": "a scratch file that it makes",
    "packer.shards.scratch": "files that it makes",
    "packer.shards.side_file": "stamps and row counts in OUT",
    "packer.sources.archives.archive": "a file of an archive, by ArchiveFiles",
    "packer.sources.archives.files_here": "a file of an archive, by open_raw",
    "packer.sources.archives.hugging_face": "a table, by open_raw; then Arrow maps it",
    "packer.sources.archives.lmdb_pictures": "an environment, by open_raw",
    "packer.sources.volumes.volume_source": "a volume, by open_raw",
    "packer.sources.pack": "a pack",
    "packer.sources.pack_facts": "nothing; it hashes texts",
    "packer.sources.archives.recordio": "a file of an archive, by open_raw",
    "packer.sources.archives.tfrecord": "a file of an archive, by open_raw",
    "packer.sources.archives.webdataset": "a file of an archive, by open_raw",
    "packer.sources.arrays.zarr_arrays": "an array, by TensorStore",
    "packer.engines.run_station": "its stdout",
    "packer.plan.shared_plan": "a plan below OUT",
    "packer.view.app": "pages of this package",
    "packer.view.row_index": "a file that it makes, without a name",
    "packer.view.serve": "the browser",
    "packer.view.viewed": "a pack",
    "packer.packs.copy_shards": "files of a pack",
    "packer.packs.index": "a pack",
    "packer.packs.repair": "a pack",
    "packer.shards.cell_files": "a file of cells below OUT",
    "packer.shards.stored_cells": "files of cells below OUT, by plain_file",
    "packer.workers.add_cells": "a pack",
    "packer.workers.planned": "a plan, by open_raw",
    "packer.workers.stored_plan": "a plan in a store: files of its own",
    "packer.workers.worker": "stderr and /dev/null",
}
"""Each module with a call that may open a file, and what this opens."""


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)  # relative, because the path of a socket is limited to 107 bytes


KINDS = pytest.mark.parametrize("instead", [pipe, device])


def end(command: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for a command; return its exit code and its stderr."""
    try:
        stderr = command.communicate(timeout=HANG)[1]
    finally:
        command.kill()
    return command.returncode, stderr


def test_no_other_module_opens_raw_files() -> None:
    found = {module_of(path) for path, tree in sources() if any(map(opens, ast.walk(tree)))}
    assert {name for name in found if name.startswith("packer")} == set(NOT_RAW)


def opens(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in OPENING | READING
    return isinstance(node.func, ast.Name) and node.func.id in OPENING


@pytest.mark.parametrize("instead", [pipe, device, listening, Path.mkdir])
def test_only_regular_files_are_opened(
    instead: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    instead(tmp_path / "file")
    for read in (open_raw, read_raw, digest_raw):
        with pytest.raises(NotRegularError, match="is not a regular file"):
            read(tmp_path / "file")


def test_a_regular_file_is_read_and_digested(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12" * 300_000)
    (tmp_path / "link").symlink_to("file")
    assert read_raw(tmp_path / "link") == b"12" * 300_000
    assert digest_raw(tmp_path / "link") == blake3_of(tmp_path / "file")


@pytest.mark.long(every=3)
@KINDS
@pytest.mark.parametrize("trust", ["mtime", "digest"])
def test_a_packed_file_that_became_a_pipe_or_a_device_is_a_bad_pair(
    tmp_path: Path, instead: Callable[[Path], None], trust: str
) -> None:
    raw, out = make_raw(tmp_path / "raw", {"train": 3}), tmp_path / "out"
    build = ("build", "--quiet", "--workers", 1, "--trust", trust)
    assert end(start((*build, raw.path, out))) == (0, "")
    victim = raw.path / "train/images/street_001.png"
    victim.unlink()
    instead(victim)
    code, stderr = end(start((*build, raw.path, out)))
    assert (code, "train/images/street_001.png: is not a regular file" in stderr) == (1, True)
    assert end(start(("diff", out, raw.path)))[0] == 1


@KINDS
@pytest.mark.parametrize("option", ["--classes", "--config", "--pairs", "--lists"])
def test_a_file_that_an_option_names_must_be_regular(
    tmp_path: Path, instead: Callable[[Path], None], option: str
) -> None:
    raw, named = make_raw(tmp_path / "raw", {"train": 3}), tmp_path / "named.txt"
    instead(named)
    if option == "--lists":
        (raw.path / "lists").mkdir()
        instead(raw.path / "lists/train.txt")
    value = "lists" if option == "--lists" else named
    code, stderr = end(start(("build", option, value, raw.path, tmp_path / "out")))
    assert code in (1, 2)
    assert "is not a regular file" in stderr or "no such list" in stderr


WAITING = """
import os, signal, threading, time
import packer.signals
import packer.plan.find_rows as module
packer.signals.LONGEST_END = 0.5
from concurrent.futures import ThreadPoolExecutor
def waiting(*arguments, **options):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(time.sleep, 600)
        os.kill(os.getpid(), signal.%s)
module.search_pairs = waiting
from packer.__main__ import main
main()
"""
"""A packer that gets a signal while one of its threads waits for something that does not come."""


@pytest.mark.parametrize(
    "name", ["SIGTERM", *(pytest.param(name, marks=pytest.mark.long) for name in ("SIGINT", "SIGHUP"))]
)
def test_a_command_whose_thread_waits_ends_after_one_signal(tmp_path: Path, name: str) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 3})
    code, stderr = end(start(("build", raw.path, tmp_path / "out"), ("-c", WAITING % name)))
    assert code == 128 + signal.Signals[name]
    assert stderr == "packer: ended without waiting for the rest\n"
