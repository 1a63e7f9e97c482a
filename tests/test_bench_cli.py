"""`packer bench` measures real loaders, ends in time, and recommends code that can be pasted."""

from __future__ import annotations

import json
import re
import runpy
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import HANG, NATIVE, SMALL_SHARDS, RawFolder, ends_in_time, errors_of, good, make_raw, pack, python, run
from drills.processes import orphans, start

from packer.bench.cached_share import cached_share
from packer.bench.copy_loop import CopyLoop
from packer.bench.loaders import TrialRunner
from packer.bench.recommend import cheapest
from packer.bench.request import BenchRequest
from packer.bench.run import run_bench
from packer.bench.settings import LOADER, SLOTS, STOCK, LoaderSettings
from packer.bench.workload import SHARED, TIME
from packer.cli.bench_text import code, skipped_lines, text
from packer.cli.text_table import text_table
from packer.signals import deferred_signals
from readers import open_dataset
from readers.contract.kernels import VARIABLE
from readers.machine import Machine
from readers.pack import Pack

MACHINE = Machine.look()
KEYS = {
    "": "pack machine first_pass warm_rates_apply copy_loop trials left_out cheapest_by_batch target recommended "
    "warnings",
    "pack": "path split format rows bytes labels fields crop sample_bytes",
    "machine": "cores cpu_quota memory memory_free shared_memory_free kernels",
    "first_pass": "rows seconds samples_per_second in_memory_before",
    "copy_loop": "threads samples_per_second",
}
TRIAL = (
    "loader batch threads ahead workers samples_per_second bytes_per_second of_copy_loop milliseconds_per_batch memory "
    "shared_memory rounds"
)


