"""The sample scenes hold what their page says, and the demo walks the whole road with them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from conftest import REPO, pack, run

from readers import open_dataset
from readers.contract.manifest import STORAGES

RAW = REPO / "data_samples" / "raw"
COUNTS = (REPO / "data_samples" / "COUNTS.md").read_text()


def test_the_samples_hold_what_their_page_says(tmp_path: Path) -> None:
    out = pack(RAW, tmp_path / "out", "--labels", "index")
    facts = json.loads(run("info", "--json", out).stdout)
    told = re.findall(r"^\| ([a-z_]+) \| ([\d,]+) \| ([\d,]+) \|", COUNTS, re.MULTILINE)
    per_class = {name: int(train.replace(",", "")) + int(val.replace(",", "")) for name, train, val in told}
    names = [one["name"] for one in facts["classes"]["classes"]]
    counts = [split["pixels"] for split in facts["splits"]]
    assert [per_class[name] for name in names] == [
        sum(column) for column in zip(*(one["classes"] for one in counts), strict=True)
    ]
    assert not any(one["ignored"] for one in counts)
    assert (len(open_dataset(out, "train")), len(open_dataset(out, "val"))) == (18, 6)


def test_the_demo_packs_verifies_reads_and_compares(tmp_path: Path) -> None:
    command = [sys.executable, str(REPO / "tools" / "demo.py"), "--out", str(tmp_path / "demo"), "--rounds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for storage in ("raw files", *STORAGES):
        assert re.search(rf"^{storage}\s+[\d.]+ MB", done.stdout, re.MULTILINE), done.stdout
    assert done.stdout.count(": whole; ") == 4
    snippet = "\n".join(line.strip() for line in done.stdout.splitlines()[-3:])
    assert "open_dataset" in snippet
    program = f"{snippet}\nprint(sum(len(images) for images, labels in loader))"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "18"


def test_the_training_loop_of_the_readme_trains(tmp_path: Path) -> None:
    """Run as a file of its own, beside a pack called `out`."""
    pack(RAW, tmp_path / "out", "--size", "32x48")
    (program,) = (
        block
        for block in re.findall(r"```python\n(.*?)```", (REPO / "README.md").read_text(), re.DOTALL)
        if "loss" in block
    )
    (tmp_path / "train.py").write_text(program)
    done = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
