"""A plan whose parts are built by hand, in any order and however often, becomes the pack of one build, or nothing.

`packer build-part --plan` and `packer commit` run here as on many machines: processes that know nothing of each other.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import conftest
import numpy as np
import pytest
import row_loaders
from click.testing import Result
from conftest import (
    HANG,
    SMALL_SHARDS,
    RawFolder,
    json_of,
    make_raw,
    pack,
    pack_from,
    run,
    scene,
    without_workers,
    write_png,
)
from drills.processes import start
from drills.published import same
from scenes.tiny import make_tiny
from stored_scenes import COCO, KINDS, PANOPTIC, png, scenes_of, write_array
from test_build_lock import holder

from packer import Rows, VersionsError, build_pack, build_part, commit_pack, plan_pack
from packer.building.plan_parts import PlanPart
from packer.building.run_build import build_from
from packer.errors import LostFileError, TooManyRejectsError, UsageError
from packer.plan.request import request_of
from packer.publish.target import TICKETS, make_target, prepare_target
from readers import open_dataset
from readers.contract.errors import DamagedError
from readers.contract.manifest import MANIFEST, MARK, STORAGES

CALM = ("--quiet", *SMALL_SHARDS)


def good(*arguments: object) -> Result:
    """Run a command without worker processes, which must succeed."""
    with without_workers():
        return conftest.good(*arguments)


def parts(plan: Path, out: Path, names: Sequence[str], *options: object) -> None:
    for name in names:
        good("build-part", "--quiet", "--plan", plan, "--part", name, *options, out)


def tickets(out: Path) -> list[Path]:
    return sorted(path for path in out.glob(f"{TICKETS}/*/*") if not path.name.startswith("of-"))


@pytest.fixture(scope="module")
def plan(raw_folder: RawFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan of `raw_folder` with some ten shards."""
    folder = tmp_path_factory.mktemp("plan") / "plan"
    good("plan", *CALM, raw_folder.path, folder)
    return folder


