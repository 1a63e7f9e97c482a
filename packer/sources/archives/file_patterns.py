"""Patterns of files, such as train-{000..004}.tar, and the split that the path of a file names."""

from __future__ import annotations

import re

from packer.errors import UsageError
from readers.contract.manifest import ALL

MOST_FILES = 1 << 20
BRACES = re.compile(r"\{([^{}]*)\}")
_NUMBERS = re.compile(r"(\d{1,9})\.\.(\d{1,9})")
_SPLIT = re.compile(r"(?<![a-z])(train|training|val|valid|validation|test|testing)(?![a-z])")


def expanded(text: str) -> list[str]:
    """Return a pattern with each of its braces replaced: {000..004} is a range, {a,b} a choice."""
    texts = [text]
    while braces := BRACES.search(texts[0]):
        choices = braces[1].split(",")
        if numbers := _NUMBERS.fullmatch(braces[1]):
            first, last = map(int, numbers.groups())
            choices = [f"{number:0{len(numbers[1])}}" for number in range(first, min(last, first + MOST_FILES) + 1)]
        texts = [pattern.replace(braces[0], choice, 1) for pattern in texts for choice in choices]
        if not 0 < len(texts) <= MOST_FILES:
            raise UsageError(f"{text}: stands for {len(texts)} files; 1 to {MOST_FILES} are possible")
    return texts


def split_in(file: str) -> str:
    """Return the split that the path of a file names, such as `train` for train-000.tar; else the split `all`."""
    splits = _SPLIT.findall(file.lower())
    return splits[-1] if splits else ALL
