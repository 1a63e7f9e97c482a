"""The public functions of `packer`: their exact surface, the same results and the same errors as the commands."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import RawFolder, make_raw, python, run

import packer
from packer import (
    InputError,
    PackError,
    UsageError,
    build_pack,
    diff_pack,
    pack_stats,
    probe_folder,
    repair_pack,
    verify_pack,
)
from packer.classes.documents import parse_toml
from packer.cli import main
from packer.config.build_options import BuildOptions
from packer.config.options import BUILD, CONFIGURATION
from packer.probe.request import ProbeOptions
from packer.progress import Advance
from readers import open_dataset
from readers.contract.errors import NoPackError
from readers.contract.manifest import Manifest

SIGNATURES = {
    "Rows": ["keys", "load", "version", "sizes", "without", "types"],
    "build_pack": ["raw", "out", "progress", "options"],
    "build_part": ["plan", "part", "out", "raw", "workers", "retry_bad", "allow_functions", "scratch", "progress"],
    "commit_pack": ["plan", "out", "scratch", "no_conditions", "progress"],
    "diff_pack": ["out", "raw", "config"],
    "forget_row": ["out", "key", "splits", "dry_run"],
    "index_pack": ["out", "again", "workers", "progress"],
    "pack_stats": ["out", "percentiles", "foreground"],
    "plan_pack": ["raw", "plan", "reuse", "progress", "options"],
    "plan_part": ["raw", "plan", "part", "progress", "options"],
    "probe_folder": ["raw", "options"],
    "progress_bar": ["task", "total", "unit"],
    "pull_pack": ["url", "out", "workers", "progress"],
    "push_pack": ["out", "url", "workers", "no_conditions", "progress"],
    "repair_pack": ["out", "raw", "config", "workers", "progress", "found", "on_bad", "max_bad"],
    "rows_of_file": ["file", "folders", "damaged"],
    "stage_pack": ["out", "target", "ram", "workers", "progress"],
    "verify_pack": ["out", "deep", "workers", "scratch", "progress"],
}
FIELDS = {
    "ClassesField": ["name", "files", "classes", "form", "codec", "unknown", "threshold", "divisor", "nodata"],
    "IdsField": ["name", "files", "codec", "dtype"],
    "MultilabelField": ["name", "files", "classes", "form"],
    "PictureField": ["name", "files", "bands", "range", "alpha", "dtype", "decode", "nodata", "pad", "times"],
    "ValuesField": ["name", "files", "invalid", "scale", "interpolation", "dtype"],
}
NOT_GIVEN: Any = {"unknown": None, "ignore": None}
ERRORS = {
    "BusyError",
    "EngineError",
    "FindingsError",
    "InputError",
    "PackError",
    "PartsError",
    "PinnedError",
    "RejectedError",
    "SettingsError",
    "TargetError",
    "TooManyRejectsError",
    "UsageError",
    "VersionsError",
}


def test_the_surface_is_exactly_this() -> None:
    assert sorted(packer.__all__) == packer.__all__ == dir(packer)
    assert set(packer.__all__) == {*SIGNATURES, *FIELDS, *ERRORS, "__version__"}
    for name, parameters in {**SIGNATURES, **FIELDS}.items():
        assert list(inspect.signature(getattr(packer, name)).parameters) == parameters
    for name in ERRORS:
        assert issubclass(getattr(packer, name), PackError)
    with pytest.raises(AttributeError, match="no attribute 'pack_build'"):
        packer.pack_build  # noqa: B018


def test_the_options_from_python_are_those_of_the_command() -> None:
    names = {option.name.replace("-", "_") for option in (*CONFIGURATION, *BUILD.values())} - {"field"} | {"fields"}
    assert set(BuildOptions.__annotations__) == names


def test_the_options_of_a_probe_are_those_of_the_command(raw_folder: RawFolder) -> None:
    names = {parameter.name for parameter in main.commands["probe"].params} - {"raw", "write", "as_json"}
    assert set(ProbeOptions.__annotations__) == names
    with pytest.raises(TypeError, match="did you mean workers"):
        probe_folder(raw_folder.path, worker=1)  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="expected a list"):
        probe_folder(raw_folder.path, ignore="sky")
    found = probe_folder(raw_folder.path, classes=12, ignore=[3], sample=2, workers=None, pairs=None)
    assert found.survey is not None
    assert found.survey.sample


EACH_ALONE = """
import os, sys, cv2, packer
for name in sys.argv[1:]:
    if os.fork() == 0:
        getattr(packer, name)
        os._exit("click" in sys.modules)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 0, name