@pytest.fixture(scope="module")
def whole(raw_folder: RawFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same build in one go."""
    return pack(raw_folder.path, tmp_path_factory.mktemp("whole") / "out", *SMALL_SHARDS)


OPTIONS: dict[str, tuple[object, ...]] = {
    **{storage: ("--format", storage, "--labels", "index") for storage in STORAGES},
    "tiles": ("--fit", "tile", "--size", "16x16"),
    "native": ("--size", "native"),
}


@pytest.mark.parametrize("form", OPTIONS)
def test_the_pack_is_that_of_one_build(raw_folder: RawFolder, tmp_path: Path, form: str) -> None:
    """Parts in any order, one of them twice, and divided otherwise in between."""
    options = ("--quiet", *OPTIONS[form], "--shard-size", "12KB")
    good("plan", *options, raw_folder.path, tmp_path / "plan")
    parts(tmp_path / "plan", tmp_path / "out", ["3/3", "1/3", "3/3", "1/2", "2/3"])
    good("commit", "--quiet", "--plan", tmp_path / "plan", tmp_path / "out")
    assert same(tmp_path / "out", pack(raw_folder.path, tmp_path / "whole", *options))
    assert len(tickets(tmp_path / "out")) > 4
    assert good("verify", "--quiet", tmp_path / "out").exit_code == 0
    assert good("diff", raw_folder.path, tmp_path / "out").stdout.startswith("up to date")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("folder", "rows", "pack")])
def test_containers_of_every_kind(kind: str, tmp_path: Path) -> None:
    names = {
        "npy": ("--image", "images", "--label", "labels.npy", "--key", "keys"),
        "hdf5": ("--image", "scans/images", "--label", "/labels", "--key", "keys"),
        "torch": ("--image", "train/images", "--label", "train/labels", "--key", "keys"),
        "parquet": ("--key", "name"),
        "hugging face": ("--image", "image", "--label", "annotation", "--key", "name"),
        "tfrecord": ("--key", "name"),
        "zarr": ("--image", "images", "--label", "train/labels", "--key", "keys.npy"),
        "indexed": ("--image", "{key}.png", "--annotations", COCO),
        "panoptic": ("--image", "images/{key}.png", "--annotations", PANOPTIC),
    }.get(kind, ())
    KINDS[kind].write(tmp_path / "rows", scenes_of({name: number for number, name in enumerate("abcdefg")}))
    options = ("--classes", 4, *names, "--shard-size", "9KB", "--labels", "index")
    good("plan", "--quiet", "--from", tmp_path / "rows", *options, tmp_path / "plan")
    parts(tmp_path / "plan", tmp_path / "out", ["2/2", "1/2"])
    good("commit", "--quiet", "--plan", tmp_path / "plan", tmp_path / "out")
    assert same(tmp_path / "out", pack_from(tmp_path / "rows", tmp_path / "whole", *options))


@pytest.mark.parametrize("fit", [(), ("--size", "native")])
def test_a_machine_without_the_files_of_a_plan_fails(fit: tuple[str, ...], tmp_path: Path) -> None:
    """Its rows were bad pairs: with --on-bad skip a mount that is gone cost half a pack."""
    raw, out = tmp_path / "raw", tmp_path / "out"
    make_tiny(raw, {"train": 6})
    images = raw / "train" / "images"
    (images / "street_000.png").unlink()
    (images / "street_000.png").symlink_to(tmp_path / "nowhere")  # bad already when it is planned: a reject
    good("plan", "--on-bad", "skip", *fit, *CALM, raw, tmp_path / "plan")
    images.rename(tmp_path / "images")
    images.mkdir()
    with without_workers():
        failed = run("build-part", "--quiet", "--plan", tmp_path / "plan", "--part", "1/1", out)
    assert failed.exit_code == 1
    assert "cannot be read (No such file or directory); the plan has read it" in failed.stderr
    assert "Is its folder mounted on this machine?" in failed.stderr
    images.rmdir()
    (tmp_path / "images").rename(images)
    parts(tmp_path / "plan", out, ["1/1"])
    good("commit", "--quiet", "--plan", tmp_path / "plan", out)
    manifest = json.loads((out / MANIFEST).read_text())
    assert [(split["rows"], split["rejects"]) for split in manifest["splits"]] == [(5, 1)]


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[:20],
    "zeros": lambda data: bytes(len(data)),
    "another picture": lambda data: png(np.zeros((9, 9, 3), np.uint8)),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("folder", ["images", "masks"])
def test_a_file_whose_header_was_good_ends_the_build(change: str, folder: str, tmp_path: Path) -> None:
    """A copy that was cut off on one machine cost the rows of that machine."""
    raw = tmp_path / "raw"
    make_tiny(raw, {"train": 3})
    good("plan", "--on-bad", "skip", *CALM, raw, tmp_path / "plan")
    file = next((raw / "train" / folder).glob("street_001.*"))
    file.write_bytes(CHANGES[change](file.read_bytes()))
    with without_workers():
        failed = run("build-part", "--quiet", "--plan", tmp_path / "plan", "--part", "1/1", tmp_path / "out")
    assert failed.exit_code == 1
    assert file.name in failed.stderr
    assert "the plan has read it, so its pair is not bad" in failed.stderr


GROUPS = {
    "zarr": (".zgroup", '{"zarr_format": 2}'),
    "zarr3": ("zarr.json", '{"zarr_format": 3, "node_type": "group"}'),
    "n5": ("attributes.json", '{"n5": "2.0.0"}'),
}


@pytest.mark.parametrize("driver", GROUPS)
def test_a_machine_that_lacks_a_chunk_fails(driver: str, tmp_path: Path) -> None:
    """A chunk that is absent is fill, so its labels became class 0."""
    pytest.importorskip("tensorstore")
    rows, copy = tmp_path / "rows", tmp_path / "copy"
    write_array(rows / "images", driver, np.ones((4, 8, 8, 3), np.uint8), (1, 8, 8, 3))
    write_array(rows / "labels", driver, np.ones((4, 8, 8), np.uint8), (1, 8, 8))
    name, text = GROUPS[driver]
    (rows / name).write_text(text)
    shutil.copytree(rows, copy)
    options = ("--image", "images", "--label", "labels", "--classes", 2)
    good("plan", "--quiet", "--from", rows, *options, tmp_path / "plan")
    described = {".zarray", "zarr.json", "attributes.json"}
    next(file for file in (copy / "labels").rglob("*") if file.is_file() and file.name not in described).unlink()
    part = ("build-part", "--quiet", "--plan", tmp_path / "plan", "--part", "1/1")
    with without_workers():
        failed = run(*part, "--raw", copy, tmp_path / "out")
    assert failed.exit_code == 1
    assert "has fewer or more files with chunks than when the build was planned" in failed.stderr
    good(*part, tmp_path / "out")


def test_a_build_whose_files_go_while_it_runs_fails(tmp_path: Path) -> None:
    raw, out = tmp_path / "raw", tmp_path / "out"
    make_tiny(raw, {"train": 3})
    gone = raw / "train" / "images" / "street_001.png"
    with (
        without_workers(),
        pytest.raises(LostFileError, match=r"street_001\.png: cannot be read .* the plan has read it"),
    ):
        build_from(request_of(raw, out, on_bad="skip"), planned=lambda plan: gone.unlink())
    assert not (out / MANIFEST).exists()


def test_a_pack_and_functions_as_rows(whole: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"classes": 3, "labels": "index", "shard_size": 9000}
    rows = Rows([f"row {number}" for number in range(9)], row_loaders.scene_of)
    with without_workers():
        assert len(plan_pack(rows, tmp_path / "plan", **options)) == 64
        for part in ("2/2", "1/2"):
            build_part(tmp_path / "plan", part, tmp_path / "out", allow_functions=["row_loaders"])
        assert commit_pack(tmp_path / "plan", tmp_path / "out").rows == 9
        build_pack(rows, tmp_path / "local", **options)
    assert same(tmp_path / "out", tmp_path / "local")
    good("plan", "--quiet", "--from", whole, tmp_path / "again")
    parts(tmp_path / "again", tmp_path / "copy", ["1/1"])
    good("commit", "--quiet", "--plan", tmp_path / "again", tmp_path / "copy")
    assert same(tmp_path / "copy", pack_from(whole, tmp_path / "expected"))


def test_sixteen_parts_of_which_one_is_missing(plan: Path, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    parts(plan, out, [f"{number}/16" for number in range(1, 17) if number != 5])
    result = run("commit", "--plan", plan, out)
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (
        1,
        f"packer: 1 of {len(tickets(out)) + 1} shards is missing, so nothing was published; run the parts again: 5/16",
    )
    assert not (out / "manifest.json").exists()
    assert run("commit", "--plan", plan, "--missing", out).stdout == "5/16\n"
    assert json_of("commit", "--plan", plan, "--missing", "--json", out) == {"missing": ["5/16"]}
    parts(plan, out, ["5/16"])
    assert good("commit", "--plan", plan, "--missing", out).stdout == ""
    summary = json.loads(good("commit", "--json", "--quiet", "--plan", plan, out).stdout)
    assert (summary["generation"], summary["rows"], summary["reused_rows"]) == (1, 32, 0)
    assert same(out, whole)
    again = good("commit", "--quiet", "--plan", plan, out)
    assert "generation 1, 32 rows" in again.stdout, "the same data stays the same generation"


KILLED = """
import os, signal, sys
import packer.workers.run
import {module} as module
from packer.workers.in_process import InProcess
packer.workers.run.POOL = InProcess
usual, calls = module.{function}, []
def killed(*arguments, **options):
    calls.append(arguments)
    if len(calls) > {calls}:
        os.kill(os.getpid(), signal.SIGKILL)
    return usual(*arguments, **options)
module.{function} = killed
from packer.__main__ import main
main()
"""


def kill_in(module: str, function: str, calls: int, *arguments: object) -> None:
    """Run a command that is killed when it calls this function, after so many calls."""
    process = start(arguments, ("-c", KILLED.format(module=module, function=function, calls=calls)))
    process.communicate(timeout=HANG)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    "function",
    ["put_in_place", *(pytest.param(name, marks=pytest.mark.long) for name in ("move_into_place", "write_stamps"))],
)
def test_a_part_is_killed_in_the_middle_of_a_shard(plan: Path, whole: Path, tmp_path: Path, function: str) -> None:
    out = tmp_path / "out"
    kill_in("packer.shards.build_shard", function, 2, "build-part", "--quiet", "--plan", plan, "--part", "1/1", out)
    before = tickets(out)
    assert run("commit", "--plan", plan, out).exit_code == 1
    parts(plan, out, ["1/1"])
    assert set(before) < set(tickets(out))
    good("commit", "--quiet", "--plan", plan, out)
    assert same(out, whole)
    assert not list(out.rglob(".partial-*"))


@pytest.mark.parametrize(
    ("module", "function"), [("packer.publish.generation", "make_current"), ("packer.building.finish", "keep_settings")]
)
def test_a_commit_is_killed_and_started_again(
    plan: Path, whole: Path, tmp_path: Path, module: str, function: str
) -> None:
    out = tmp_path / "out"
    parts(plan, out, ["1/1"])
    kill_in(module, function, 0, "commit", "--quiet", "--plan", plan, out)
    good("commit", "--quiet", "--plan", plan, out)
    assert same(out, whole)
    assert len(list(out.glob("generations/*.json"))) == 1
    assert (out / "packer.toml").is_file()


def test_parts_that_begin_at_once_share_a_new_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another part marks the folder between the look for the mark and the listing; mounts show the mark late, too."""
    make_target(tmp_path / "out")
    prepare_target(tmp_path / "out")
    before = sorted(path.name for path in (tmp_path / "out").iterdir())
    real = Path.is_file
    with monkeypatch.context() as patch:
        patch.setattr(Path, "is_file", lambda path: path.name not in (MARK, MANIFEST) and real(path))
        make_target(tmp_path / "out")  # raised TargetError: not a packed data set
        prepare_target(tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == before


def test_a_part_runs_twice_at_once(plan: Path, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ("build-part", "--quiet", "--workers", 1, "--plan", plan, "--part", "1/1", out)
    both = [start(command) for _ in range(2)]
    assert [(process.communicate(timeout=HANG)[1], process.returncode) for process in both] == [("", 0)] * 2
    good("commit", "--quiet", "--plan", plan, out)
    assert same(out, whole)


def test_two_commits_at_once(plan: Path, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    parts(plan, out, ["1/1"])
    first = holder(out)
    result = run("commit", "--plan", plan, out)
    assert (result.exit_code, "is being changed by process" in result.stderr) == (75, True)
    parts(plan, out, ["1/1"])  # a part needs no lock
    first.kill()
    first.communicate()
    both = [start(("commit", "--quiet", "--plan", plan, out)) for _ in range(2)]
    codes = sorted(process.wait(HANG) for process in both if process.communicate(timeout=HANG))
    assert codes in ([0, 0], [0, 75])
    assert same(out, whole)
    assert len(list(out.glob("generations/*.json"))) == 1


def test_a_machine_with_other_versions_is_refused(plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("packer.recipe.recipe.decoder_identity", lambda: "opencv 1.2")
        with pytest.raises(VersionsError, match=r"this machine has opencv 1\.2, the plan opencv"):
            build_part(plan, "1/1", tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr("packer.shards.versions.VERSION", "9.9")
        with pytest.raises(VersionsError, match=r"this machine has segpack 9\.9, the plan is of"):
            build_part(plan, "1/1", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    parts(plan, tmp_path / "out", ["1/1"])
    monkeypatch.setattr("packer.plan.planned_files.VERSION", "9.9")
    with pytest.raises(UsageError, match=r"was planned by segpack .*, this is 9\.9"):
        commit_pack(plan, tmp_path / "out")


def test_a_pair_that_crashes_its_decoder_is_the_reject_of_a_local_build(tmp_path: Path) -> None:
    (tmp_path / "crashing_rows.py").write_text(
        "import os, signal\nfrom row_loaders import scene_of\n\n"
        "def load(key):\n    if key == 'b':\n        os.kill(os.getpid(), signal.SIGSEGV)\n    return scene_of(key)\n"
    )
    program = (
        "from crashing_rows import load\nfrom packer import *\n"
        "rows, options = Rows('abc'.split() + list('bcd'), load, sizes=(20, 30)), dict(classes=3, on_bad='skip')\n"
        "plan_pack(rows, 'plan', **options)\nparts = dict(workers=1, allow_functions=['crashing_rows'])\n"
        "assert build_part('plan', '1/1', 'out', **parts).rejects\n"
        "print(commit_pack('plan', 'out').rejects == build_pack(rows, 'local', workers=1, **options).rejects)\n"
    )
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    command = [shutil.which("python") or "python", "-c", program]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr
    assert same(tmp_path / "out", tmp_path / "local")


@pytest.fixture
def raw(raw_folder: RawFolder, tmp_path: Path) -> Path:
    return Path(shutil.copytree(raw_folder.path, tmp_path / "raw"))


def damage(picture: Path) -> None:
    """Change a byte behind the header: a bad pair that only decoding finds."""
    data = bytearray(picture.read_bytes())
    data[len(data) // 2] ^= 255
    picture.write_bytes(data)


def test_rejects_are_judged_at_the_end(raw: Path, tmp_path: Path) -> None:
    good("plan", *CALM, raw, tmp_path / "strict")
    good("plan", *CALM, "--on-bad", "skip", "--max-bad", 0, raw, tmp_path / "lenient")
    good("plan", *CALM, "--on-bad", "skip", raw, tmp_path / "skip")
    damage(raw / "train/images/street_004.png")
    for name in ("strict", "lenient", "skip"):
        with without_workers():
            result = run("build-part", "--quiet", "--plan", tmp_path / name, "--part", "1/1", tmp_path / name / "out")
        assert (result.exit_code, "bad pair  train/street_004: " in result.stderr) == (0, True)
    result = run("commit", "--plan", tmp_path / "strict", tmp_path / "strict/out")
    assert (result.exit_code, "train/images/street_004.png: " in result.stderr) == (1, True)
    with pytest.raises(TooManyRejectsError, match=r"street_004\.png"):
        commit_pack(tmp_path / "lenient", tmp_path / "lenient/out")
    good("commit", "--plan", tmp_path / "skip", tmp_path / "skip/out")
    assert same(tmp_path / "skip/out", pack(raw, tmp_path / "whole", *CALM, "--on-bad", "skip"))


def test_a_plan_calls_no_function_that_is_not_allowed(tmp_path: Path) -> None:
    """Whoever can write a plan could name os:system, with commands as keys."""
    plan, marker = tmp_path / "plan", tmp_path / "marker"
    rows = Rows([f"touch {marker}"], row_loaders.scene_of)
    plan_pack(rows, plan, classes=3, labels="index")
    facts = (plan / "plan.json").read_text()
    assert "row_loaders:scene_of" in facts
    (plan / "plan.json").write_text(facts.replace("row_loaders:scene_of", "os:system"))
    for allowed in ([], ["row_loaders"]):
        options = [text for name in allowed for text in ("--allow-functions", name)]
        answer = run("build-part", "--plan", plan, "--part", "1/1", *options, tmp_path / "out")
        assert answer.exit_code == 2
        assert "the plan calls os:system; if that is what you planned: --allow-functions os" in answer.stderr
    assert not marker.exists()
    assert not (tmp_path / "out").exists()


def test_bad_pairs_are_built_again(raw: Path, whole: Path, tmp_path: Path) -> None:
    picture = raw / "train/images/street_004.png"
    data = picture.read_bytes()
    good("plan", *CALM, raw, tmp_path / "plan")
    damage(picture)
    with without_workers():
        assert len(build_part(tmp_path / "plan", "1/1", tmp_path / "out").rejects) == 1
        picture.write_bytes(data)
        assert build_part(tmp_path / "plan", "1/1", tmp_path / "out").built == 0
        assert build_part(tmp_path / "plan", "1/1", tmp_path / "out", retry_bad=True).built == 1
        commit_pack(tmp_path / "plan", tmp_path / "out")
    assert same(tmp_path / "out", whole)


LOSSES = {"a column": ("shards/*.image.npy", 1), "a receipt": ("shards/*.json", 1), "a ticket": ("tickets/*/1-*", 1)}


@pytest.mark.parametrize("loss", [*LOSSES, "cells"])
def test_what_a_power_cut_takes_of_a_part_is_built_again(plan: Path, whole: Path, tmp_path: Path, loss: str) -> None:
    """Names come to the disk at the end of a part, in any order; cells are counted again by the commit."""
    out = tmp_path / "out"
    parts(plan, out, ["1/2", "2/2"])
    pattern, code = LOSSES.get(loss, ("cells/*", 0))
    min(out.glob(pattern)).unlink()
    assert run("commit", "--quiet", "--plan", plan, out).exit_code == code
    missing = run("commit", "--plan", plan, "--missing", out).stdout.split()
    assert len(missing) == code
    parts(plan, out, missing)
    good("commit", "--quiet", "--plan", plan, out)
    assert same(out, whole)


def test_the_names_of_all_shards_are_on_the_disk_before_a_manifest_names_them(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    parts(plan, out, ["1/1"])
    calls: list[str] = []

    def note(name: str, usual: Callable[..., None], *arguments: object) -> None:
        calls.append(name)
        usual(*arguments)

    for owner, name in (("packer.building.finish", "sync_shards"), ("packer.publish.generation", "publish")):
        usual = getattr(import_module(owner), name)
        monkeypatch.setattr(f"{owner}.{name}", partial(note, name, usual))
    with without_workers():
        commit_pack(plan, out)
    assert calls == ["sync_shards", "publish"]


def test_two_results_of_one_shard_are_an_error_that_names_both(raw: Path, tmp_path: Path) -> None:
    plan, out = tmp_path / "plan", tmp_path / "out"
    good("plan", *CALM, raw, plan)
    parts(plan, out, ["1/1"])
    (ticket,) = [path for path in tickets(out) if path.name.startswith("0-")]
    for path in out.glob(f"shards/*{ticket.name.split('-')[1]}*"):
        path.unlink()
    write_png(raw / "train/images/street_000.png", scene(99, 24, 36)[0])
    parts(plan, out, ["1/1"])
    both = sorted(path.name for path in tickets(out) if path.name.startswith("0-"))
    assert len(both) == 2
    result = run("commit", "--plan", plan, out)
    assert result.exit_code == 1
    assert "shard 0, train/street_000 to street_" in result.stderr
    assert all(name in result.stderr for name in both)
    assert not (out / "manifest.json").exists()
    ticket.unlink()
    good("commit", "--quiet", "--plan", plan, out)
    assert same(out, pack(raw, tmp_path / "whole", *CALM))


def test_a_plan_of_files_that_changed_again_is_another_plan(tmp_path: Path) -> None:
    """Its keys, its sizes and the reused shards are those of the plan before, whose shards are in OUT."""
    raw, out = make_raw(tmp_path / "raw", {"train": 6}).path, tmp_path / "out"
    picture = sorted((raw / "train/images").iterdir())[0]
    for night in range(3):
        write_png(picture, np.full((24, 36, 3), night + 1, np.uint8))
        os.utime(picture, ns=(10**18 + night, 10**18 + night))
        reuse = ("--reuse", out) if night else ()
        good("plan", *CALM, *reuse, raw, tmp_path / f"plan{night}")
        parts(tmp_path / f"plan{night}", out, ["1/1"])
        good("commit", "--quiet", "--plan", tmp_path / f"plan{night}", out)
        rows = open_dataset(out)
        assert rows[rows.index(picture.stem)].image.unique().tolist() == [night + 1]


def test_raw_may_be_elsewhere_and_unchanged_shards_are_reused(raw: Path, whole: Path, tmp_path: Path) -> None:
    out = pack(raw, tmp_path / "out", *SMALL_SHARDS, "--trust", "digest")
    write_png(raw / "val/images/street_003.png", scene(99, 24, 36)[0])
    good("plan", *CALM, "--trust", "digest", "--reuse", out, raw, tmp_path / "plan")
    raw.rename(tmp_path / "moved")
    refused = run("build-part", "--plan", tmp_path / "plan", "--part", "1/1", out)
    assert (refused.exit_code, "are not on this machine" in refused.stderr) == (1, True)
    parts(tmp_path / "plan", out, ["1/2", "2/2"], "--raw", tmp_path / "moved")
    assert len(tickets(out)) == 1
    summary = json.loads(good("commit", "--json", "--quiet", "--plan", tmp_path / "plan", out).stdout)
    assert (summary["generation"], summary["rows"], 32 - summary["reused_rows"] <= 8) == (2, 32, True)
    assert same(out, pack(tmp_path / "moved", tmp_path / "whole", *SMALL_SHARDS, "--trust", "digest"))


def test_tickets_are_not_trusted(plan: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    parts(plan, out, ["1/1"])
    first = tickets(out)[0]
    (first.parent / "notes.txt").touch()
    (first.parent / f"{'9' * 12}{first.name[1:]}").touch()
    result = run("commit", "--plan", plan, out)
    assert (result.exit_code, "the plan has only" in result.stderr) == (4, True)
    (first.parent / f"{'9' * 12}{first.name[1:]}").unlink()
    mine = {path.name.split("-")[0]: path for path in tickets(out)}
    other = mine["0"].name.partition("-")[2]
    moved = mine["1"].rename(mine["1"].with_name(f"1-{other}"))
    assert run("commit", "--plan", plan, out).exit_code == 4, "it is the receipt of another shard"
    moved.unlink()
    first.rename(first.with_name(f"{first.name[:-1]}{'0' if first.name[-1] != '0' else '1'}"))
    assert run("commit", "--plan", plan, out).exit_code == 1, "its receipt is another one"
    assert run("commit", "--plan", plan, "--missing", out).stdout == "1/1\n"


def test_tickets_of_two_shards_that_were_swapped_are_found(tmp_path: Path) -> None:
    """Their rows are those of the plan, in another order."""
    make_tiny(tmp_path / "raw", {"train": 6})
    plan_pack(tmp_path / "raw", tmp_path / "plan", shard_size="12KB")
    build_part(tmp_path / "plan", "1/1", tmp_path / "out")
    (first, second), (one, two) = tickets(tmp_path / "out")[:2], ("0", "1")
    rests = [path.name.partition("-")[2] for path in (first, second)]
    assert [path.name.partition("-")[0] for path in (first, second)] == [one, two]
    second.rename(second.with_name(f"{one}-{rests[1]}"))
    first.rename(first.with_name(f"{two}-{rests[0]}"))
    with pytest.raises(DamagedError, match="is not shard 0 of"):
        commit_pack(tmp_path / "plan", tmp_path / "out")


@pytest.mark.parametrize(
    "source",
    ['{"kind": "no such"}', '{"kind": ["folder"]}', '{"kind": "folder"}', '{"kind": "objects", "url": 3}', "{}"],
)
def test_a_plan_whose_source_is_not_one_is_damaged(plan: Path, tmp_path: Path, source: str) -> None:
    copy = shutil.copytree(plan, tmp_path / "plan")
    facts = json.loads((copy / "plan.json").read_text())
    (copy / "plan.json").write_text(json.dumps({**facts, "source": source}))
    result = run("build-part", "--plan", copy, "--part", "1/1", tmp_path / "out")
    assert result.exit_code in (1, 4)
    assert result.stderr.startswith("packer: ")


def test_words(plan: Path, raw_folder: RawFolder, tmp_path: Path) -> None:
    assert run("build-part", "--plan", plan, "--part", "0/4", tmp_path / "out").exit_code == 2
    assert run("build-part", "--plan", plan, tmp_path / "out").exit_code == 2
    result = run("build", "--part", "1/4", raw_folder.path, tmp_path / "out")
    assert (result.exit_code, "--part: is an option of packer build-part" in result.stderr) == (2, True)
    result = run("commit", "--plan", plan, tmp_path / "out")
    assert (result.exit_code, "no part of a plan was built there" in result.stderr) == (1, True)
    assert run("commit", "--plan", raw_folder.path, tmp_path / "out").exit_code == 1
    assert run("plan", *CALM, raw_folder.path, plan).exit_code == 1
    good("plan", *CALM, "--dry-run", raw_folder.path, tmp_path / "dry")
    assert not (tmp_path / "dry").exists()
    result = run("plan", *CALM, raw_folder.path, "s3://bucket/plan")
    assert (result.exit_code, "s3://bucket/plan: a plan is a folder of this machine" in result.stderr) == (1, True)
    facts = json.loads(good("plan", *CALM, "--json", raw_folder.path, tmp_path / "plan").stdout)
    assert (len(facts["sha256"]), facts["shards"]) == (64, len(range(facts["shards"])))
    assert [str(PlanPart.of(shard, 3)) for shard in range(4)] == ["1/3", "2/3", "3/3", "1/3"]
    assert list(PlanPart.from_text("3/16").shards(40)) == [2, 18, 34]


def test_a_part_names_the_options_that_the_plan_has(tmp_path: Path) -> None:
    for option, words in (
        ("--on-bad=skip", "--on-bad: the plan has it; make a new plan with packer plan"),
        ("--no-such", "No such option '--no-such'"),
    ):
        refused = run("build-part", "--plan", tmp_path, "--part", "1/1", option, tmp_path / "out")
        assert (refused.exit_code, words in refused.stderr) == (2, True)
