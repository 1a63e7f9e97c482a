"""Airflow without Airflow: the pipelines of the guide run their code, and only remember what they would do."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from itertools import accumulate
from types import ModuleType
from typing import Any

import pytest


class StubTask:
    """An operator of Airflow that only remembers its options and the tasks that come after it."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.after: list[StubTask] = []

    @classmethod
    def partial(cls, **options: Any) -> StubTask:
        return cls(**options)

    def expand(self, **options: Any) -> StubTask:
        self.options |= options
        return self

    def __rshift__(self, other: StubTask) -> StubTask:
        self.after.append(other)
        return other


def run_pipeline(code: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run the code of a pipeline; return its variables."""
    operators = tuple(accumulate(("airflow", "providers", "standard", "operators", "bash"), "{}.{}".format))
    for name in ("airflow", "airflow.sdk", *operators):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(sys.modules["airflow.sdk"], "DAG", lambda *args, **options: nullcontext(), raising=False)
    monkeypatch.setattr(sys.modules[operators[-1]], "BashOperator", StubTask, raising=False)
    variables: dict[str, Any] = {}
    exec(code, variables)  # noqa: S102 - the code of our own page
    return variables
