"""Tasks and answers: the messages between a pool and its workers, as JSON. Answers are checked before use."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from packer.errors import BusyError, EngineError, LostFileError, TargetError, UsageError
from packer.recipe.field_rule import FieldRule
from packer.recipe.row_ref import RowRef
from packer.recipe.shard_spec import ShardSpec
from packer.shards.alike_heads import AlikeHeads
from packer.shards.inspect import InspectRequest, LabelCounts
from packer.shards.measure import MeasuredRow
from readers.contract.json_entry import Entry, JsonProblem
from readers.contract.receipt import FINGERPRINT, Receipt


@dataclass(frozen=True)
class ShardTask:
    """Build a shard; or, with `indices`, only decode these pieces and write nothing."""

    spec: ShardSpec
    out: str
    crashed: Mapping[int, str]
    """The pieces that crash workers, with the reason: they become rejects without being read."""
    indices: tuple[int, ...] | None = None
    rewrite: bool = False
    """Write the files although they are there: their bytes are damaged."""

    def to_text(self) -> str:
        return json.dumps(
            {
                "shard": self.spec.to_text(),
                "out": self.out,
                "crashed": list(self.crashed.items()),
                "indices": self.indices,
                "rewrite": self.rewrite,
            }
        )


@dataclass(frozen=True)
class InspectTask:
    """Inspect a pair. With a reason in `crashed`, the pair is reported as bad without being read."""

    request: InspectRequest
    crashed: str | None = None

    def to_text(self) -> str:
        return json.dumps({"inspect": self.request.to_json(), "crashed": self.crashed})


@dataclass(frozen=True)
class MeasureTask:
    """Measure the bytes of these pieces as the recipe stores them, and by other rules of its fields."""

    spec: ShardSpec
    others: tuple[FieldRule, ...]

    def to_text(self) -> str:
        return json.dumps({"measure": self.spec.to_text(), "others": [rule.to_json() for rule in self.others]})


@dataclass(frozen=True)
class HeadsTask:
    """Read the headers of these rows."""

    refs: tuple[RowRef, ...]

    def to_text(self) -> str:
        return json.dumps({"heads": self.refs})


def read_task(text: str) -> ShardTask | InspectTask | MeasureTask | HeadsTask:
    """Read a task, in a worker."""
    task = json.loads(text)
    if "heads" in task:
        return HeadsTask(tuple(RowRef(split, key, tuple(parts)) for split, key, parts in task["heads"]))
    if "measure" in task:
        others = (FieldRule.from_json(Entry(rule, "others", [])) for rule in task["others"])
        return MeasureTask(ShardSpec.from_text(task["measure"]), tuple(others))
    if "inspect" in task:
        request = InspectRequest.from_json(Entry(task["inspect"], "inspect", []))
        return InspectTask(request, task["crashed"])
    indices = None if task["indices"] is None else tuple(task["indices"])
    spec = ShardSpec.from_text(task["shard"])
    return ShardTask(spec, task["out"], dict(task["crashed"]), indices, task["rewrite"])


def shard_answer(receipt: Receipt | None) -> str:
    """Answer a shard task with the fingerprint of the receipt, which is on the disk. A trial has none."""
    return json.dumps({"shard": None if receipt is None else receipt.fingerprint})


def inspect_answer(counts: LabelCounts) -> str:
    """Answer an inspect task."""
    return json.dumps({"counts": counts.to_json()})


def measure_answer(rows: Iterable[MeasuredRow]) -> str:
    """Answer a measure task."""
    return json.dumps({"rows": list(rows)})


def heads_answer(alike: Iterable[AlikeHeads]) -> str:
    """Answer a heads task."""
    return json.dumps({"heads": [group.to_json() for group in alike]})


def error_answer(error: Exception) -> str:
    """Report an error, which ends the build."""
    if isinstance(error, OSError):
        return json.dumps({"error": "OSError", "about": [error.errno, error.strerror or str(error), error.filename]})
    for kind in _KINDS:
        if isinstance(error, kind):
            return json.dumps({"error": kind.__name__, "about": [str(error)]})
    trace = "".join(traceback.format_exception(error))
    return json.dumps({"error": "EngineError", "about": [f"a worker failed: please report this\n{trace}"]})


def read_fingerprint(text: str) -> str | None:
    """Read the answer to a shard task: a fingerprint, or None of a trial. Raises the worker's error."""
    fingerprint = _answer(text)["shard"]
    if fingerprint is not None and not FINGERPRINT.fullmatch(str(fingerprint)):
        raise EngineError(f"a worker's answer is not valid: {str(fingerprint)[:100]!r}")
    return None if fingerprint is None else str(fingerprint)


def read_counts(text: str) -> LabelCounts:
    """Read the answer to an inspect task. Raises the worker's error."""
    problems: list[JsonProblem] = []
    counts = LabelCounts.from_json(Entry(_answer(text)["counts"], "", problems))
    if problems:
        raise EngineError("a worker's answer is not valid: " + "; ".join(map(str, problems)))
    return counts


def read_sizes(text: str) -> tuple[MeasuredRow, ...]:
    """Read the answer to a measure task. Raises the worker's error."""
    return tuple(
        MeasuredRow(_wholes(raw), _wholes(fields), _wholes(others), None if bad is None else str(bad))
        for raw, fields, others, bad in _answer(text)["rows"]
    )


def read_heads(text: str, count: int) -> list[AlikeHeads]:
    """Read the answer to a heads task of this number of rows. Raises the worker's error."""
    groups = [AlikeHeads.from_json(*group) for group in _answer(text)["heads"]]
    if sorted(row for group in groups for row in group.rows) != list(range(count)):
        raise EngineError("a worker's answer is not valid: it does not have the headers of each row once")
    return groups


def _wholes(numbers: list[Any]) -> tuple[int, ...]:
    return tuple(map(int, numbers))


def _answer(text: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(text)
    if "error" in answer:
        raise {kind.__name__: kind for kind in _KINDS}[answer["error"]](*answer["about"])
    return answer


_KINDS: tuple[type[Exception], ...] = (
    TargetError,
    BusyError,
    EngineError,
    LostFileError,
    UsageError,
    MemoryError,
    OSError,
)
