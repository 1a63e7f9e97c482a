"""Tasks and answers: what goes to a worker and what comes back, as JSON; what a worker says is not trusted either."""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field

from packer.errors import EngineError, TargetError
from packer.spec import ShardSpec
from readers.contract.receipt import Receipt


@dataclass(frozen=True)
class Task:
    """To build a shard without the condemned pairs; or, with `places`, only to try whether these pairs decode."""

    spec: ShardSpec
    condemned: Mapping[int, str] = field(default_factory=dict)
    """The reason by the place of the pair in the shard."""
    places: tuple[int, ...] | None = None

    def to_text(self) -> str:
        return json.dumps(
            {"spec": self.spec.to_text(), "condemned": list(self.condemned.items()), "places": self.places}
        )

    @classmethod
    def from_text(cls, text: str) -> Task:
        document = json.loads(text)
        places = document["places"]
        return cls(
            ShardSpec.from_text(document["spec"]),
            dict(document["condemned"]),
            None if places is None else tuple(places),
        )


def receipt_answer(receipt: Receipt | None) -> str:
    """In a worker: the task is done. A trial gives no receipt."""
    return json.dumps({"receipt": None if receipt is None else receipt.to_text()})


def error_answer(error: Exception) -> str:
    """In a worker: the task failed, and so will the build."""
    if isinstance(error, OSError):
        return json.dumps({"error": "OSError", "about": [error.errno, error.strerror or str(error), error.filename]})
    for kind in _KINDS:
        if isinstance(error, kind):
            return json.dumps({"error": kind.__name__, "about": [str(error)]})
    words = "".join(traceback.format_exception(error))
    return json.dumps({"error": "EngineError", "about": [f"a worker failed: please report this\n{words}"]})


def read_answer(text: str) -> Receipt | None:
    """In the parent: the receipt, None of a trial, or the worker's error, raised here."""
    answer = json.loads(text)
    if "error" in answer:
        raise {kind.__name__: kind for kind in _KINDS}[answer["error"]](*answer["about"])
    return None if answer["receipt"] is None else Receipt.from_text(answer["receipt"], "a worker's receipt")


_KINDS: tuple[type[Exception], ...] = (TargetError, EngineError, MemoryError, OSError)
