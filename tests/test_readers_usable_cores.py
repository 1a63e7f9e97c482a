"""A container's CPU quota counts for everything that uses all cores by default."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import good, make_raw, pack

import packer.packs.copy_shards
import packer.packs.verify
from packer.workers.in_process import InProcess
from readers import open_dataset
from readers.batches import ReadAhead
from readers.machine import usable_cores

COMMANDS: dict[str, Callable[[Path, Path, Path], list[object]]] = {
    "build": lambda raw, out, new: ["build", "--quiet", raw, new],
    "probe": lambda raw, out, new: ["probe", raw],
    "verify": lambda raw, out, new: ["verify", out],
    "repair": lambda raw, out, new: ["repair", out, raw],
    "stage": lambda raw, out, new: ["stage", out, new],
}


@pytest.fixture(params=["version 1", "version 2"])
def container(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """64 cores, of which a control group grants the time of three."""
    root = tmp_path / "root"
    files = {
        "version 1": {"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"},
        "version 2": {"cpu.max": "300000 100000\n"},
    }[request.param]
    memory = f"MemTotal: {16 << 20} kB\nMemAvailable: {8 << 20} kB\n"
    for name, text in {"proc/self/cgroup": "3:cpu:/\n0::/\n", "proc/meminfo": memory}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for name, text in files.items():
        (root / "sys/fs/cgroup" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "sys/fs/cgroup" / name).write_text(text)
    monkeypatch.setattr("readers.machine.ROOT", root)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(64)))


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_start_as_many_workers_as_the_quota_grants(
    container: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    counts = []

    def in_process(workers: int, task_timeout: int) -> InProcess:
        counts.append(workers)
        return InProcess(workers, task_timeout)

    def pool(module: Any) -> Callable[[int], object]:
        real = module.ThreadPoolExecutor

        def counted(workers: int) -> object:
            counts.append(workers)
            return real(workers)

        return counted

    raw = make_raw(tmp_path / "raw", {"train": 3})
    out = pack(raw.path, tmp_path / "out", "--workers", 1)
    monkeypatch.setattr("packer.workers.run.POOL", in_process)
    for module in (packer.packs.copy_shards, packer.packs.verify):
        monkeypatch.setattr(module, "ThreadPoolExecutor", pool(module))
    (tmp_path / "new").mkdir()
    good(*COMMANDS[command](raw.path, out, tmp_path / "new"))
    assert counts
    assert set(counts) == {3}


def test_the_loader_starts_as_many_threads_as_the_quota_grants(container: None) -> None:
    assert usable_cores() == 3
    assert ReadAhead("auto", 100, drop_behind=False).workers == 3
    assert ReadAhead(9, 100, drop_behind=False).workers == 9


def test_the_cores_are_counted_once_for_all_epochs_of_a_loader(
    packed_index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = open_dataset(packed_index, "train").loader(2, shuffle=True)
    monkeypatch.setattr("readers.machine.ROOT", None)  # the files of the kernel are not found below it
    assert len(list(loader)) == len(list(loader)) > 0
