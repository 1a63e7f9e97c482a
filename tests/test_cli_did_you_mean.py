"""A wrong value is answered with the value that was probably meant, and the answer is a value that works."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from conftest import NAMES, RawFolder, errors_of, good, run

from packer.config.options import OPTIONS, value_of

pytestmark = pytest.mark.usefixtures("in_process")

MEANT = {
    "--format lmbd": "lmdb",
    "--format h5": "hdf5",
    "--labels color": "--label-codec colour",
    "--labels indices": "index",
    "--label-codec color": "colour",
    "--interpolation bilinear": "linear",
    "--fit letter-box": "letterbox",
    "--trust time": "mtime",
    "--size 512": "512x512",
    "--size 512,256": "512x256",
    "--size '512 * 256'": "512x256",
    "--size 512/256": "512x256",
    "--split 0.8/0.1/0.1": "80/10/10",
    "--split 8/1/1": "80/10/10",
    "--split 80,10,10": "80/10/10",
    "--split 80:20": "80/20",
    "--split 80%/20%": "80/20",
    "--split train=0.9,val=0.1": "train=90,val=10",
    "--split train:90,val:10": "train=90,val=10",
    "--shard-size 128M": "128MiB",
    "--shard-size 2g": "2GiB",
    "--max-bad 0.1": "10%",
    "--max-bad '5 %'": "5%",
    "--image-range 0-10000": "0,10000",
    "--fail-on leakages": "leakage",
    "--preset cityscape": "cityscapes",
    "--preset vocc": "voc",
}
"""An option of a build with a wrong value, and what was meant."""
ACCEPTED = {
    "--format LMDB": ("format", "lmdb"),
    "--labels Index": ("labels", "index"),
    "--size Native": ("size", "native"),
    "--size 8X9": ("size", "8x9"),
    "--preset VOC": ("label-codec", "index"),
    "--log-format JSON": ("log-format", "json"),
}
"""Other spellings that can mean one thing only, with the line of the configuration that they make."""


@pytest.mark.parametrize("call", MEANT)
def test_the_value_that_was_meant_is_named_and_works(call: str) -> None:
    words = shlex.split(call)
    assert f"did you mean {MEANT[call]}?" in errors_of(2, "build", *words, "raw", "out")
    *other, value = MEANT[call].split()
    name = (other or words)[0].removeprefix("--")
    if name in OPTIONS:
        value_of(OPTIONS[name], value)


@pytest.mark.parametrize("call", ACCEPTED)
def test_another_spelling_that_can_mean_one_thing_only_is_accepted(call: str) -> None:
    done = good("build", *shlex.split(call), "--print-config", "raw", "out")
    key, value = ACCEPTED[call]
    assert f'{key} = "{value}"' in done.stdout.splitlines()


def test_a_configuration_and_the_environment_get_the_same_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "packer.toml").write_text('format = "lmbd"\nlabels = "color"\nsplit = "0.8/0.2"\n')
    words = run("build", "--config", tmp_path / "packer.toml", "raw", "out").stderr
    for meant in ("lmdb", "--label-codec colour", "80/20"):
        assert f"did you mean {meant}?" in words
    monkeypatch.setenv("PACKER_SIZE", "512")
    assert "PACKER_SIZE: '512'" in (words := run("build", "raw", "out").stderr)
    assert "did you mean 512x512?" in words


def test_nothing_is_guessed_where_nothing_is_near() -> None:
    for words in (("--format", "parquet"), ("--size", "large"), ("--split", "most"), ("--split", "60/60")):
        assert "did you mean" not in run("build", *words, "raw", "out").stderr, words


def test_a_packed_format_in_capitals_is_that_format(raw_folder: RawFolder, tmp_path: Path) -> None:
    assert run("build", "--quiet", "--format", "LMDB", "--size", "8x8", raw_folder.path, tmp_path / "o").exit_code == 0
    assert 'format = "lmdb"' in (tmp_path / "o" / "packer.toml").read_text()


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("gc", "--grace", "24", "out"), "24h"),
        (("bench", "--crop", "512", "out"), "512x512"),
        (("bench", "--batch", "8x16", "out"), "8,16"),
        (("bench", "--labels", "indices", "out"), "index"),
    ],
)
def test_other_commands_answer_likewise(words: tuple[str, ...], meant: str) -> None:
    assert f"did you mean {meant}?" in errors_of(2, *words)


def test_a_class_to_ignore_is_found_in_other_letters(raw_folder: RawFolder, tmp_path: Path) -> None:
    errors = errors_of(2, "build", "--size", "8x8", "--ignore", NAMES[0].upper(), raw_folder.path, tmp_path / "out")
    assert f"did you mean {NAMES[0]}?" in errors
