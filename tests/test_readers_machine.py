"""The cores and the memory that a process may use, inside a container and outside."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shutil import disk_usage

import pytest

from packer.publish.free_space import free_space
from readers.machine import Machine

GIB = 1 << 30

FILES_2 = {
    "proc/self/cgroup": "0::/pod/one\n",
    "sys/fs/cgroup/pod/cpu.max": "150000 100000\n",
    "sys/fs/cgroup/pod/one/cpu.max": "max 100000\n",
    "sys/fs/cgroup/pod/one/memory.max": f"{4 * GIB}\n",
    "sys/fs/cgroup/pod/one/memory.current": f"{3 * GIB}\n",
    "sys/fs/cgroup/pod/one/memory.stat": f"anon {GIB}\ninactive_file {GIB}\nactive_file {GIB}\n",
}
FILES_1 = {
    "proc/self/cgroup": "4:memory:/docker/a\n2:cpu,cpuacct:/docker/a\n0::/\n",
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "150000\n",
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{4 * GIB}\n",
    "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{3 * GIB}\n",
    "sys/fs/cgroup/memory/memory.stat": f"inactive_file 5\ntotal_inactive_file {GIB}\ntotal_active_file {GIB}\n",
}
MEMINFO = f"MemTotal:       {64 << 20} kB\nMemAvailable:   {32 << 20} kB\nHugePages_Total:       0\n"


@pytest.mark.parametrize("files", [FILES_1, FILES_2], ids=["version 1", "version 2"])
def test_a_container_has_the_limits_of_its_groups(files: dict[str, str], tmp_path: Path) -> None:
    for name, text in {**files, "proc/meminfo": MEMINFO}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    machine = Machine.look(tmp_path)
    assert (machine.quota, machine.memory, machine.available, machine.shared) == (1.5, 4 * GIB, 3 * GIB, 0)
    assert (replace(machine, affinity=8).cores, replace(machine, affinity=8).power) == (2, 1.5)
    assert replace(machine, affinity=1).cores == 1


def test_without_groups_the_whole_machine_is_available(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text(MEMINFO)
    machine = Machine.look(tmp_path)
    assert (machine.quota, machine.memory, machine.available) == (None, 64 * GIB, 32 * GIB)
    assert machine.cores == machine.affinity


def test_this_machine() -> None:
    machine = Machine.look()
    assert 1 <= machine.cores <= machine.affinity
    assert 0 < machine.available <= machine.memory


@pytest.mark.parametrize(
    ("groups", "files", "left"),
    [
        ("0::/job/step\n", {"job/memory.max": "max"}, 1 << 30),
        ("0::/job/step\n", {"job/memory.max": str(3 << 20), "job/memory.current": str(1 << 20)}, 2 << 20),
        ("0::/\n", {"memory.max": "5000", "memory.current": "4000", "memory.stat": "inactive_file 500\nx 1"}, 1500),
        ("4:cpu,memory:/a\n0::/\n", {"memory/a/memory.limit_in_bytes": "900"}, 900),
        ("4:memory:/a\n", {"memory/memory.limit_in_bytes": "10", "memory/memory.usage_in_bytes": "20"}, 0),
    ],
)
def test_available_memory_is_the_least_that_machine_and_job_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: str, files: dict[str, str], left: int
) -> None:
    proc = {"meminfo": "MemTotal:  9999999 kB\nMemAvailable:   1048576 kB\n", "self/cgroup": groups}
    for base, contents in (("proc", proc), ("sys/fs/cgroup", files)):
        for name, text in contents.items():
            (tmp_path / base / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / base / name).write_text(text)
    machine = Machine.look(tmp_path)
    assert machine.available == left
    monkeypatch.setattr(Machine, "look", lambda: machine)
    assert free_space(Path("/dev/shm/not/there")) == min(int(0.9 * left), disk_usage("/dev/shm").free)
