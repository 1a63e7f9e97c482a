"""The guide to nightly builds: run its configuration, units and scripts as far as this machine allows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPO, RawFolder, run

from packer.cli import main

PAGE = (REPO / "docs/guide/nights.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def blocks(kind: str) -> list[str]:
    return [text for name, text in BLOCKS if name == kind]


def packer_commands() -> list[list[str]]:
    """Return the arguments of every packer command on the page."""
    text = "\n".join(text for _, text in BLOCKS)
    found = re.findall(r"packer ((?:build|verify) [^\n\">]*)", text)
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
    done = run("build", "--config", config)
    assert done.exit_code == 0, done.stderr
    metrics = (config.parent / "segpack.prom").read_text()
    (alerts,) = blocks("yaml")
    names = set(re.findall(r"packer_\w+", alerts))
    assert len(names) == 2
    assert all(re.search(rf"^{name} \d", metrics, re.MULTILINE) for name in names)


def test_the_scripts_run(config: Path, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "packer"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m packer "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "SLURM_CPUS_PER_TASK": "2"}
    environment["PYTHONPATH"] = str(REPO)
    (slurm,) = blocks("bash")
    (cron,) = blocks("cron")
    command = re.sub(r"^(\S+\s+){5}", "", cron.strip()).replace("/opt/segpack/bin/", "")
    for script in (slurm, command):
        for folder in ("/etc/segpack", "/var/log"):
            script = script.replace(folder, str(tmp_path))
        done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert "generation 1" in (tmp_path / "segpack.log").read_text()


def test_every_command_on_the_page_exists() -> None:
    commands = packer_commands()
    assert len(commands) >= 6
    for words in commands:
        known = {flag for option in main.commands[words[0]].params for flag in option.opts}
        assert {word for word in words if word.startswith("--")} <= known, words


def test_the_airflow_task_compiles() -> None:
    (code,) = blocks("python")
    compile(code, "nights.md", "exec")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    service, timer = blocks("ini")
    (tmp_path / "segpack.service").write_text(service.replace("/opt/segpack/bin/packer", sys.executable))
    (tmp_path / "segpack.timer").write_text(timer)
    units = [str(tmp_path / "segpack.service"), str(tmp_path / "segpack.timer")]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, check=False
    )
    ours = [line for line in done.stderr.splitlines() if "segpack" in line]
    assert (done.returncode, ours) == (0, []), done.stderr
