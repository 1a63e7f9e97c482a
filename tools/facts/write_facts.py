"""Write and read facts: a JSON file in tests/facts that names the versions of the tools that gave them."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from program import REPO

FACTS = REPO / "tests" / "facts"


def write_facts(
    name: str, packages: list[str], cases: list[dict[str, Any]], more_versions: dict[str, str] | None = None
) -> None:
    """Write the cases, one a line, and the versions of the packages that gave them."""
    versions = json.dumps({**{package: version(package) for package in packages}, **(more_versions or {})})
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    path = FACTS / f"{name}.json"
    path.write_text(f'{{"versions": {versions}, "cases": [\n{lines}\n]}}\n', encoding="utf-8")
    print(f"{path}: {len(cases)} cases, {path.stat().st_size} bytes")


def read_facts(name: str) -> list[dict[str, Any]]:
    """Return the cases of a file."""
    cases: list[dict[str, Any]] = json.loads((FACTS / f"{name}.json").read_text(encoding="utf-8"))["cases"]
    return cases


def packed(pixels: NDArray[Any]) -> str:
    """Return the pixels as a short text."""
    return b64encode(zlib.compress(np.ascontiguousarray(pixels, pixels.dtype.newbyteorder("<")).tobytes(), 9)).decode()


def unpacked(text: str, size: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """Return the pixels of a text."""
    return np.frombuffer(zlib.decompress(b64decode(text)), np.dtype(dtype).newbyteorder("<")).reshape(size)
