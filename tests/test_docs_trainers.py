"""The page about trainers: it names every bridge, its snippets run, and other tools read the numbers that we read."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from conftest import REPO, good, pack
from test_docs_recipes import absent

from readers import open_dataset

PAGE = (REPO / "docs" / "guide" / "trainers.md").read_text()
SNIPPET = re.compile(r"^```(python|js)(?: (\w+))?\n(.*?)^```", re.MULTILINE | re.DOTALL)
SNIPPETS = {name or language: text for language, name, text in SNIPPET.findall(PAGE)}
CHECKS = {
    "datasets": """
        import numpy as np
        print(len(rows), rows[2]["key"], *np.asarray(rows[2]["image"])[:3], rows[2]["image"].dtype)""",
    "duckdb": 'print(*duckdb.sql("select key, image[1], image[2], image[3] from rows order by key").fetchall()[2])',
    "polars": """
        flat = polars.scan_ipc("out_arrow/shards/train-*.arrow").collect()
        print(len(flat), flat["key"][2])""",
    "xarray": """
        import zarr
        image = zarr.open_group("rows.zarr")["image"]
        print(len(rows["key"]), rows["key"].values[2].decode(), *image[2].reshape(-1)[:3], image.dtype)""",
}
"""Lines that are added to a snippet, to print what it has read."""


@pytest.fixture(scope="module")
def packs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trainers")
    for storage in ("arrow", "hdf5"):
        pack(REPO / "data_samples" / "raw", folder / f"out_{storage}", "--labels", "index", "--format", storage)
    return folder


def expected(packs: Path, row: int = 2) -> list[str]:
    """Return the number of rows, the key of one, and its first pixels, as texts."""
    data = open_dataset(packs / "out_arrow", "train")
    return [str(len(data)), data.key(row), *map(str, np.asarray(data[row][0]).reshape(-1)[:3].tolist())]


def printed(command: list[str], folder: Path) -> list[str]:
    """Return the words of the last line that a program prints."""
    environment = {**os.environ, "PYTHONPATH": str(REPO), "HF_HOME": str(folder / "hf")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return re.sub(r"[(),'{}]", " ", done.stdout.strip().splitlines()[-1]).split()


def test_every_bridge_is_on_the_page_and_in_the_list_of_bridges() -> None:
    bridges = {path.stem for path in (REPO / "readers" / "bridges").glob("*.py")} - {"__init__"}
    assert bridges == set(re.findall(r"readers\.bridges\.(\w+)", PAGE))
    for module, names in re.findall(r"`readers\.bridges\.(\w+)`: ((?:`\w+`[^|;]*)+)", PAGE):
        text = (REPO / "readers" / "bridges" / f"{module}.py").read_text()
        for name in re.findall(r"`(\w+)`", names):
            assert re.search(rf"^(class|def) {name}\b", text, re.MULTILINE), f"{module}.{name}"


def test_the_commands_of_the_page_run(packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for layout, folder in (("coco", "coco"), ("ultralytics", "yolo")):
        good("extract", "--all", "--layout", layout, "--quiet", packs / "out_arrow", tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"^```\n(packer .*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for number, line in enumerate(block.splitlines()):
        _, command, *arguments = shlex.split(line, comments=True)
        more = ("--quiet", "--workers", "1") if command == "build" else ("--workers", "1") if command == "probe" else ()
        good(command, *more, *arguments)
        if command == "build" and number < 2:
            shutil.rmtree("out")  # the next line builds another pack there


def test_the_receipt_of_the_page_is_written(packs: Path, tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to(packs / "out_arrow")
    code = f"{SNIPPETS['python']}\nprint('end')"
    assert printed([sys.executable, "-c", code], tmp_path) == ["end"]
    receipt = json.loads((tmp_path / "model.json").read_text())
    assert (receipt["split"], receipt["batch_size"], receipt["loader"]["crop"]["size"]) == ("train", 8, [32, 32])


@pytest.mark.long
@pytest.mark.parametrize("tool", CHECKS)
def test_another_tool_reads_the_same_numbers(tool: str, packs: Path) -> None:
    if find_spec(tool) is None:
        absent(tool)
    code = SNIPPETS[tool] + re.sub(r"\n +", "\n", CHECKS[tool])
    words = printed([sys.executable, "-W", "ignore", "-c", code], packs)
    rows, key, *pixels = expected(packs)
    if tool == "duckdb":
        assert words == [key, *pixels]
    else:
        assert words[:2] == [rows, key]
        assert words[2:] == ([] if tool == "polars" else [*pixels, "uint8"])


@pytest.mark.long
def test_javascript_reads_a_shard(packs: Path) -> None:
    """Needs Node with apache-arrow, which npm finds by NODE_PATH or below this folder."""
    node = shutil.which("node")
    if node is None or (not (packs / "node_modules").exists() and not os.environ.get("SEGPACK_NODE_MODULES")):
        pytest.skip("needs node, and SEGPACK_NODE_MODULES with apache-arrow")
    if not (packs / "node_modules").exists():
        (packs / "node_modules").symlink_to(os.environ["SEGPACK_NODE_MODULES"])
    (packs / "rows.mjs").write_text(SNIPPETS["js"])
    (first, *_) = sorted((packs / "out_arrow" / "shards").glob("train-*.arrow"))
    rows, key, *_ = expected(packs, 0)
    assert printed([node, "rows.mjs", str(first)], packs) == [rows, key, str(3 * 256 * 384)]
