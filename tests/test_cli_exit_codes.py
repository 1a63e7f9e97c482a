"""Wrong usage exits 2 in every command, wherever the wrong value stands. Folders of data have codes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import REPO, make_raw, pack, run

from packer import InputError, UsageError, build_pack
from packer.cli.exit_code import DAMAGED, FAILED, USAGE

FILES: dict[str, str | bytes] = {
    "broken.toml": "format = ",
    "unknown.toml": 'formt = "npy"',
    "type.toml": "size = true",
    "value.toml": 'format = "lmbd"',
    "decide.toml": 'decide = ["which classes?"]',
    "preset.toml": 'preset = "vocc"',
    "class.toml": '[[class]]\nname = "sky"\n',
    "classes.csv": "name,r,g,b\nsky,1,2\n",
    "classes.json": "{",
    "empty.txt": "",
    "pairs.csv": "left,right\na.png,b.png\n",
    "latin.toml": b"format = '\xff'",
}
USAGES = {
    "no command": "nothing",
    "unknown command": "biuld {raw} {new}",
    "unknown option": "build --formt npy {raw} {new}",
    "missing argument": "build {raw}",
    "one argument too many": "info {out} {out}",
    "bad choice": "build --format lmbd {raw} {new}",
    "bad size": "build --size 512 {raw} {new}",
    "bad number": "build --workers 0 {raw} {new}",
    "bad shares": "build --split 0.8/0.1/0.1 {raw} {new}",
    "bad template": "build --image a --label b {raw} {new}",
    "bad class values": "build --classes 9-5 {raw} {new}",
    "unknown class to ignore": "build --classes 12 --ignore hedge {raw} {new}",
    "unknown kind of finding": "build --fail-on leak {raw} {new}",
    "unknown preset": "build --preset vocc {raw} {new}",
    "unknown preset to show": "presets show vocc",
    "image without label": "build --image a/{{key}}.png {raw} {new}",
    "pairs and templates": "build --pairs {files}/pairs.csv --lists lists {raw} {new}",
    "two sources of splits": "build --split 80/20 --lists lists {raw} {new}",
    "split-by without split": "build --split-by patient {raw} {new}",
    "max-bad without skip": "build --max-bad 3 {raw} {new}",
    "native with size": "build --fit native --size 8x8 {raw} {new}",
    "fit without size": "build --fit letterbox {raw} {new}",
    "overlap without tile": "build --size 8x8 --overlap 2 {raw} {new}",
    "threshold without binary": "build --threshold 3 {raw} {new}",
    "missing config": "build --config {files}/absent.toml {raw} {new}",
    "config that is a folder": "build --config {files} {raw} {new}",
    "config that is not TOML": "build --config {files}/broken.toml {raw} {new}",
    "config that is not UTF-8": "build --config {files}/latin.toml {raw} {new}",
    "unknown key": "build --config {files}/unknown.toml {raw} {new}",
    "wrong type": "build --config {files}/type.toml {raw} {new}",
    "wrong value": "build --config {files}/value.toml {raw} {new}",
    "open question": "build --config {files}/decide.toml {raw} {new}",
    "unknown preset in a config": "build --config {files}/preset.toml {raw} {new}",
    "bad class in a config": "build --config {files}/class.toml {raw} {new}",
    "missing class table": "build --classes {files}/absent.csv {raw} {new}",
    "bad class table": "build --classes {files}/classes.csv {raw} {new}",
    "bad class table of JSON": "build --classes {files}/classes.json {raw} {new}",
    "empty class table": "build --classes {files}/empty.txt {raw} {new}",
    "missing pairs": "build --pairs {files}/absent.csv {raw} {new}",
    "pairs without a heading": "build --pairs {files}/pairs.csv {raw} {new}",
    "missing folder of lists": "build --lists absent {raw} {new}",
    "missing list": "build --lists absent/{{split}}.txt {raw} {new}",
    "metrics in a missing folder": "build --metrics-file {files}/absent/a.prom {raw} {new}",
    "metrics in place of a folder": "build --metrics-file {files} {raw} {new}",
    "environment: bad number": "PACKER_WORKERS=many build {raw} {new}",
    "environment: bad choice": "PACKER_FORMAT=lmbd build {raw} {new}",
    "environment: bad flag": "PACKER_QUIET=perhaps build {raw} {new}",
    "environment: missing config": "PACKER_CONFIG=/absent.toml build {raw} {new}",
    "probe: missing class table": "probe --classes {files}/absent.csv {raw}",
    "probe: missing pairs": "probe --pairs {files}/absent.csv {raw}",
    "probe: missing lists": "probe --lists absent {raw}",
    "probe: bad sample": "probe --sample some {raw}",
    "probe: file exists": "probe --write {files}/empty.txt {raw}",
    "probe: missing folder": "probe --write {files}/absent/a.toml {raw}",
    "diff: missing config": "diff --config {files}/absent.toml {out} {raw}",
    "repair: bad config": "repair --config {files}/broken.toml {out} {raw}",
    "repair: bad number": "repair --workers none {out} {raw}",
    "verify: bad number": "verify --workers 0 {out}",
    "rollback: not a number": "rollback {out} last",
    "rollback: no such generation": "rollback {out} 9",
    "gc: bad time": "gc --grace soon {out}",
    "gc: bad number": "gc --keep 0 {out}",
    "stage: no target": "stage {out}",
    "stage: two targets": "stage --ram {out} {new}",
    "stage: no pack": "stage",
    "stage: list and drop": "stage --list --drop",
    "stage: list of a pack": "stage --list {out}",
    "bench: no such split": "bench --split tset {out}",
    "bench: bad numbers": "bench --batch 8x16 {out}",
    "bench: bad crop": "bench --crop 0x5 {out}",
    "diagnose: no command": "diagnose",
    "diagnose: no such command": "diagnose -- /absent/train",
    "diagnose: bad report": "diagnose --report a.pdf -- true",
    "diagnose: missing folder": "diagnose --report {files}/absent/a.html -- true",
    "completion: unknown shell": "completion tcsh",
    "help: unknown command": "help biuld",
}
"""Every wrong usage; the same arguments are wrong tomorrow, too."""
STATES = {
    "missing RAW": (FAILED, "build {files}/absent {new}"),
    "RAW without pairs": (FAILED, "build {files} {new}"),
    "OUT is a file": (FAILED, "build {raw} {files}/empty.txt"),
    "OUT is not a pack": (FAILED, "build {raw} {files}"),
    "no pack": (FAILED, "info {files}/absent"),
    "bench of no pack": (FAILED, "bench {files}/absent"),
    "nothing to drop": (FAILED, "stage --drop {out}"),
    "a pair is bad": (FAILED, "build {bad} {new}"),
    "too many are bad": (3, "build --on-bad skip --max-bad 0 {bad} {new}"),
    "damaged": (DAMAGED, "verify {damaged}"),
    "damaged manifest": (DAMAGED, "info {unreadable}"),
    "pinned": (5, "build --config {pinned}/packer.toml --size 9x9 {raw} {pinned}"),
}
"""Folders may be absent or damaged, and pictures bad: the same arguments may do well tomorrow."""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders and files that the cases name."""
    root = tmp_path_factory.mktemp("places")
    raw, bad = make_raw(root / "raw", {"train": 3, "val": 2}).path, make_raw(root / "bad", {"train": 3}).path
    next(path for path in sorted(bad.rglob("*.png"))).write_bytes(b"no picture")
    (root / "files").mkdir()
    for name, content in FILES.items():
        (root / "files" / name).write_bytes(content.encode() if isinstance(content, str) else content)
    packs = {name: pack(raw, root / name, "--size", "8x8") for name in ("out", "damaged", "unreadable", "pinned")}
    shard = next(path for path in sorted((packs["damaged"] / "shards").rglob("*")) if path.is_file())
    shard.write_bytes(shard.read_bytes()[:-1] + b"?")
    (packs["unreadable"] / "manifest.json").write_text("{")
    assert run("rollback", "--pin", packs["pinned"], 1).exit_code == 0
    return {"raw": raw, "bad": bad, "files": root / "files", "new": root / "new", **packs}


