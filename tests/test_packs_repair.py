"""`packer diff` lists the changes of a build, `packer repair` repairs damage; leftovers of a nightly build."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from conftest import COLOURS, RawFolder, errors_of, good, json_of, make_raw, run, scene, write_png
from drills.published import published
from scenes.tiny import SHARDS as SMALL
from scenes.tiny import age
from test_shards_reuse import built

from packer.publish.pin import pin
from packer.signals import StoppedError
from readers.contract.errors import DamagedError
from readers.contract.manifest import STORAGES

pytestmark = pytest.mark.usefixtures("in_process")


@pytest.fixture
def night(tmp_path: Path) -> RawFolder:
    raw = make_raw(tmp_path / "raw", {"train": 14, "val": 4})
    age(raw.path)
    return raw


def diffed(raw: Path, out: Path, exit_code: int) -> dict[str, Any]:
    done = run("diff", "--json", out, raw)
    assert done.exit_code == exit_code, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_diff_names_what_came_went_and_changed(night: RawFolder, tmp_path: Path) -> None:
    out = tmp_path / "out"
    built(night.path, out)
    same = diffed(night.path, out, 0)
    assert (same["rebuilt_shards"], same["dropped_shards"]) == (0, 0)
    assert "up to date" in run("diff", out, night.path).stdout
    image, index = scene(99, 24, 36)
    write_png(night.path / "train/images/street_new.png", image)
    write_png(night.path / "train/masks/street_new.png", COLOURS[index])
    write_png(night.path / "train/images/street_004.png", image)
    for kind in ("images", "masks"):
        (night.path / "val" / kind / "street_002.png").unlink()
    answer = diffed(night.path, out, 1)
    assert answer["added"] == ["train/street_new"]
    assert answer["changed"] == ["train/street_004"]
    assert answer["changed_fields"] == {"train/street_004": ["image"]}
    assert answer["removed"] == ["val/street_002"]
    assert answer["rebuilt_shards"] > 0
    assert answer["recipe"] == {}
    text = run("diff", out, night.path)
    assert text.exit_code == 1
    assert "removed   val/street_002" in text.stdout
    assert "changed   train/street_004: image\n" in text.stdout
    built(night.path, out)
    assert diffed(night.path, out, 0)["added"] == []


def test_diff_names_the_option_that_differs(night: RawFolder, tmp_path: Path) -> None:
    out, config = tmp_path / "out", tmp_path / "other.toml"
    built(night.path, out)
    config.write_text('labels = "index"\nshard-size = "12KB"\n')
    text = run("diff", "--config", config, out, night.path)
    assert text.exit_code == 1
    assert "recipe    label.form: 'onehot' becomes 'index'" in text.stdout
    words = run("build", "--config", config, night.path, out).stderr
    assert "label.form changed" in words


@pytest.mark.parametrize("storage", STORAGES)
def test_repair_makes_the_same_bytes_again(night: RawFolder, tmp_path: Path, storage: str) -> None:
    out = tmp_path / "out"
    built(night.path, out, "--format", storage)
    whole = published(out)
    assert "nothing to repair" in run("repair", out, night.path).stdout
    shards = sorted(path for path in out.glob("shards/*") if not path.name.endswith(".json"))
    data = bytearray(shards[0].read_bytes())
    data[len(data) // 2] ^= 4
    shards[0].write_bytes(data)
    shards[-1].unlink()
    sorted(out.glob("shards/*.json"))[2].write_text("{}")
    assert run("verify", out).exit_code == 4
    done = good("repair", "--quiet", out, night.path)
    assert "generation 1," in done.stdout
    assert "damaged   " in done.stderr
    assert run("verify", out).exit_code == 0
    assert published(out) == whole


@pytest.mark.parametrize("storage", STORAGES)
def test_a_refused_repair_loses_nothing(night: RawFolder, tmp_path: Path, storage: str) -> None:
    out = tmp_path / "out"
    built(night.path, out, "--format", storage)
    shards = sorted(path for path in out.glob("shards/train-*") if not path.name.endswith(".json"))
    data = bytearray(shards[0].read_bytes())
    data[len(data) // 2] ^= 4
    shards[0].write_bytes(data)
    for path in sorted((night.path / "train/images").iterdir()):
        path.write_bytes(b"garbage")
    before, damage = published(out), run("verify", out).stdout
    errors_of(1, "repair", "--quiet", out, night.path)
    assert published(out) == before
    receipts = {path.name.partition(".")[0] for path in out.glob("shards/*.json")}
    assert {path.name.partition(".")[0] for path in shards} <= receipts
    assert run("verify", out).stdout == damage


@pytest.mark.parametrize("victim", ["manifest.json", "generations/000001.json", "generations/shards-*.npy"])
def test_repair_of_what_holds_the_shards_together(night: RawFolder, tmp_path: Path, victim: str) -> None:
    out = tmp_path / "out"
    built(night.path, out)
    whole = published(out)
    next(out.glob(victim)).write_bytes(b"{")
    good("repair", "--quiet", out, night.path)
    assert {name: data for name, data in published(out).items() if name.startswith(("train", "val"))} == {
        name: data for name, data in whole.items() if name.startswith(("train", "val"))
    }
    assert run("verify", out).exit_code == 0


def test_repair_from_other_pictures_makes_a_new_generation(night: RawFolder, tmp_path: Path) -> None:
    out = tmp_path / "out"
    built(night.path, out)
    image, _ = scene(98, 24, 36)
    for path in (night.path / "train/images").iterdir():
        write_png(path, image)
    next(out.glob("shards/train-*.image.npy")).write_bytes(b"")
    assert "generation 2," in good("repair", "--quiet", out, night.path).stdout
    assert run("verify", out).exit_code == 0


def test_without_the_kept_configuration_the_options_must_be_given(night: RawFolder, tmp_path: Path) -> None:
    out = tmp_path / "out"
    built(night.path, out)
    (out / "packer.toml").unlink()
    assert "--config FILE" in errors_of(2, "diff", out, night.path)


def test_log_lines_are_json_with_the_id_of_the_run(night: RawFolder, tmp_path: Path) -> None:
    (night.path / "train/images/alone.png").write_bytes((night.path / "train/images/street_000.png").read_bytes())
    options = ("--log-format", "json", "--json", "--missing", "skip")
    done = run("build", *options, night.path, tmp_path / "out")
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert {line["run"] for line in lines} == {json.loads(done.stdout)["run"]}
    assert "left out train/images/alone.png: has no label" in [line["message"] for line in lines]
    failed = run("build", "--log-format", "json", tmp_path / "nowhere", tmp_path / "out2")
    (error,) = [json.loads(line) for line in failed.stderr.splitlines()]
    assert (error["event"], error["exit_code"]) == ("error", 1)
    assert run("build", tmp_path / "nowhere", tmp_path / "out2").stderr.startswith("packer: ")


def values(path: Path) -> dict[str, float]:
    lines = (line.split() for line in path.read_text().splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in lines}


def test_metrics_keep_the_last_success_through_a_failure(night: RawFolder, tmp_path: Path) -> None:
    metrics = tmp_path / "packer.prom"
    built(night.path, tmp_path / "out", "--metrics-file", metrics)
    good = values(metrics)
    assert (good["packer_rows"], good["packer_exit_code"], good["packer_generation"]) == (18, 0, 1)
    assert good["packer_last_success_timestamp_seconds"] == good["packer_last_run_timestamp_seconds"]
    (night.path / "train/masks/street_000.png").write_bytes(b"")
    assert run("build", "--metrics-file", metrics, *SMALL, night.path, tmp_path / "out").exit_code == 1
    bad = values(metrics)
    assert (bad["packer_generation"], bad["packer_exit_code"]) == (1, 1)
    assert bad["packer_rejects"] == 1, "of this night"
    assert not {"packer_rows", "packer_pairs", "packer_reused_rows"} & set(bad), "they describe another night"
    assert bad["packer_last_success_timestamp_seconds"] == good["packer_last_success_timestamp_seconds"]
    assert bad["packer_last_run_timestamp_seconds"] > good["packer_last_run_timestamp_seconds"]
    assert not list(tmp_path.glob(".partial*"))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), 130),
        (StoppedError(15), 143),
        (StoppedError(1), 129),
        (DamagedError("x"), 4),
        (OSError(), 1),
    ],
    ids=str,
)
def test_the_exit_code_in_the_metrics_is_that_of_the_process(
    night: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr("packer.building.build_from", fail)
    metrics = tmp_path / "packer.prom"
    assert run("build", "--quiet", "--metrics-file", metrics, night.path, tmp_path / "out").exit_code == code
    assert values(metrics)["packer_exit_code"] == code


def test_a_failure_after_publishing_says_so_and_is_in_the_metrics(
    night: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(summary: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("packer.cli.build.log_summary", fail)
    metrics, out = tmp_path / "packer.prom", tmp_path / "out"
    errors = errors_of(1, "build", "--quiet", "--metrics-file", metrics, night.path, out)
    assert errors == "packer: input/output: No space left on device; everything was published before\n"
    found = values(metrics)
    assert (found["packer_exit_code"], found["packer_rows"], found["packer_generation"]) == (1, 18, 1)
    assert "packer_last_success_timestamp_seconds" not in found
    monkeypatch.undo()
    monkeypatch.setattr("packer.cli.build.log_summary", lambda summary: shutil.rmtree(tmp_path / "metrics"))
    (tmp_path / "metrics").mkdir()
    errors = errors_of(1, "build", "--quiet", "--metrics-file", tmp_path / "metrics/packer.prom", night.path, out)
    assert errors.endswith(
        "packer.prom: cannot be written (No such file or directory); everything was published before\n"
    )


@pytest.mark.parametrize("line", ["packer_bytes 1.2.3", "packer_bytes e", "packer_generation --", "packer_bytes nan"])
def test_a_broken_line_of_earlier_metrics_is_left_out(night: RawFolder, tmp_path: Path, line: str) -> None:
    metrics = tmp_path / "packer.prom"
    metrics.write_text(f"{line}\npacker_last_success_timestamp_seconds 5\n")
    (night.path / "train/masks/street_000.png").write_bytes(b"")
    assert run("build", "--metrics-file", metrics, *SMALL, night.path, tmp_path / "out").exit_code == 1
    found = values(metrics)
    assert found["packer_last_success_timestamp_seconds"] == 5
    assert not {"packer_bytes", "packer_generation"} & set(found)


def test_a_metrics_file_that_cannot_be_written_is_refused_before_the_build(night: RawFolder, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("missing/x.prom", "folder", "pipe"):
        errors = errors_of(2, "build", "--metrics-file", tmp_path / name, night.path, tmp_path / "out")
        assert f"packer: --metrics-file {tmp_path / name}: cannot be written (" in errors
        assert not (tmp_path / "out").exists()


def test_paths_that_cannot_be_kept_in_the_pack_are_refused_before_the_build(
    night: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / os.fsdecode(b"odd\xff")
    night.path.rename(odd)
    for raw, out, name in ((odd, tmp_path / "out", "RAW"), (tmp_path, odd, "OUT")):
        errors = errors_of(2, "build", "--quiet", raw, out)
        assert f"packer: {name}: '{tmp_path}/odd\\udcff' is not valid UTF-8" in errors
    monkeypatch.chdir(odd)
    assert run("build", "--quiet", ".", tmp_path / "out").exit_code == 2, "the absolute path is kept"
    assert not (tmp_path / "out").exists()
    (tmp_path / "link").symlink_to(odd)
    assert run("build", "--quiet", tmp_path / "link", tmp_path / "out").exit_code == 0


def test_the_environment_counts_more_than_the_configuration_and_less_than_the_command_line(
    night: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "night.toml"
    config.write_text(f'raw = "{night.path}"\nout = "out"\nformat = "arrow"\nlabels = "index"\n')
    monkeypatch.setenv("PACKER_FORMAT", "lmdb")
    good("build", "--json", "--quiet", "--config", config)
    facts = json_of("info", "--json", tmp_path / "out")
    assert (facts["storage"], facts["recipe"]["fields"][1]["field"]["form"]) == ("lmdb", "index")
    printed = run("build", "--config", config, "--format", "hdf5", "--print-config").stdout
    assert 'format = "hdf5"' in printed
    assert f'out = "{tmp_path / "out"}"' in printed


def test_a_further_field_is_named_by_diff_and_verify_and_repaired(night: RawFolder, tmp_path: Path) -> None:
    out, depths = tmp_path / "out", night.path / "depth"
    depths.mkdir()
    for path in (night.path / "train/images").glob("*.png"):
        cv2.imwrite(str(depths / path.name), np.full((24, 36), 7 + int(path.stem[-1]), np.uint16))
    age(night.path)
    templates = "--image", "train/images/{key}.png", "--label", "train/masks/{key}.png"
    good("build", "--quiet", *templates, "--field", "depth=values:depth/{key}.png", night.path, out)
    before = published(out)
    [column] = out.glob("shards/*.depth.npy")
    damaged = bytearray(column.read_bytes())
    damaged[-1] ^= 1
    column.write_bytes(damaged)
    found = json_of("verify", "--quiet", "--json", out)
    shard = column.name.removesuffix(".depth.npy")
    assert found["damaged"][1:] == [{"shard": shard, "row": "street_013", "field": "depth"}]
    assert found["damage"][1].endswith("the field 'depth' of the row 'street_013' is damaged")
    assert run("repair", "--quiet", out).exit_code == 0
    assert published(out) == before
    cv2.imwrite(str(depths / "street_004.png"), np.zeros((24, 36), np.uint16))
    assert diffed(night.path, out, 1)["changed_fields"] == {"all/street_004": ["depth"]}


def damage(out: Path, split: str) -> None:
    """Delete a file of the first shard of a split."""
    min(out.glob(f"shards/{split}-*.image.npy")).unlink()


@pytest.mark.parametrize("limits", [(), ("--on-bad", "skip", "--max-bad", "1")], ids=["fail", "limit"])
def test_bad_files_of_other_shards_do_not_stop_a_repair(
    night: RawFolder, tmp_path: Path, limits: tuple[str, ...]
) -> None:
    out = tmp_path / "out"
    built(night.path, out, *limits)
    whole = published(out)
    for number in (3, 4):
        (night.path / f"train/masks/street_{number:03}.png").write_bytes(b"no picture")
    (night.path / "train/images/street_005.png").unlink()
    damage(out, "val")
    done = good("repair", "--quiet", out)
    assert "its damaged shards were built again, and the generation stays" in done.stdout
    assert "the next generation cannot be built: " in done.stderr
    assert "street_005" in done.stderr
    assert run("verify", out).exit_code == 0
    assert published(out) == whole


def test_repair_takes_the_limits_of_bad_pairs(night: RawFolder, tmp_path: Path) -> None:
    out = tmp_path / "out"
    built(night.path, out)
    settings = (out / "packer.toml").read_text()
    (night.path / "val/masks/street_000.png").write_bytes(b"no picture")
    for path in out.glob("shards/val-*.image.npy"):
        path.unlink()
    errors = errors_of(1, "repair", "--quiet", out)
    assert "1 of 18 pairs is bad" in errors
    assert "use --on-bad skip" in errors
    assert run("repair", "--quiet", "--on-bad", "skip", "--max-bad", "0", out).exit_code == 3
    done = good("repair", "--quiet", "--on-bad", "skip", "--max-bad", "1", out)
    assert "generation 2," in done.stdout
    assert "left out val/street_000" in done.stderr
    assert run("verify", out).exit_code == 0
    assert (out / "packer.toml").read_text() == settings, "the options of the next build stay"


def test_a_pinned_pack_is_repaired(night: RawFolder, tmp_path: Path) -> None:
    out = tmp_path / "out"
    built(night.path, out)
    whole = published(out)
    pin(out)
    write_png(night.path / "train/images/street_003.png", scene(97, 24, 36)[0])
    damage(out, "val")
    good("repair", "--quiet", out)
    assert run("verify", out).exit_code == 0
    assert published(out) == whole
