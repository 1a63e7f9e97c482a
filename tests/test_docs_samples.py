"""The sample scenes hold what their page states, and the demo packs, verifies and reads them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from conftest import REPO, json_of, pack, python, run_script
from program import command

from readers import open_dataset
from readers.contract.manifest import STORAGES

RAW = REPO / "data_samples" / "raw"
COUNTS = (REPO / "data_samples" / "COUNTS.md").read_text()


def test_the_samples_hold_what_their_page_states(tmp_path: Path) -> None:
    out = pack(RAW, tmp_path / "out", "--labels", "index")
    facts = json_of("info", "--json", out)
    rows = re.findall(r"^\| ([a-z_]+) \| ([\d,]+) \| ([\d,]+) \|", COUNTS, re.MULTILINE)
    per_class = {name: int(train.replace(",", "")) + int(val.replace(",", "")) for name, train, val in rows}
    names = [entry["name"] for entry in facts["fields"][1]["classes"]["classes"]]
    counts = [split["statistics"]["label"] for split in facts["splits"]]
    assert [per_class[name] for name in names] == [
        sum(column) for column in zip(*(split["classes"] for split in counts), strict=True)
    ]
    assert not any(split["ignored"] for split in counts)
    assert (len(open_dataset(out, "train")), len(open_dataset(out, "val"))) == (18, 6)


@pytest.mark.long
def test_the_demo_packs_verifies_reads_and_compares(tmp_path: Path) -> None:
    argv = command("demo", "--out", tmp_path / "demo", "--rounds", 1, "--formats", *STORAGES)
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for storage in ("raw files", *STORAGES):
        assert re.search(rf"^{storage}\s+[\d.]+ MB", done.stdout, re.MULTILINE), done.stdout
    assert done.stdout.count(": whole; ") == len(STORAGES)
    snippet = "\n".join(line.strip() for line in done.stdout.splitlines()[-3:])
    assert "open_dataset" in snippet
    program = f"{snippet}\nprint(sum(len(images) for images, labels in loader))"
    printed = python("-c", program)
    assert printed.stdout.strip() == "18"


def test_the_training_loop_of_the_readme_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run it as a script in a folder with a pack called `out`."""
    pack(RAW, tmp_path / "out", "--size", "32x48")
    (program,) = (
        block
        for block in re.findall(r"```python\n(.*?)```", (REPO / "README.md").read_text(), re.DOTALL)
        if "loss" in block
    )
    run_script(program, tmp_path, monkeypatch)
