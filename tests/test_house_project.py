"""Files that strangers meet first: workflows with commands that exist, releases that agree, the oldest versions."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import release
import yaml
from conftest import REPO
from drills.read_golden import GOLDEN

from readers.contract import VERSION
from readers.contract.manifest import Manifest

WORKFLOWS = sorted((REPO / ".github" / "workflows").glob("*.yml"))
CHANGELOG = (REPO / "CHANGELOG.md").read_text()


def steps(path: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(path.read_text())["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_programs_that_exist(path: Path) -> None:
    commands = " ; ".join(step["run"] for step in steps(path) if "run" in step)
    targets = set(re.findall(r"^([a-z-]+):", (REPO / "Makefile").read_text(), re.MULTILINE))
    for target in re.findall(r"\bmake ([a-z-]+)", commands):
        assert target in targets, target
    for program in re.findall(r"tools/run ([\w.]+)", commands):
        assert (REPO / "tools" / program.replace(".", "/")).with_suffix(".py").exists(), program
    for script in re.findall(r"(?:^|[; ])((?:tools/|\.ci/)\w+)", commands):
        assert (REPO / script).exists(), script


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_only_read_and_keeps_no_credentials(path: Path) -> None:
    assert yaml.safe_load(path.read_text())["permissions"] == {"contents": "read"}
    for step in steps(path):
        if str(step.get("uses", "")).startswith("actions/checkout"):
            pushes = path.stem == "docs" and "fetch-depth" in step["with"]  # the branch with the pages
            assert step["with"]["persist-credentials"] is pushes


def test_workflows_give_strangers_nothing_to_use() -> None:
    """Actions are pinned by commit, no text of an issue or a branch reaches a shell, and rights are few."""
    done = subprocess.run(["zizmor", "--offline", ".github"], cwd=REPO, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No findings" in done.stdout + done.stderr


def test_hooks_before_a_commit_are_the_checks_of_the_project() -> None:
    (local,) = yaml.safe_load((REPO / ".pre-commit-config.yaml").read_text())["repos"]
    programs = {hook["entry"].split()[0] for hook in local["hooks"]}
    assert programs == {"ruff", "mypy", "tools/run"}
    assert all(shutil.which(name) or (REPO / name).exists() for name in programs)


def test_the_oldest_releases_are_the_lower_ends_of_the_ranges() -> None:
    setup = configparser.ConfigParser()
    setup.read(REPO / "setup.cfg")
    needed = f"{setup['options']['install_requires']}\n{setup['options.extras_require']['torch']}"
    least = dict(re.findall(r"^([\w-]+)>=([\d.]+)", needed, re.MULTILINE))
    oldest = dict(re.findall(r"^([\w-]+)==([\d.]+)", (REPO / "constraints-oldest.txt").read_text(), re.MULTILINE))
    assert oldest.pop("opencv-python-headless") == oldest["opencv-python"]
    assert least.keys() == oldest.keys()
    for name, version in least.items():
        assert f"{oldest[name]}.".startswith(f"{version}."), name


def test_every_release_has_a_date_a_citation_and_a_format_that_is_read() -> None:
    releases = re.findall(r"^## ([\d.]+) \(\d{4}-\d\d-\d\d\)$", CHANGELOG, re.MULTILINE)
    assert releases[0] == VERSION
    page = (REPO / "readers" / "contract" / "FORMAT.md").read_text()
    written = {row[0]: row[1:] for row in re.findall(r"^\| ([\d.]+) \| (\d+) \| `([\w/]+)` \|$", page, re.MULTILINE)}
    assert list(written) == releases
    for version, folder in written.values():
        packs = [Manifest.load(path.parent) for path in sorted((REPO / folder).glob("*/manifest.json"))]
        assert len(packs) >= 9
        assert {manifest.to_json()["version"] for manifest in packs} == {int(version)}


@pytest.mark.parametrize("system", ["", "--windows"])
def test_golden_packs_are_read_whole(system: str) -> None:
    """With what Linux has, and with what is left of it on Windows."""
    command = [sys.executable, "-W", "error", str(REPO / "tools" / "run"), "drills.read_golden", *system.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1 + 2 * (len([*GOLDEN.glob("*/manifest.json")]) - 1) + 1


READING = """
import sys
from pathlib import Path

class OnlyThese:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[2].split():
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, OnlyThese())
from readers import open_dataset
for pack in sorted(Path(sys.argv[1]).glob("*-index")):
    data = open_dataset(pack, "train")
    print(pack.name, len(data[0]), sum(len(labels) for _, labels in data.loader(2, shuffle=True)))
try:
    open_dataset(pack, "train", verify="digest")[0]
except Exception as error:
    print(error)
"""


def test_reading_needs_numpy_and_pytorch_alone() -> None:
    setup = configparser.ConfigParser()
    setup.read(REPO / "setup.cfg")
    needed = set(re.findall(r"^([\w-]+)>=", setup["options"]["install_requires"], re.MULTILINE)) - {"numpy"}
    modules = {"opencv-python": "cv2", "pillow": "PIL", "pyyaml": "yaml"}
    blocked = " ".join(sorted(modules.get(name, name.replace("-", "_")) for name in needed))
    done = subprocess.run([sys.executable, "-c", READING, GOLDEN, blocked], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        *(f"{storage}-index 2 5" for storage in ("arrow", "hdf5", "lmdb", "npy")),
        "the checksums of files need blake3: pip install blake3",
    ]


def test_without_pytorch_a_data_set_says_what_to_install() -> None:
    code = "import sys; sys.modules['torch'] = None; import readers; readers.open_dataset"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "ImportError: readers.open_dataset needs PyTorch: pip install torch"


def test_a_release_names_everything_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"status": " M setup.cfg", "tag": "v9.9"}
    monkeypatch.setattr(release, "git", lambda name, *_: answers[name])
    monkeypatch.setattr(release, "VERSION", "9.9")
    assert [problem.partition(" ")[0] for problem in release.problems(tag=True)] == [
        "files",
        "CHANGELOG.md",
        "CITATION.cff",
        "the",
    ]
