"""With --json every exit code prints JSON on stdout; the words stay on stderr."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from conftest import RawFolder, make_raw, pack, run, write_png

import packer.building
from packer.cli import main
from packer.errors import BusyError
from packer.signals import StoppedError


@pytest.fixture
def raw(tmp_path: Path) -> RawFolder:
    return make_raw(tmp_path / "raw", {"train": 4, "val": 2})


@pytest.fixture
def out(raw: RawFolder, tmp_path: Path) -> Path:
    return pack(raw.path, tmp_path / "out")


def answer(done: Result, code: int) -> dict[str, Any]:
    """Return the JSON of a command that failed with this exit code."""
    assert done.exit_code == code
    facts: dict[str, Any] = json.loads(done.stdout)
    assert facts["exit_code"] == code
    assert facts["error"].splitlines()[0] in done.stderr
    return facts


def test_too_many_bad_pairs(raw: RawFolder, tmp_path: Path) -> None:
    bad = raw.path / "train/images/street_001.png"
    bad.write_bytes(bad.read_bytes()[:-30])
    done = run("build", "--json", "--quiet", "--on-bad", "skip", "--max-bad", "0", raw.path, tmp_path / "new")
    assert answer(done, 3)["problems"][0]["files"] == ["train/images/street_001.png"]


def test_findings(raw: RawFolder, tmp_path: Path) -> None:
    write_png(raw.path / "val/images/street_000.png", raw.images["train", "street_000"])
    done = run("build", "--json", "--quiet", "--fail-on", "leakage,absent-class", raw.path, tmp_path / "new")
    (leak,) = answer(done, 6)["findings"]
    assert leak["kind"] == "leakage"
    assert (leak["pairs"], leak["splits"]) == (["train/street_000", "val/street_000"], ["train", "val"])


def test_a_pinned_or_damaged_pack(raw: RawFolder, out: Path) -> None:
    run("rollback", "--pin", out, 1)
    answer(run("build", "--json", raw.path, out), 5)
    (out / "manifest.json").write_text("{")
    for command in ("info", "stats", "verify", "bench"):
        answer(run(command, "--json", out), 4)


def test_damage_is_one_answer(out: Path) -> None:
    path = next((out / "shards").glob("*.npy"))
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    done = run("verify", "--json", "--quiet", out)
    assert done.exit_code == 4
    facts = json.loads(done.stdout)
    assert facts["damage"]
    assert facts["error"] in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("build", "--json"),
        ("build", "--bogus", "--json", "RAW", "OUT"),
        ("build", "--json", "--size", "x", "RAW", "OUT"),
        ("info", "--bogus", "--json", "OUT"),
        ("bench", "--json", "--crop", "x", "OUT"),
        ("diff", "--json", "RAW"),
        ("stage", "--json"),
        ("gc", "--json", "--keep", "0", "OUT"),
        ("diagnose", "--json"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], tmp_path: Path) -> None:
    answer(run(*(str(tmp_path / word) if word.isupper() else word for word in arguments)), 2)


def test_every_command_with_json_answers_for_a_folder_that_is_missing(tmp_path: Path) -> None:
    names = [name for name, command in main.commands.items() if any("--json" in param.opts for param in command.params)]
    assert len(names) == 21
    for name in sorted(set(names) - {"diagnose"}):
        folders = [tmp_path / "missing"] * (
            2 if name in ("build", "diff", "plan", "pull", "push", "stage", "which") else 1
        )
        options: tuple[object, ...] = ("--plan", tmp_path / "missing") if name in ("commit", "build-part") else ()
        options += ("--part", "1/1") if name == "build-part" else ()
        more = {"extract": ("key", tmp_path / "new"), "forget": ("key",), "inspect": ("key",)}.get(name, ())
        answer(run(name, "--json", *options, *folders, *more), 1)


def test_json_of_a_configuration_counts(raw: RawFolder, tmp_path: Path) -> None:
    config = tmp_path / "packer.toml"
    config.write_text("json = true\n")
    answer(run("build", "--config", config, tmp_path / "nowhere", tmp_path / "new"), 1)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StoppedError(signal.SIGTERM), 143),
        (KeyboardInterrupt(), 130),
        (BusyError("another process is changing it"), 75),
        (MemoryError("40 GiB"), 1),
        (OSError(28, "No space left on device", "x"), 1),
    ],
)
def test_signals_and_the_machine(
    error: BaseException, code: int, raw: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(packer.building, "build_from", fail)
    answer(run("build", "--json", "--quiet", raw.path, tmp_path / "new"), code)


def test_a_mistake_of_ours_has_an_answer_and_a_traceback(raw: RawFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> Callable[[], None]:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(packer.building, "build_from", fail)
    done = CliRunner().invoke(main, ["build", "--json", str(raw.path), str(raw.path) + "-new"])
    assert isinstance(done.exception, ZeroDivisionError)
    assert json.loads(done.stdout)["error"] == "ZeroDivisionError: oops"


def test_words_alone_without_json(tmp_path: Path) -> None:
    assert run("info", tmp_path / "missing").stdout == ""
