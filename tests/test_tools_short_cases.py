"""The cases that `make test` runs: the file names functions that are there, and the choice keeps what it promises."""

from __future__ import annotations

import ast
import json
from functools import cache

from checks.short_cases import choose, kept_cases, text_of
from conftest import REPO, SHORT_CASES
from reach import Reach


def test_every_function_is_there() -> None:
    gone = [
        f"{file}::{name}"
        for file, functions in json.loads(SHORT_CASES.read_text(encoding="ascii")).items()
        for name in functions
        if name not in _functions(file)
    ]
    assert gone == []


@cache
def _functions(file: str) -> set[str]:
    tree = ast.parse((REPO / "tests" / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_a_long_function_runs_its_shortest_case_and_those_that_reach_new_lines() -> None:
    first, second = frozenset({("a.py", 1)}), frozenset({("a.py", 1), *(("b.py", line) for line in range(9))})
    cases = {
        "tests/test_a.py::test_quick[1]": (0.1, first),
        "tests/test_a.py::test_quick[2]": (0.1, first),
        "tests/test_a.py::test_long[short]": (0.3, first),
        "tests/test_a.py::test_long[new]": (0.9, second),
        "tests/test_a.py::test_long[same]": (0.9, second),
        "tests/test_b.py::test_alone": (9.0, second | {("c.py", 1)}),
    }
    reach = Reach(
        {name: seconds for name, (seconds, _) in cases.items()}, {name: lines for name, (_, lines) in cases.items()}
    )
    kept = kept_cases(reach.seconds, choose(reach))
    assert kept == {"test_a.py": {"test_long": ["short", "new"]}, "test_b.py": {"test_alone": []}}
    assert json.loads(text_of(kept)) == kept
