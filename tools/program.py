"""Parts that all programs of this folder share: where things are, how to start a program, the parser of its options."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path

TOOLS = Path(__file__).resolve().parent
REPO = TOOLS.parent
SAMPLES = REPO / "data_samples" / "raw"


def command(name: str, *options: object) -> list[str]:
    """Return the command line that starts a program in a process of its own."""
    return [sys.executable, str(TOOLS / "run"), name, *map(str, options)]


def parser(doc: str | None) -> ArgumentParser:
    """Return a parser whose help is the docstring of the program."""
    return ArgumentParser(prog=sys.argv[0], description=doc, formatter_class=RawDescriptionHelpFormatter)
