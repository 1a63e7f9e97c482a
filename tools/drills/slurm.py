"""Build a plan by the array job of the guide on a real Slurm, preempted, requeued and killed on the way.

    tools/run drills.slurm [--root FOLDER] [--folder FOLDER] [--pairs 20000]

It starts munged, slurmctld and a slurmd for each part on this machine, in a folder that it deletes. The programs are
those on the PATH, or those below the root into which Debian's packages munge, slurmctld, slurmd, slurm-client,
slurm-wlm-basic-plugins, and what they need, were extracted (`dpkg -x`). Takes some five minutes. Exits 1 if a promise
is broken.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from program import REPO, parser
from scenes.camera import make_linked_streets

from drills.commands import must, packer
from drills.processes import alive, builder_of
from drills.published import same
from drills.slurm_cluster import SlurmCluster, missing_programs
from drills.tally import Tally, finish
from drills.waiting import wait
from readers.contract.manifest import MANIFEST

SCRIPT = REPO / "docs" / "recipes" / "slurm_build.sbatch"
PREEMPTED, REQUEUED, WORKER_KILLED, BUSY, KILLED, LOST = TASKS = range(1, 7)
NAMES = ("preempted", "scontrol requeue", "a worker killed", "ended with 75", "packer killed", "node lost")
PARTS = len(TASKS)
INTERRUPTED = (PREEMPTED, REQUEUED, LOST)
OPTIONS = ("--classes", "9", "--labels", "index", "--size", "128x128", "--shard-size", "2MiB")
SOON = 5.0
"""Seconds from SIGTERM to the end of a part."""
BEGUN = 3
"""Shards of each part that are there when the trouble begins."""
WAITING = {"PENDING", "RUNNING", "COMPLETING", "REQUEUED"}
LONG = 1800.0
"""Seconds within which an array must end. Slurm waits two minutes before it starts a requeued task again."""
PACKER = """\
#!/bin/sh
[ "$1 $SLURM_ARRAY_TASK_ID" != "build-part {busy}" ] || ! mkdir {folder}/tried 2> /dev/null || exit 75
exec {python} -m packer "$@"
"""
"""A packer that once answers as if a store did not."""


@dataclass(frozen=True)
class Array:
    """The array job of the parts of a plan, and the job that commits after it."""

    cluster: SlurmCluster
    folder: Path
    number: str
    commit: str

    @classmethod
    def submit(cls, cluster: SlurmCluster, folder: Path, tasks: str) -> Array:
        """Submit both as the guide says, with one core for each task."""
        plan, out = folder / "plan", folder / "out"
        small = (f"--array={tasks}", "--cpus-per-task=1", f"--output={folder}/%a.log")
        number = cluster.submit(*small, SCRIPT, PARTS, plan, out)
        after = (f"--dependency=afterok:{number}", "--kill-on-invalid-dep=yes", f"--output={folder}/commit.log")
        return cls(cluster, folder, number, cluster.submit(*after, "--wrap", f"packer commit --plan {plan} {out}"))

    def task(self, task: int) -> dict[str, str]:
        return self.cluster.job(f"{self.number}_{task}")

    def log(self, task: int) -> str:
        """Return what all runs of a task have printed."""
        path = self.folder / f"{task}.log"
        return path.read_text() if path.exists() else ""

    def packer(self, task: int) -> int | None:
        """Return the process that builds the part of a task, if it runs."""
        return builder_of(f"{task}/{PARTS}", self.folder / "out")

    def worker(self, task: int) -> int | None:
        """Return a worker process of it, a child of its fork server."""
        number = self.packer(task)
        processes = alive() if number else []
        servers = {process.number for process in processes if process.parent == number}
        return next((process.number for process in processes if process.parent in servers), None)

    def seconds_to_end(self, task: int, asked: Callable[[], object]) -> float:
        """Return how long the process of a part still lives after something was asked for."""
        number = self.packer(task)
        asked()
        begin = time.monotonic()
        wait(LONG, lambda: self.packer(task) != number, f"part {task} has ended")
        return time.monotonic() - begin

    def has_ended(self) -> bool:
        """Return whether no job waits or runs."""
        states = {job["JobState"] for job in map(self.cluster.job, (self.number, self.commit))}
        states |= {self.task(task)["JobState"] for task in TASKS}
        return not states & WAITING


def have_begun(array: Array) -> bool:
    """Return whether all parts run and have some shards, except for the one that answers 75."""
    tickets = [path.name.partition("-")[0] for path in array.folder.glob("out/tickets/*/*-*-*")]
    shards = Counter(int(number) % PARTS + 1 for number in tickets)
    return all(shards[task] >= BEGUN and array.packer(task) for task in TASKS if task != BUSY)


def is_preempted(array: Array) -> bool:
    """Return whether Slurm has told a task to end; or it has ended before, which `check_tasks` finds."""
    return "PREEMPTION" in array.log(PREEMPTED) or array.packer(PREEMPTED) is None


def make_trouble(array: Array, tally: Tally) -> None:
    """Requeue a task, kill a process of two others and a node, and let an urgent job take the node of another."""
    run = array.cluster.run
    wait(LONG, lambda: have_begun(array), "all parts have begun")
    seconds = [array.seconds_to_end(REQUEUED, lambda: run("scontrol", "requeue", f"{array.number}_{REQUEUED}"))]
    worker, killed, lost = array.worker(WORKER_KILLED), array.packer(KILLED), array.packer(LOST)
    if worker is None or killed is None or lost is None:
        raise RuntimeError("a part has ended before it was killed; take more --pairs")
    os.kill(worker, signal.SIGKILL)
    os.kill(killed, signal.SIGKILL)
    array.cluster.lose(array.task(LOST)["NodeList"], lost)
    node = f"--nodelist={array.task(PREEMPTED)['NodeList']}"
    array.cluster.submit("--partition=urgent", node, "--output=/dev/null", "--wrap", "sleep 5")
    seconds.append(
        array.seconds_to_end(PREEMPTED, lambda: wait(LONG, lambda: is_preempted(array), "a task is preempted"))
    )
    tally.counts["ms to end"] = round(1000 * max(seconds))
    tally.demand(max(seconds) < SOON, f"a part ended {max(seconds):.1f} s after SIGTERM")


def check_tasks(array: Array) -> dict[str, Tally]:
    """Check that each task has ended as the guide says, and count its runs and the shards that it found."""
    tallies = {}
    for task, name in zip(TASKS, NAMES, strict=True):
        facts, log, tally = array.task(task), array.log(task), Tally()
        expected = ("FAILED", "137:0") if task == KILLED else ("COMPLETED", "0:0")
        ended = facts["JobState"], facts["ExitCode"]
        tally.demand(ended == expected, f"ended as {ended}:\n{log}")
        tally.demand("Traceback" not in log, log)
        counts = [tuple(map(int, numbers)) for numbers in re.findall(r"(\d+) shards? built, (\d+) were there", log)]
        tally.demand(len(counts) == (task != KILLED), f"was not done once:\n{log}")
        built, found = counts[-1] if counts else (0, 0)
        tally.demand((found > 0) == (task in INTERRUPTED), f"found {found} shards of an earlier run")
        runs = 1 + int(facts["Restarts"])
        tally.demand(runs == 1 + (task in (*INTERRUPTED, BUSY)), f"has run {runs} times")
        tally.counts.update({"runs": runs, "shards built": built, "were there": found})
        tallies[name] = tally
    return tallies


def drill(folder: Path, root: Path | None, pairs: int) -> dict[str, Tally]:
    """Build a plan by the array job and by one process. Return what was found, by task and for all."""
    raw, out, commands, whole = folder / "raw", folder / "out", folder / "bin", Tally()
    make_linked_streets(raw, pairs)
    must("plan", "--quiet", *OPTIONS, raw, folder / "plan")
    commands.mkdir()
    (commands / "packer").write_text(PACKER.format(busy=BUSY, folder=folder, python=sys.executable))
    (commands / "packer").chmod(0o755)
    with SlurmCluster(folder, PARTS, root, commands) as cluster:
        array = Array.submit(cluster, folder, f"1-{PARTS}")
        make_trouble(array, whole)
        wait(LONG, array.has_ended, "the array has ended")
        tallies = check_tasks(array)
        commit = cluster.job(array.commit)["JobState"]
        whole.demand(commit == "CANCELLED", f"the commit after a failed task is {commit}")
        whole.demand(not (out / MANIFEST).exists(), "a pack was published without a part")
        missing = packer("commit", "--plan", folder / "plan", "--missing", out).output.split()
        whole.demand(missing == [f"{KILLED}/{PARTS}"], f"missing are {missing}")
        again = Array.submit(cluster, folder, str(KILLED))
        wait(LONG, lambda: again.cluster.job(again.commit)["JobState"] not in WAITING, "the commit has ended")
        whole.demand((out / MANIFEST).exists(), "the second commit has not published the pack")
    must("build", "--quiet", *OPTIONS, raw, folder / "whole")
    whole.demand(same(out, folder / "whole"), "the pack differs from that of packer build")
    return tallies | {"all": whole}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--root", type=Path, help="where Debian's packages were extracted, if they are not installed")
    options.add_argument("--folder", type=Path, help="where the folder of the drill is made")
    options.add_argument("--pairs", type=int, default=20_000)
    given = options.parse_args()
    root = given.root and given.root.resolve()
    if absent := missing_programs(root):
        sys.exit(
            f"{', '.join(absent)}: not found; apt install munge slurmctld slurmd slurm-client, or name their --root"
        )
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        finish(drill(Path(folder), root, given.pairs))


if __name__ == "__main__":
    main()
