"""Tasks and answers: what goes to a worker and what comes back, as JSON; what a worker says is not trusted either."""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from packer.errors import EngineError, TargetError
from packer.recipe.shard_spec import ShardSpec
from packer.workers.inspect import Glance, Question
from readers.contract.json_entry import Entry, Problem
from readers.contract.receipt import Receipt


@dataclass(frozen=True)
class ShardTask:
    """To build a shard without the condemned pieces; or, with `places`, only to try whether these decode."""

    spec: ShardSpec
    condemned: Mapping[int, str] = field(default_factory=dict)
    """The reason by the place of the piece in the shard."""
    places: tuple[int, ...] | None = None

    def to_text(self) -> str:
        return json.dumps(
            {"spec": self.spec.to_text(), "condemned": list(self.condemned.items()), "places": self.places}
        )


@dataclass(frozen=True)
class GlanceTask:
    """To glance at a pair; a condemned one, with its reason, is not even read."""

    question: Question
    condemned: str | None = None

    def to_text(self) -> str:
        return json.dumps({"question": self.question.to_json(), "condemned": self.condemned})


def read_task(text: str) -> ShardTask | GlanceTask:
    """In a worker: what its parent wants."""
    document = json.loads(text)
    condemned, places = document["condemned"], document.get("places")
    if "question" in document:
        return GlanceTask(Question.from_json(Entry(document["question"], "question", [])), condemned)
    spec = ShardSpec.from_text(document["spec"])
    return ShardTask(spec, dict(condemned), None if places is None else tuple(places))


def receipt_answer(receipt: Receipt | None) -> str:
    """In a worker: the task is done. A trial gives no receipt."""
    return json.dumps({"receipt": None if receipt is None else receipt.to_text()})


def glance_answer(glance: Glance) -> str:
    """In a worker: what was seen."""
    return json.dumps({"glance": glance.to_json()})


def error_answer(error: Exception) -> str:
    """In a worker: the task failed, and so will the build."""
    if isinstance(error, OSError):
        return json.dumps({"error": "OSError", "about": [error.errno, error.strerror or str(error), error.filename]})
    for kind in _KINDS:
        if isinstance(error, kind):
            return json.dumps({"error": kind.__name__, "about": [str(error)]})
    words = "".join(traceback.format_exception(error))
    return json.dumps({"error": "EngineError", "about": [f"a worker failed: please report this\n{words}"]})


def read_receipt(text: str) -> Receipt | None:
    """In the parent: the receipt, None of a trial, or the worker's error, raised here."""
    receipt = _answer(text)["receipt"]
    return None if receipt is None else Receipt.from_text(receipt, "a worker's receipt")


def read_glance(text: str) -> Glance:
    """In the parent: what was seen, or the worker's error, raised here."""
    problems: list[Problem] = []
    glance = Glance.from_json(Entry(_answer(text)["glance"], "", problems))
    if problems:
        raise EngineError("a worker's answer is not valid: " + "; ".join(map(str, problems)))
    return glance


def _answer(text: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(text)
    if "error" in answer:
        raise {kind.__name__: kind for kind in _KINDS}[answer["error"]](*answer["about"])
    return answer


_KINDS: tuple[type[Exception], ...] = (TargetError, EngineError, MemoryError, OSError)
