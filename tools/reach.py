"""`Reach`: the lines of the product that each test reaches, and its seconds, from a run with coverage."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from program import REPO

DATA, TIMES = "coverage", "times.xml"
BEFORE_ROOM = re.compile(r"^.*/(?=(packer|readers)/)")
"""The part of a path in front of the product, wherever the checkout was."""
QUERY = """
    select path, context, numbits from line_bits
    join file on file.id = file_id join context on context.id = context_id
"""
Line = tuple[str, int]
"""A file of the product, and the number of a line."""


@dataclass(frozen=True)
class Reach:
    """For each test by its name its seconds, and the lines that it reaches in the process of the test."""

    seconds: dict[str, float]
    lines: dict[str, frozenset[Line]]

    @classmethod
    def load(cls, folder: Path) -> Reach:
        """Read what `measure` left in a folder."""
        from coverage.numbits import numbits_to_nums  # only the extra dev has it

        lines: defaultdict[str, set[Line]] = defaultdict(set)
        with sqlite3.connect(folder / DATA) as data:
            for path, context, bits in data.execute(QUERY):
                name = context.rpartition("|")[0]  # the rest is setup, run or teardown
                file = BEFORE_ROOM.sub("", path)
                lines[name].update((file, number) for number in numbits_to_nums(bits))
        cases = ElementTree.parse(folder / TIMES).iter("testcase")
        seconds = {
            f"{case.attrib['classname'].replace('.', '/')}.py::{case.attrib['name']}": float(case.attrib["time"])
            for case in cases
        }
        return cls(seconds, {name: frozenset(lines[name]) for name in seconds})

    def of(self, names: Iterable[str]) -> set[Line]:
        """Return the lines that any of these tests reaches."""
        return set().union(*(self.lines[name] for name in names))


def measure(folder: Path) -> None:
    """Run all tests that are not marked long, with coverage, and leave the result in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "coveragerc"
    config.write_text(f"[run]\nsource = packer,readers\nparallel = True\ndata_file = {folder / DATA}\n")
    command = [sys.executable, "-m", "pytest", "-q", "--all-cases", "-n", str(os.cpu_count() or 1)]
    command += ["--dist", "worksteal", f"--junitxml={folder / TIMES}"]
    command += ["--cov", f"--cov-config={config}", "--cov-context=test", "--cov-report="]
    subprocess.run(command, cwd=REPO, check=True)
