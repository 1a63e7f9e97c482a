"""The guide to builds on many machines: its scripts run here, with the variables of the schedulers set by hand."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPO, RawFolder, make_raw, pack, python
from drills.published import same
from stub_airflow import run_pipeline

PAGE = (REPO / "docs/guide/cluster.md").read_text()
SLURM = REPO / "docs/recipes/slurm_build.sbatch"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
PACKER = """#!{python}
import sys
import packer.workers.run
from packer.workers.in_process import InProcess
packer.workers.run.POOL = InProcess
from packer.__main__ import main
main()
"""
SBATCH = """#!/bin/bash
# Runs the tasks of an array, or the command of --wrap, at once.
while [[ $1 == --* ]]; do
  case $1 in
    --array=*) tasks=${1#*=} ;;
    --dependency=*) [ "$1" = --dependency=afterok:7 ] || exit 9 ;;
    --wrap) sh -c "$2"; exit ;;
  esac
  shift
done
case $tasks in *-*) tasks=$(seq -s, "${tasks%-*}" "${tasks#*-}") ;; esac
for task in ${tasks//,/ }; do
  [ ! -e "skip-$task" ] || continue
  SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=$task SLURM_CPUS_PER_TASK=1 bash "$@" >&2 || exit
done
echo 7
"""


def blocks(kind: str) -> list[str]:
    return [text for name, text in BLOCKS if name == kind]


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> RawFolder:
    return make_raw(tmp_path_factory.mktemp("raw") / "raw", {"train": 4, "val": 2})


@pytest.fixture(scope="module")
def whole(raw: RawFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pack(raw.path, tmp_path_factory.mktemp("whole") / "out", "--shard-size", "1500B", "--size", "16x16")


@pytest.fixture
def root(raw: RawFolder, tmp_path: Path) -> Path:
    """A folder with the raw files, and programs in `bin`."""
    shutil.copytree(raw.path, tmp_path / "raw")
    for name, text in {
        "packer": PACKER.format(python=sys.executable),
        "sbatch": SBATCH,
        "scontrol": f'#!/bin/sh\necho "$@" >> {tmp_path}/scontrol.log\n',
        "ssh": '#!/bin/sh\nexec sh -c "$2"\n',
    }.items():
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def script_here(script: str, root: Path) -> str:
    """Return a script with the folders of the test, and sizes that give several shards."""
    script = script.replace("/data/", f"{root}/").replace("worker:work/", "work/")
    script = script.replace("--quiet raw/ plan/", "--quiet --size 512x512 raw/ plan/")
    return script.replace("--size 512x512", "--size 16x16 --shard-size 1500B")


def shell(script: str, root: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{root}/bin:{os.environ['PATH']}", "PYTHONPATH": str(REPO), **variables}
    command = ["bash", "-c", script_here(script, root)]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


def test_slurm_plans_builds_and_publishes(root: Path, whole: Path) -> None:
    submit, rest = (text.replace("1-16", "1-3").replace(" 16 ", " 3 ") for text in blocks("bash"))
    shutil.copy(SLURM, root)
    (root / "skip-2").touch()  # this part is lost
    done = shell(submit, root)
    assert (done.returncode, "run the parts again: 2/3" in done.stderr) == (1, True), done.stderr
    (root / "skip-2").unlink()
    done = shell(rest, root)
    assert done.returncode == 0, done.stderr
    assert shell("packer commit --quiet --plan /data/plan /data/out", root).returncode == 0
    assert shell(rest, root).returncode == 0, "nothing is missing"
    assert same(root / "out", whole)
    assert not (root / "scontrol.log").exists()


def test_slurm_requeues_a_part_that_may_be_tried_again(root: Path) -> None:
    variables = {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "3", "SLURM_CPUS_PER_TASK": "1"}
    for code, requeued in ((2, False), (75, True)):
        (root / "bin/packer").write_text(f"#!/bin/sh\nexit {code}\n")
        assert shell(f"bash {SLURM} 16 plan out", root, **variables).returncode == code
        assert (root / "scontrol.log").exists() == requeued
    assert (root / "scontrol.log").read_text() == "requeue 7_3\n"


@pytest.mark.long
def test_the_pods_of_kubernetes_build_all_parts(root: Path, whole: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with MkDocs")
    (text,) = blocks("yaml")
    spec = yaml.safe_load(text)["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    (rule,) = spec["podFailurePolicy"]["rules"]
    assert rule["onExitCodes"]["containerName"] == container["name"]
    assert f'+ 1))/{spec["completions"]}"' in container["command"][2]
    assert shell("packer plan --quiet --size 512x512 /data/raw /data/plan", root).returncode == 0
    command = container["command"][2].replace("/16", "/2")
    for index in ("1", "0"):
        done = shell(command, root, JOB_COMPLETION_INDEX=index)
        assert done.returncode == 0, done.stderr
    assert shell("packer commit --quiet --plan /data/plan /data/out", root).returncode == 0
    assert same(root / "out", whole)


def test_kubernetes_knows_every_word_of_the_job() -> None:
    kubernetes = pytest.importorskip("kubernetes_validate", reason="pip install kubernetes-validate")
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with MkDocs")
    (text,) = blocks("yaml")
    kubernetes.validate(yaml.safe_load(text), kubernetes.latest_version(), strict=True)
    with pytest.raises(kubernetes.ValidationError):
        kubernetes.validate(yaml.safe_load(text.replace("backoff", "backof")), kubernetes.latest_version(), strict=True)


@pytest.mark.long
def test_airflow_maps_the_parts(root: Path, whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _ = blocks("python")
    variables = run_pipeline(code.replace("PARTS = 16", "PARTS = 2"), monkeypatch)
    plan, build, commit = (variables[name] for name in ("plan", "build", "commit"))
    assert (plan.after, build.after, commit.after) == ([build], [commit], [])
    done = shell("\n".join(["set -e", plan.options["bash_command"], *build.options["bash_command"]]), root)
    assert done.returncode == 0, done.stderr
    assert shell(commit.options["bash_command"], root).returncode == 0
    assert same(root / "out", whole)


@pytest.mark.long
def test_parts_of_a_plan(root: Path, whole: Path) -> None:
    script = next(text for text in blocks("sh") if "for part in 1/3" in text)
    build = "packer build-part --quiet --plan plan --part 1/1 out\npacker commit --quiet --plan plan out"
    done = shell(f"set -e\n{script}\n{build}", root)
    assert done.returncode == 0, done.stderr
    assert same(root / "out", whole)


@pytest.mark.long
def test_rsync_copies_what_a_commit_needs(root: Path, whole: Path) -> None:
    """Without rsync, cp copies: the paths have the same meaning."""
    if shutil.which("rsync") is None:
        (root / "bin/rsync").write_text('#!/bin/bash\nexec cp -a "${@:2}"\n')
        (root / "bin/rsync").chmod(0o755)
    script = next(text for text in blocks("sh") if "rsync" in text)
    done = shell(f"mkdir work\nset -e\n{script}", root)
    assert done.returncode == 0, done.stderr
    assert same(root / "out", whole)


@pytest.mark.long
def test_the_loop_over_missing_parts_and_the_functions(root: Path, whole: Path) -> None:
    loop = next(text for text in blocks("sh") if "--missing" in text)
    _, code = blocks("python")
    begin = "packer plan --quiet --size 512x512 raw plan\npacker build-part --quiet --plan plan --part 1/2 out"
    done = shell(f"set -e\n{begin}\n{loop}\npacker commit --quiet --plan plan out", root)
    assert done.returncode == 0, done.stderr
    assert same(root / "out", whole)
    for name in ("plan", "out"):
        shutil.rmtree(root / name)
    code = code.replace("(512, 512)", "(16, 16), shard_size=1500")
    python("-c", code, cwd=root)
    assert same(root / "out", whole)
