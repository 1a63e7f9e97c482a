"""The scripts of the guide to clusters in a real Slurm and a real Airflow, where they are installed."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from drills import airflow, slurm, slurm_cluster


@pytest.mark.long
def test_an_array_job_is_preempted_requeued_killed_and_run_again(tmp_path: Path) -> None:
    if lacking := slurm_cluster.missing_programs(None):
        pytest.skip(f"needs {', '.join(lacking)}")
    tallies = slurm.drill(tmp_path, None, 20_000)
    assert [line for tally in tallies.values() for line in tally.broken] == []


@pytest.mark.long
def test_airflow_retries_a_part(tmp_path: Path) -> None:
    program = shutil.which("airflow")
    if program is None:
        pytest.skip("needs apache-airflow")
    assert airflow.drill(tmp_path, program, 3000).broken == []


def test_a_program_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_cluster, "PROGRAMS", ("sh", "slurmctld-of-nowhere"))
    monkeypatch.setattr(sys, "argv", ["drills.slurm"])
    with pytest.raises(SystemExit, match="slurmctld-of-nowhere: not found; apt install"):
        slurm.main()