"""


def test_no_public_function_needs_click() -> None:
    python("-c", EACH_ALONE, *SIGNATURES, *sorted(ERRORS))


def test_importing_packer_is_light() -> None:
    code = "import sys, packer; assert not {'cv2', 'click', 'torch', 'h5py', 'pyarrow', 'tqdm'} & set(sys.modules)"
    python("-c", code)


def test_python_and_the_command_build_the_same_pack(tmp_path: Path, raw_folder: RawFolder) -> None:
    summary = build_pack(
        raw_folder.path,
        tmp_path / "python",
        format="arrow",
        size=(20, 30),
        labels="index",
        ignore=["sky"],
        shard_size=30_000,
    )
    options = ("--format", "arrow", "--size", "20x30", "--labels", "index", "--ignore", "sky", "--shard-size", "30000")
    assert run("build", *options, raw_folder.path, tmp_path / "command").exit_code == 0
    command = Manifest.load(tmp_path / "command")
    assert (summary.manifest.table, summary.manifest.recipe) == (command.table, command.recipe)
    assert summary.rows == summary.pairs == len(raw_folder.images)
    kept = [(tmp_path / name / "packer.toml").read_text().replace(f'{name}"', '"') for name in ("python", "command")]
    assert kept[0] == kept[1]
    assert len(open_dataset(tmp_path / "python", "train")) == 23


def test_every_kind_of_value_can_be_given_as_a_python_value(tmp_path: Path, raw_folder: RawFolder) -> None:
    table = tmp_path / "classes.csv"
    table.write_bytes((raw_folder.path / "class_dict.csv").read_bytes())
    values: BuildOptions = {
        "image": "{folder}/images/{key}.png",
        "label": "{folder}/masks/{key}.png",
        "split": {"train": 50, "val": 50},
        "classes": table,
        "size": "native",
        "image_dtype": "float32",
        "on_bad": "skip",
        "max_bad": 0.001,
        "workers": 1,
        "divisor": 256,
        "near_duplicates": True,
    }
    texts: BuildOptions = {**values, "split": "train=50,val=50", "classes": str(table), "max_bad": "0.1%"}
    given = build_pack(raw_folder.path, tmp_path / "given", **values, **NOT_GIVEN)
    assert build_pack(raw_folder.path, tmp_path / "texts", **texts).manifest.recipe == given.manifest.recipe
    kept = parse_toml(Path("kept"), (tmp_path / "given" / "packer.toml").read_text())
    assert float(kept["max-bad"].removesuffix("%")) == 0.1
    assert kept["split"] == "train=50,val=50"


def test_a_config_and_a_preset_can_be_named(tmp_path: Path, raw_folder: RawFolder) -> None:
    (tmp_path / "packer.toml").write_text('labels = "index"\nsize = "10x12"\n')
    summary = build_pack(raw_folder.path, tmp_path / "out", config=tmp_path / "packer.toml", size=(8, 9))
    assert (summary.manifest.recipe["size"], summary.manifest.field("label").form) == ([8, 9], "index")
    with pytest.raises(UsageError, match="--preset vok: unknown preset; did you mean voc"):
        build_pack(raw_folder.path, tmp_path / "out", preset="vok")


def test_the_errors_are_those_of_the_command(tmp_path: Path, raw_folder: RawFolder) -> None:
    def command(*options: object) -> str:
        return run("build", *options, raw_folder.path, tmp_path / "out").stderr

    with pytest.raises(UsageError) as usage:
        build_pack(raw_folder.path, tmp_path / "out", size=(0, 5))
    assert command("--size", "0x5") == f"packer: {usage.value}\n"
    with pytest.raises(UsageError, match=r"--max-bad: needs --on-bad skip"):
        build_pack(raw_folder.path, tmp_path / "out", max_bad=3)
    with pytest.raises(InputError, match="cannot be read"):
        build_pack(raw_folder.path, tmp_path / "out", classes=tmp_path / "none.csv")
    with pytest.raises(TypeError, match="'shardsize' is not known; did you mean shard_size"):
        build_pack(raw_folder.path, tmp_path / "out", shardsize=1)  # type: ignore[call-arg]
    with pytest.raises(UsageError, match=r"--ignore: expected a list"):
        build_pack(raw_folder.path, tmp_path / "out", ignore="sky")
    assert not (tmp_path / "out").exists()


def test_the_life_of_a_pack_without_a_command_line(tmp_path: Path) -> None:
    raw, out = make_raw(tmp_path / "raw", {"train": 6}), tmp_path / "out"
    found = probe_folder(raw.path).pairing
    assert found is not None
    assert [split for split, *_ in found.pairs] == ["train"] * 6
    tasks: list[str] = []

    @contextmanager
    def progress(task: str, total: int, unit: str) -> Iterator[Advance]:
        tasks.append(f"{task} {total} {unit}")
        yield lambda done: None

    build_pack(raw.path, out, progress=progress, shard_size="8KB")
    assert tasks == ["packing 6 rows"]
    assert diff_pack(out, raw.path).is_empty
    [train] = pack_stats(out)
    assert (train.split, train.rows, train.sizes) == ("train", 6, {(24, 36): 6})
    assert verify_pack(out, deep=True) == []
    damaged = next(path for path in (out / "shards").iterdir() if path.suffix == ".npy" and "image" in path.name)
    data = bytearray(damaged.read_bytes())
    data[-1] ^= 1
    damaged.write_bytes(data)
    damage = verify_pack(out)
    assert {item.shard for item in damage} == {damaged.name.partition(".")[0]}
    assert damage[0].file == damaged
    assert damage[1].row is not None
    repair = repair_pack(out, raw.path)
    assert list(repair.damage) == damage
    assert repair.summary is not None
    assert repair_pack(out, raw.path).summary is None
    (raw.path / "train" / "images" / "street_000.png").unlink()
    (raw.path / "train" / "masks" / "street_000.png").unlink()
    assert diff_pack(out, raw.path).removed == ("train/street_000",)


def test_a_folder_without_a_pack_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoPackError):
        verify_pack(tmp_path)
    with pytest.raises(NoPackError):
        pack_stats(tmp_path)


SCRIPT = """
from packer import build_pack, probe_folder
print("started")
print(probe_folder({raw!r}, workers=2).files, build_pack({raw!r}, {out!r}, workers=2, shard_size="8KB").rows)
"""


@pytest.mark.parametrize("from_stdin", [False, True])
def test_a_script_needs_no_main_guard(tmp_path: Path, raw_folder: RawFolder, from_stdin: bool) -> None:
    """The workers do not run the script again."""
    text = SCRIPT.format(raw=str(raw_folder.path), out=str(tmp_path / "out"))
    (tmp_path / "script.py").write_text(text)
    command = [sys.executable, "-" if from_stdin else str(tmp_path / "script.py")]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["started", "65", "32"]
    assert not done.stderr
