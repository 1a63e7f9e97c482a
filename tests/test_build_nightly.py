"""The guide to nightly builds: run its configuration, units and scripts as far as this machine allows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import REPO, RawFolder, good
from stub_airflow import run_pipeline

from packer.cli import main

PAGE = (REPO / "docs/guide/nights.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def blocks(kind: str) -> list[str]:
    return [text for name, text in BLOCKS if name == kind]


def packer_commands() -> list[list[str]]:
    """Return the arguments of every packer command on the page."""
    text = "\n".join(text for _, text in BLOCKS)
    found = re.findall(r"packer ((?:build|verify|gc) [^\n\">;&]*)", text)
    return [words.split() for words in found]


@pytest.fixture
def config(raw_folder: RawFolder, tmp_path: Path) -> Path:
    """The configuration of the page with the folders of the test."""
    (text,) = blocks("toml")
    rows = [f'[[class]]\nname = "c{n}"\ncolours = ["{c}"]\n' for n, c in enumerate(["#4682b4", "#804080", "#00008e"])]
    (tmp_path / "classes.toml").write_text("\n".join([*rows, '[[class]]\nname = "c3"\ncolours = ["#dc143c"]\n']))
    ours = {
        "/data/raw": str(raw_folder.path),
        "/data/packed": str(tmp_path / "out"),
        "/etc/segpack": str(tmp_path),
        "/var/lib/node_exporter/textfile": str(tmp_path),
        "512x1024": "16x16",
        "ignore = [255]\n": "",
    }
    for original, replacement in ours.items():
        assert original in text
        text = text.replace(original, replacement)
    path = tmp_path / "nightly.toml"
    path.write_text(text)
    return path


def test_the_configuration_packs_and_the_alerts_use_existing_metrics(config: Path) -> None:
    good("build", "--config", config)
    metrics = (config.parent / "segpack.prom").read_text()
    (alerts,) = blocks("yaml")
    names = set(re.findall(r"packer_\w+", alerts))
    assert len(names) == 2
    assert all(re.search(rf"^{name} \d", metrics, re.MULTILINE) for name in names)


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a job, with `packer` and a stub of `scontrol` in its PATH."""
    write_program(tmp_path / "bin/packer", f'#!/bin/sh\nexec "{sys.executable}" -m packer "$@"\n')
    write_program(tmp_path / "bin/scontrol", f'#!/bin/sh\necho "$@" >> {tmp_path}/scontrol.log\n')
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(REPO), "SLURM_CPUS_PER_TASK": "2", "SLURM_JOB_ID": "7"}


def here(script: str, root: Path) -> str:
    """Return the script with the folders of the test."""
    for folder, ours in (
        ("/etc/segpack", ""),
        ("/var/log", ""),
        ("/data/packed", "/out"),
        ("/opt/segpack/bin", "/bin"),
    ):
        script = script.replace(folder, f"{root}{ours}")
    return script


def test_the_scripts_run(config: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    (slurm,) = blocks("bash")
    (cron,) = blocks("cron")
    (line,) = cron.splitlines()
    fields = re.fullmatch(r"((?:[\d*/,-]+\s+){5})([^%]+)", line)
    assert fields is not None, "a cron line has five fields, and % would be a line feed"
    for script in (slurm, fields[2]):
        done = subprocess.run(
            ["sh" if script == fields[2] else "bash", "-c", here(script, tmp_path)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr + (tmp_path / "segpack.log").read_text()
    log = (tmp_path / "segpack.log").read_text()
    assert "generation 1" in log
    assert "deleted; kept 1" in log
    assert not (tmp_path / "scontrol.log").exists()


@pytest.mark.parametrize(("number", "code", "requeued"), [("USR1", 0, True), ("TERM", 143, False)])
def test_slurm_requeues_a_job_at_its_time_limit(
    tmp_path: Path, environment: dict[str, str], number: str, code: int, requeued: bool
) -> None:
    (slurm,) = blocks("bash")
    build = (
        f"trap 'echo ended > {tmp_path}/ended; exit 143' TERM; until [ -e waiting ]; do sleep 0.05; done; "
        f"kill -{number} $PPID; while :; do sleep 0.05; done"
    )
    write_program(tmp_path / "bin/packer", f"#!/bin/bash\n{build}\n")
    script = slurm.replace('wait "$build"\npacker', 'touch waiting\nwait "$build"\npacker')
    assert script != slurm
    done = subprocess.run(["bash", "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert (tmp_path / "ended").exists()
    assert (tmp_path / "scontrol.log").exists() == requeued
    if requeued:
        assert (tmp_path / "scontrol.log").read_text() == "requeue 7\n"


def test_slurm_reads_its_options() -> None:
    (slurm,) = blocks("bash")
    head = slurm[: slurm.index("set -euo")].splitlines()
    assert head[0] == "#!/bin/bash"
    assert all(re.fullmatch(r"#SBATCH --[a-z-]+(=\S+)?", line) for line in head[1:])
    assert "#SBATCH" not in slurm[slurm.index("set -euo") :]


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_the_filter_of_jq_reads_every_line_of_the_journal() -> None:
    (command,) = blocks("sh")
    lines = '{"event": "finding", "message": "finding   a"}\n/data/packed: generation 1, 32 rows\n7\n'
    done = subprocess.run(
        ["sh", "-c", command.partition("| ")[2]], input=lines, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "finding   a\n/data/packed: generation 1, 32 rows\n7\n"), done.stderr


def test_every_command_on_the_page_exists() -> None:
    commands = packer_commands()
    assert len(commands) >= 6
    for words in commands:
        known = {flag for option in main.commands[words[0]].params for flag in option.opts}
        assert {word for word in words if word.startswith("--")} <= known, words


def test_airflow_builds_then_checks_then_cleans(monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = blocks("python")
    variables = run_pipeline(code, monkeypatch)
    pack, check, clean = (variables[name] for name in ("pack", "check", "clean"))
    assert (pack.after, check.after, clean.after) == ([check], [clean], [])
    assert [task.options["bash_command"].split()[1] for task in (pack, check, clean)] == ["build", "verify", "gc"]


def test_airflow_reads_the_dag() -> None:
    pytest.importorskip("airflow.sdk", reason="Airflow 3 is not installed")
    (code,) = blocks("python")
    variables: dict[str, Any] = {}
    exec(code, variables)  # noqa: S102 - the code of our own page
    assert [task.task_id for task in variables["dag"].topological_sort()] == ["pack", "check", "clean"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    service, timer = blocks("ini")
    (tmp_path / "segpack.service").write_text(
        service.replace("/opt/segpack/bin/packer", sys.executable.replace(" ", r"\x20"))
    )
    (tmp_path / "segpack.timer").write_text(timer)
    units = [str(tmp_path / "segpack.service"), str(tmp_path / "segpack.timer")]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, check=False
    )
    ours = [line for line in done.stderr.splitlines() if "segpack" in line]
    assert (done.returncode, ours) == (0, []), done.stderr