@pytest.fixture(scope="module")
def city(raw_folder: RawFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack for tests that do not depend on the format."""
    return pack(raw_folder.path, tmp_path_factory.mktemp("bench") / "city", *SMALL_SHARDS)


@pytest.fixture(scope="module")
def index(raw_folder: RawFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same pack with index labels."""
    return pack(raw_folder.path, tmp_path_factory.mktemp("bench") / "index", "--labels", "index", *SMALL_SHARDS)


SECONDS_LEFT = BenchRequest.seconds_left


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure for a fifth of the time: no test looks at how good a rate is."""
    monkeypatch.setattr(BenchRequest, "seconds_left", lambda request: SECONDS_LEFT(request) / 5)


def bench(*arguments: object) -> dict[str, Any]:
    done = good("bench", "--json", "--quiet", *arguments)
    assert done.stderr == ""
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


def pasted(text: str, folder: Path) -> Any:
    """Run a program; return its loader."""
    program = folder / "pasted.py"
    program.write_text(text)
    return runpy.run_path(str(program))["loader"]


def test_every_format_is_measured(packed: Path, storage: str) -> None:
    facts = bench("--seconds", 1, "--batch", "4,8", "--threads", 1, packed)
    for section, keys in KEYS.items():
        assert set(facts[section] if section else facts) == set(keys.split())
    assert facts["pack"] | {"bytes": 0} == {
        "path": str(packed),
        "split": "train",
        "format": storage,
        "rows": 23,
        "bytes": 0,
        "labels": "onehot",
        "fields": ["image", "label"],
        "crop": None,
        "sample_bytes": 24 * 36 * 7,
    }
    assert 0 < facts["pack"]["bytes"] < sum(path.stat().st_size for path in packed.rglob("*") if path.is_file())
    assert 0 < facts["first_pass"]["rows"] <= 23, "the pass ends with the time that there is"
    assert facts["trials"]
    for each in facts["trials"]:
        assert set(each) == set(TRIAL.split())
        spread = each["samples_per_second"]
        assert 0 < spread["least"] <= spread["median"] <= spread["most"]
        assert each["milliseconds_per_batch"] == pytest.approx(1000 * each["batch"] / spread["median"])
    best = facts["recommended"]
    assert {key: best[key] for key in TRIAL.split()} in facts["trials"]
    assert all(each in facts["trials"] for each in facts["cheapest_by_batch"])


@pytest.mark.parametrize(
    "options",
    [
        ("--threads", 2),
        ("--threads", 1, "--labels", "index", "--crop", "16x20"),
        ("--threads", 1, "--split", "val"),
        ("--threads", 1, "--split", "all"),
    ],
)
def test_the_recommended_code_can_be_pasted(city: Path, options: tuple[object, ...], tmp_path: Path) -> None:
    facts = bench("--seconds", 1, "--batch", 4, *options, city)
    images, labels = next(iter(pasted(facts["recommended"]["code"], tmp_path)))
    size = (16, 20) if "--crop" in options else (24, 36)
    assert tuple(images.shape) == (4, 3, *size)
    assert tuple(labels.shape) == ((4, *size) if "index" in options else (4, 4, *size))
    sample = images[0].nbytes + labels[0].nbytes
    assert facts["pack"]["sample_bytes"] == sample


@pytest.mark.parametrize(("fields", "words"), [("label", "only labels as onehot"), ("label,image", "images")])
def test_only_some_fields_can_be_measured(city: Path, fields: str, words: str, tmp_path: Path) -> None:
    names = fields.split(",")
    facts = bench("--seconds", 1, "--batch", 4, "--threads", 1, "--fields", fields, city)
    assert facts["pack"]["fields"] == names
    planes = {"image": 3, "label": 4}
    assert facts["pack"]["sample_bytes"] == sum(planes[name] for name in names) * 24 * 36
    batch = next(iter(pasted(facts["recommended"]["code"], tmp_path)))
    assert [part.shape[1] for part in batch] == [planes[name] for name in names]
    whole = bench("--seconds", 1, "--batch", 4, "--threads", 1, city)["pack"]["bytes"]
    assert facts["pack"]["bytes"] == whole * sum(planes[name] for name in names) // 7
    assert words in run("bench", "--quiet", "--seconds", 1, "--batch", 4, "--fields", fields, city).stdout
    wrong = run("bench", "--quiet", "--seconds", 1, "--fields", "depth", city)
    assert wrong.exit_code == run("bench", "--quiet", "--seconds", 1, "--split", "none", city).exit_code
    assert "there is no field 'depth': fields= some of 'image', 'label'" in wrong.stderr


@pytest.mark.parametrize(("kind", "crop"), [(SLOTS, None), (STOCK, None), (STOCK, (8, 8))])
def test_code_with_worker_processes_can_be_pasted(
    index: Path, kind: str, crop: tuple[int, int] | None, tmp_path: Path
) -> None:
    found = run_bench(BenchRequest(index, batches=(4,), threads=(1,), crop=crop, seconds=1), MACHINE)
    loader = pasted("\n".join(code(found, LoaderSettings(kind, 4, 1))), tmp_path)
    assert type(loader).__name__ == kind
    assert loader.num_workers == 1
    images, _ = next(iter(loader))
    assert tuple(images.shape) == (4, 3, *(crop or (24, 36)))


def test_worker_processes_are_tried_if_requested(index: Path) -> None:
    facts = bench("--seconds", 3, "--batch", 4, "--threads", 1, "--workers", "0,1", index)
    tried = {(each["loader"], each["threads"], each["workers"]) for each in (*facts["trials"], *facts["left_out"])}
    assert tried == {(LOADER, 1, None), (SLOTS, None, 1), (STOCK, None, 0), (STOCK, None, 1)}


def test_the_steps_of_a_loader_are_compared(city: Path) -> None:
    facts = bench("--augment", "--seconds", 1, "--batch", 4, "--threads", 1, "--crop", "16x16", city)
    assert [step["step"].partition("(")[0] for step in facts["steps"]] == [
        "read only", 'flip="all"', "crop=RandomCrop", "turn=True", "colour=Colour", "normalize=…, dtype=torch.float16",
        "all of these",
    ]  # fmt: skip
    assert all(step["samples_per_second"]["median"] > 0 for step in facts["steps"])
    assert facts["steps"][0]["of_read_only"] == 1
    assert "leave it out" in errors_of(2, "bench", "--augment", "--target", 5, city)
    assert "leave it out" in errors_of(2, "bench", "--augment", "--encodings", city)


def test_native_packs_need_a_crop(varied_raw: RawFolder, tmp_path: Path) -> None:
    native = pack(varied_raw.path, tmp_path / "native", "--labels", "index", *NATIVE)
    assert "--crop 512x512" in errors_of(2, "bench", "--seconds", 1, native)
    facts = bench("--seconds", 1, "--batch", 4, "--threads", 1, "--crop", "16x16", native)
    assert facts["pack"]["crop"] == [16, 16]
    assert facts["recommended"]["samples_per_second"]["median"] > 0
    assert not any(each["loader"] == SLOTS for each in facts["trials"])


def test_a_pack_of_fewer_rows_than_a_batch_is_measured(tmp_path: Path) -> None:
    out = pack(make_raw(tmp_path / "raw", {"train": 3}).path, tmp_path / "out")
    facts = bench("--seconds", 1, "--batch", 8, "--threads", 1, out)
    best = facts["recommended"]
    assert best["milliseconds_per_batch"] == pytest.approx(3000 / best["samples_per_second"]["median"])
    assert {each["batch"] for each in bench("--seconds", 1, out)["trials"]} == {4}


def test_an_unreachable_target_is_reported(city: Path) -> None:
    options = ("--seconds", 1, "--batch", 4, "--threads", 1)
    facts = bench(*options, "--target", 1e12, city)
    assert facts["target"] == {"samples_per_second": 1e12, "met": False}
    assert "Nothing here delivers the target of 1,000,000,000,000 samples/s" in facts["warnings"][0]
    easy = bench(*options, "--target", 0.1, city)
    assert easy["target"]["met"]
    assert "the cheapest that delivers 0.1 samples/s" in easy["recommended"]["why"]


def test_loaders_that_exceed_shared_memory_are_not_tried(city: Path) -> None:
    request = BenchRequest(city, batches=(4,), threads=(1,), workers=(0, 1), seconds=1)
    found = run_bench(request, replace(MACHINE, shared=80 << 10))
    assert {left.reason for left in found.skipped if left.settings.kind == SLOTS} == {SHARED}
    assert SLOTS not in {each.settings.kind for each in found.loaders}
    printed = text(found, cheapest(found.loaders), None)
    assert f"{SLOTS}, batches of 4, workers 1: needs up to 94.5 KiB of /dev/shm, which has 80.0 KiB" in printed
    assert "--shm-size=1g" in printed


def test_the_reasons_are_listed_if_no_loader_fits(city: Path) -> None:
    found = run_bench(
        BenchRequest(city, batches=(4,), threads=(1,), workers=(0,), seconds=1), replace(MACHINE, available=1024)
    )
    assert found.loaders == ()
    assert skipped_lines(found) == [
        "DataLoader, batches of 4, workers 0: needs up to 47.2 KiB of memory; half of the free memory is 512 B",
        "loader(), batches of 4, threads 1: needs up to 118.1 KiB of memory; half of the free memory is 512 B",
    ]


def test_rates_from_memory_do_not_apply_to_a_pack_larger_than_memory(city: Path) -> None:
    request = BenchRequest(city, batches=(4,), threads=(1,), seconds=1)
    found = run_bench(request, replace(MACHINE, memory=1 << 10))
    assert found.larger_than_memory
    assert "larger than memory" in text(found, cheapest(found.loaders), None)
    assert not run_bench(request, MACHINE).larger_than_memory


def test_the_table_and_the_first_pass_are_printed(city: Path) -> None:
    done = run("bench", "--seconds", 1, "--batch", "4", "--threads", "1", city)
    assert done.stdout.startswith(f"{city}, train: 23 rows of 24x36, labels as onehot")
    assert "\ncopy loop " in done.stdout
    assert "\nRecommended: batches of 4 by " in done.stdout
    assert re.match(r"first pass: \d+ rows at ", done.stderr)


@pytest.mark.parametrize("chosen", ["1", "0"])
def test_the_kernels_in_use_are_named(city: Path, chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, chosen)
    line = run("--version").stdout.splitlines()[1]
    options = "--seconds", 1, "--batch", "4", "--threads", "1", city
    assert line in run("bench", *options).stdout.splitlines()
    assert f"kernels: {bench(*options)['machine']['kernels']}" == line


def test_settings_that_the_first_round_has_no_time_for_are_left_out(
    city: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = TrialRunner.rate

    def rate(runner: TrialRunner, settings: LoaderSettings, seconds: float) -> float:
        time.sleep(0.4 if settings.kind == LOADER else 0)
        return slow(runner, settings, seconds)

    monkeypatch.setattr(TrialRunner, "rate", rate)
    found = run_bench(BenchRequest(city, batches=(4,), threads=(1, 2), workers=(0,), seconds=10), MACHINE)
    left_out = {each.settings: each.reason for each in found.skipped}
    assert left_out
    assert set(left_out.values()) == {TIME}
    assert [each.settings for each in found.loaders] + list(left_out) == [
        LoaderSettings(LOADER, 4, 1),
        LoaderSettings(LOADER, 4, 2),
        LoaderSettings(STOCK, 4, 0),
    ]
    assert "there was no time for it" in "".join(skipped_lines(found))


def test_it_ends_in_time(city: Path) -> None:
    with ends_in_time():  # 2 s on an idle machine
        assert bench("--seconds", 2, city)["trials"]


def test_time_before_the_measurement_counts(tmp_path: Path) -> None:
    now = time.perf_counter()
    assert 19 < SECONDS_LEFT(BenchRequest(tmp_path, seconds=30, started=now - 10)) <= 20
    assert SECONDS_LEFT(BenchRequest(tmp_path, seconds=30, started=now - 60)) == 15, "half is left to measure"


def test_the_request_does_not_import_pytorch() -> None:
    program = "import sys, packer.bench.request, packer.cli.bench; sys.exit('torch' in sys.modules)"
    python("-c", program)


def test_tables_have_aligned_columns() -> None:
    rows = [["", "rows", "note"], ["train", "1200", ""], ["val", "30", "small"]]
    assert list(text_table(rows, left=(0, 2))) == ["       rows  note", "train  1200", "val      30  small"]


def test_an_interrupt_leaves_no_process(city: Path) -> None:
    process = start(("bench", "--seconds", "20", "--batch", "4", "--workers", "2", city))
    assert process.stderr is not None
    assert process.stderr.readline().startswith("first pass: ")
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=HANG)[1] == "packer: interrupted\n"
    assert process.returncode == 130
    assert not orphans(process.pid, HANG)


def test_trials_read_the_rows_of_the_first_pass(index: Path) -> None:
    runner = TrialRunner(BenchRequest(index, "train"))
    runner.first_pass(4, 1, 0)
    assert len(runner.rows) == 4
    assert not runner.workload.complete
    setting = LoaderSettings(LOADER, 2, 1)
    wanted = {runner.dataset[row][0].numpy().tobytes() for row in runner.rows}
    for batches in (runner._loader_batches(setting), runner._data_loader_batches(LoaderSettings(STOCK, 2, 0))):
        for _ in range(5):
            images, _ = next(batches)
            assert {image.numpy().tobytes() for image in images} <= wanted
    assert runner.rate(setting, 0.01) > 0


def test_the_copy_loop_copies_the_rows(packed: Path) -> None:
    opened, dataset = Pack.open(packed), open_dataset(packed, "all")
    loop = CopyLoop(opened, [5, 30], None, 2, 2)
    assert loop.rate(0.02) > 0
    for row, buffers in zip((5, 30), loop._buffers, strict=True):
        for copied, part in zip(buffers[0], dataset[row], strict=True):
            assert np.array_equal(copied.reshape(part.shape), part.numpy())


def test_rows_are_in_memory_after_they_are_read(city: Path) -> None:
    for path in (city / "shards").iterdir():
        path.read_bytes()
    assert cached_share(Pack.open(city), range(32)) in (None, 1.0)


@pytest.mark.usefixtures("default_signals")
def test_deferred_signals_arrive_after_the_block() -> None:
    done, before = [], signal.getsignal(signal.SIGINT)

    def begin() -> None:
        with deferred_signals():
            signal.raise_signal(signal.SIGINT)
            done.append("started")
        done.append("went on")

    with pytest.raises(KeyboardInterrupt):
        begin()
    assert done == ["started"]
    assert signal.getsignal(signal.SIGINT) is before
