"""A Slurm cluster on this machine: munged, slurmctld, and a slurmd for each node, with all files in one folder.

It runs as the user who starts it. A job of the partition `urgent` takes the nodes of jobs of the partition `night`:
after 5 s these get SIGTERM, after 30 s more SIGKILL, and go back to the queue.
"""

from __future__ import annotations

import getpass
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path

from drills.processes import alive, below
from drills.waiting import wait

PROGRAMS = ("munged", "slurmctld", "slurmd", "slurmstepd", "sbatch", "scancel", "scontrol", "sinfo")
SUFFIX = "-wlm"
"""The daemons of extracted packages of Debian end so: only installing them gives them the usual names."""
LIMIT = 60.0
"""Seconds within which the daemons must answer."""
CONFIGURATION = """\
ClusterName=drill
SlurmctldHost={host}
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdTimeout=20
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait=30
SchedulerParameters=sched_interval=5,bf_interval=5
PartitionName=night Nodes=ALL Default=YES PriorityTier=1 GraceTime=5
PartitionName=urgent Nodes=ALL PriorityTier=2 PreemptMode=OFF
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=65536\n"


class SlurmCluster:
    """The daemons, until the end of a `with` block. A node has one CPU, whatever this machine has."""

    def __init__(self, folder: Path, nodes: int, root: Path | None, commands: Path) -> None:
        """Jobs find their commands in the folder `commands` first."""
        self.folder, self.root = folder, root
        self.nodes = [f"node{number}" for number in range(nodes)]
        self._variables = variables(root) | {"SLURM_CONF": str(folder / "slurm.conf")}
        self._variables["PATH"] = f"{commands}:{self._variables['PATH']}"
        self._paths = programs(root)
        self._slurmd: dict[str, subprocess.Popen[bytes]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> SlurmCluster:
        self._configure()
        try:
            self._start("munged", "--foreground", "--force", *self._munge_files())
            wait(LIMIT, (self.folder / "munge.socket").exists, "munged has a socket")
            self._start("slurmctld", "-D")
            for name in self.nodes:
                self._slurmd[name] = self._start("slurmd", "-D", "-N", name, "-d", self._paths["slurmstepd"])
            wait(LIMIT, self._is_idle, "all nodes are idle")
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._run("scancel", "--user", getpass.getuser())
        self._stack.close()

    def submit(self, *options: object) -> str:
        """Submit a job, and return its number."""
        return self.run("sbatch", "--parsable", *options)

    def job(self, number: str) -> dict[str, str]:
        """Return the facts of a job, or of a task such as 7_3, by the names that Slurm gives them."""
        return dict(re.findall(r"(\w+)=(\S*)", self.run("scontrol", "--oneliner", "show", "job", number)))

    def lose(self, node: str, process: int) -> None:
        """Kill a node, and the script on it that has started a process, as if its power failed."""
        parents = {each.number: each.parent for each in alive()}
        step = parents[parents[process]]
        self._slurmd[node].kill()
        for number in (step, *below([step])):
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)

    def run(self, name: str, *options: object) -> str:
        """Run a command of Slurm, and return what it prints. Raise RuntimeError if it fails."""
        done = self._run(name, *options)
        if done.returncode:
            raise RuntimeError(f"{name} {' '.join(map(str, options))}: exit code {done.returncode}\n{done.stderr}")
        return done.stdout.strip()

    def _run(self, name: str, *options: object) -> subprocess.CompletedProcess[str]:
        command = [self._paths[name], *map(str, options)]
        return subprocess.run(
            command, env=self._variables, cwd=self.folder, capture_output=True, text=True, check=False
        )

    def _start(self, name: str, *options: str) -> subprocess.Popen[bytes]:
        """Start a daemon that is ended at the end of the block, the last one first."""
        with (self.folder / f"{name}.log").open("a") as log:
            command = [self._paths[name], *options]
            daemon = subprocess.Popen(command, env=self._variables, cwd=self.folder, stdout=log, stderr=log)
        self._stack.callback(daemon.wait)
        self._stack.callback(daemon.terminate)
        return daemon

    def _is_idle(self) -> bool:
        states = self._run("sinfo", "--noheader", "--Node", "--partition=night", "--format=%T").stdout.split()
        return states == ["idle"] * len(self.nodes)

    def _configure(self) -> None:
        (self.folder / "state").mkdir()
        host, ports = socket.gethostname(), free_ports(1 + len(self.nodes))
        nodes = [NODE.format(name=name, host=host, port=port) for name, port in zip(self.nodes, ports[1:], strict=True)]
        text = CONFIGURATION.format(host=host, ports=ports, user=getpass.getuser(), folder=self.folder)
        if self.root is not None:
            nodes.append(f"PluginDir={next(self.root.glob('usr/lib/*/slurm-wlm'))}\n")
        (self.folder / "slurm.conf").write_text(text + "".join(nodes))

    def _munge_files(self) -> list[str]:
        """Write a key, and return the options that name all files of munged."""
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        names = {"socket": "socket", "key-file": "key", "log-file": "log", "pid-file": "pid", "seed-file": "seed"}
        return [f"--{option}={self.folder}/munge.{suffix}" for option, suffix in names.items()]


def variables(root: Path | None) -> dict[str, str]:
    """Return the environment of all programs, with the folders of extracted packages."""
    found = {name: text for name, text in os.environ.items() if not name.startswith("SLURM_")}
    if root is None:
        return found | {"PATH": f"{found['PATH']}:/usr/sbin"}
    libraries = [*root.glob("usr/lib/*-linux-*"), *root.glob("usr/lib/*/slurm-wlm")]
    return found | {
        "PATH": f"{root}/usr/bin:{root}/usr/sbin:{found['PATH']}",
        "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
    }


def programs(root: Path | None) -> dict[str, str]:
    """Return the path of each program that is here."""
    path = variables(root)["PATH"]
    found = {name: shutil.which(name, path=path) or shutil.which(name + SUFFIX, path=path) for name in PROGRAMS}
    return {name: place for name, place in found.items() if place is not None}


def missing_programs(root: Path | None) -> list[str]:
    """Return the names of the programs that are not here."""
    return sorted(set(PROGRAMS) - programs(root).keys())


def free_ports(count: int) -> list[int]:
    """Return free ports of this machine."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("", 0))
        return [each.getsockname()[1] for each in sockets]