@pytest.fixture(autouse=True)
def nothing_staged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield
    assert not list(tmp_path.iterdir())


def exit_of(call: str, places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Run a command of the tables, with the environment variable before it."""
    words = [word.format(**places) for word in call.split()]
    if "=" in words[0]:
        monkeypatch.setenv(*words.pop(0).split("="))
    done = run(*words)
    return done.exit_code, done.stderr


@pytest.mark.parametrize("name", USAGES)
def test_wrong_usage_exits_2(name: str, places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    code, words = exit_of(USAGES[name], places, monkeypatch)
    assert code == USAGE, words
    assert words.strip()
    assert not places["new"].exists()


@pytest.mark.parametrize("name", STATES)
def test_folders_and_pictures_have_codes_of_their_own(
    name: str, places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, call = STATES[name]
    code, words = exit_of(call, places, monkeypatch)
    assert code == expected, words


def test_an_error_names_the_environment_variable(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACKER_WORKERS", "many")
    assert "PACKER_WORKERS: 'many': expected" in run("build", places["raw"], places["new"]).stderr


def test_python_catches_a_wrong_file_as_wrong_usage_and_has_all_its_problems(places: dict[str, Path]) -> None:
    with pytest.raises(UsageError) as caught:
        build_pack(places["raw"], places["new"], config=places["files"] / "unknown.toml")
    assert caught.value.exit_code == USAGE
    assert isinstance(caught.value, InputError)
    assert len(caught.value.problems) == 1


def test_the_guide_lists_the_exit_codes() -> None:
    page = (REPO / "docs" / "guide" / "errors.md").read_text()
    rows = {line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ")}
    assert {str(code) for code, _ in STATES.values()} | {"0", str(USAGE), "6", "75"} <= rows
