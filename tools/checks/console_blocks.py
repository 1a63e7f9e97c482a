"""The console blocks of the docs: run their commands and write what they print.

    tools/run checks.console_blocks README.md docs/guide/formats.md

A block begins with ```console, a command with `$ `. The commands of a page run one after another in an empty folder
with a link to `data_samples`. Output that ends with a line `…` is cut to as many lines as before.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from program import REPO

PAGES = ("README.md", "docs/guide/formats.md")
BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
CHANGING = [
    (re.compile(r"\d+\.\d+ s \(\d+ rows/s\)"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "DATE"),
    (re.compile(r"^  tools .*$", re.MULTILINE), "TOOLS"),
]
"""Output that differs from run to run: seconds, dates, and the versions of decoders."""


def fresh(text: str) -> str:
    """Return the page with the output that its commands print now."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "data_samples").symlink_to(REPO / "data_samples")
        return BLOCK.sub(lambda match: fresh_block(match.group(0), Path(folder)), text)


def fresh_block(block: str, folder: Path) -> str:
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    return parts[0] + "".join(
        f"$ {command}\n{shortened(output(command, folder), old)}"
        for command, old in zip(parts[1::2], parts[2::2], strict=True)
    )


def output(command: str, folder: Path) -> str:
    """Run a command with the `packer` of this repository."""
    words = re.sub(r"^(packer|segpack)\b", f"'{sys.executable}' -m packer", command)
    environment = {**os.environ, "PYTHONPATH": str(REPO), "COLUMNS": "120"}
    done = subprocess.run(
        words, shell=True, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return done.stdout


def shortened(text: str, old: str) -> str:
    """Cut the output to the lines that the page had before its `…`."""
    lines = old.splitlines()
    if not lines or lines[-1] != "…":
        return text
    return "".join(line + "\n" for line in [*text.splitlines()[: len(lines) - 1], "…"])


def comparable(text: str) -> str:
    """Return the page without what differs from run to run."""
    for pattern, name in CHANGING:
        text = pattern.sub(name, text)
    return text


def main() -> None:
    for name in sys.argv[1:] or PAGES:
        page = Path(name)
        before = page.read_text(encoding="utf-8")
        after = fresh(before)
        if comparable(after) != comparable(before):
            page.write_text(after, encoding="utf-8")
            print(f"{page}: written")
