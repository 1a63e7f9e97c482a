"""`Task` and its answers: the texts that pass through an engine, as JSON. They are checked before use."""

from __future__ import annotations

import json
import socket
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from packer.errors import BusyError, EngineError, InputError, PackError, UnavailableError, UsageError
from readers.contract.json_entry import Entry, JsonProblem, loads
from readers.contract.manifest import DIGEST
from readers.contract.receipt import FINGERPRINT

MOST_REJECTS = 10
"""The rejects that an answer names. The receipt of the shard has all."""


@dataclass(frozen=True)
class Task:
    """A shard to build, by its number in a plan folder."""

    plan: str
    sha256: str
    shard: int
    out: str
    raw: str | None
    """The folder of the raw files on the workers, if the plan has another folder."""
    task_timeout: int
    """The seconds that a pair may take."""

    def to_text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Task:
        """Read a task. Raises EngineError if it is not valid."""
        entry = _entry(text, "a task")
        task = cls(
            plan=entry.text("plan"),
            sha256=entry.text("sha256"),
            shard=entry.whole("shard"),
            out=entry.text("out"),
            raw=entry.maybe("raw", entry.text),
            task_timeout=entry.whole("task_timeout", least=1),
        )
        if not DIGEST.fullmatch(task.sha256):
            entry.problem("sha256", "expected 64 hex digits")
        _close(entry, "a task")
        return task


@dataclass(frozen=True)
class BuiltShard:
    """The shard and its receipt are in OUT."""

    fingerprint: str
    receipt: str
    """The SHA-256 of the receipt."""
    rows: int
    rejected: int
    rejects: tuple[tuple[str, str], ...]
    """Key and reason of the first rejects."""
    bytes: int
    worker: str
    """The name of the worker that built it: HOST/ID."""

    @property
    def host(self) -> str:
        return host_of(self.worker)


@dataclass(frozen=True)
class Refused:
    """A worker cannot build this plan, so the build ends: it would draw in all tasks."""

    refused: str


@dataclass(frozen=True)
class Failed:
    """Infrastructure failed: the task is tried again."""

    failed: str
    worker: str = ""
    """The name of the worker that failed: HOST/ID; empty if the engine lost the task."""
    passes: bool = True
    """True if it may pass without a person who repairs something."""


@dataclass(frozen=True)
class Wrong:
    """Data or options are wrong: the build ends with this error, and nothing is tried again."""

    error: str
    about: str

    def to_error(self) -> PackError:
        """Return the error that a local build would raise."""
        return _ERRORS[self.error](self.about)


Answer: TypeAlias = "BuiltShard | Refused | Failed | Wrong"
_ERRORS: dict[str, type[PackError]] = {kind.__name__: kind for kind in (InputError, UsageError)}


def worker_text(worker_id: object) -> str:
    """Return the name of a worker on this host: HOST/ID."""
    return f"{socket.gethostname()}/{worker_id}"


def host_of(worker: str) -> str:
    """Return the host of a worker."""
    return worker.partition("/")[0]


def id_of(worker: str) -> str:
    """Return what the engine calls a worker."""
    return worker.partition("/")[2]


def answer_of(error: Exception, worker: str) -> Failed | Wrong:
    """Return the answer that reports an error of this worker. Only what is wrong on every host is not tried again."""
    if isinstance(error, UsageError):
        return Wrong(UsageError.__name__, str(error))
    is_ours = isinstance(error, PackError)
    words = str(error) if is_ours else f"{type(error).__name__}: {error}"
    passes = not is_ours or isinstance(error, (BusyError, UnavailableError))
    return Failed(f"{host_of(worker)}: {words}", worker, passes)


def answer_text(answer: Answer) -> str:
    """Return an answer as JSON."""
    return json.dumps({"built": asdict(answer)} if isinstance(answer, BuiltShard) else asdict(answer))


def read_answer(text: str) -> Answer:
    """Read an answer. Raises EngineError if it is not valid."""
    entry = _entry(text, "an answer")
    answer: Answer
    if entry.has("refused"):
        answer = Refused(entry.text("refused"))
    elif entry.has("failed"):
        answer = Failed(entry.text("failed"), entry.text("worker"), entry.truth("passes"))
    elif entry.has("error"):
        answer = Wrong(entry.choice("error", tuple(_ERRORS)), entry.text("about"))
    else:
        answer = _read_built(entry.entry("built"))
    _close(entry, "an answer")
    return answer


def _read_built(entry: Entry) -> BuiltShard:
    rejects = entry.lists("rejects")
    if any(len(pair) != 2 or not all(isinstance(text, str) for text in pair) for pair in rejects):
        entry.problem("rejects", "expected pairs of a key and a reason")
        rejects = []
    built = BuiltShard(
        fingerprint=entry.text("fingerprint"),
        receipt=entry.text("receipt"),
        rows=entry.whole("rows"),
        rejected=entry.whole("rejected"),
        rejects=tuple((key, reason) for key, reason in rejects),
        bytes=entry.whole("bytes"),
        worker=entry.text("worker"),
    )
    if not FINGERPRINT.fullmatch(built.fingerprint) or not DIGEST.fullmatch(built.receipt):
        entry.problem("fingerprint", "expected a fingerprint and a SHA-256 in hex digits")
    entry.close()
    return built


def _entry(text: str, what: str) -> Entry:
    problems: list[JsonProblem] = []
    try:
        document: Any = loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise EngineError(f"{what} is not valid: {error}") from error
    return Entry(document, "", problems)


def _close(entry: Entry, what: str) -> None:
    entry.close()
    if entry.problems:
        raise EngineError(f"{what} is not valid: " + "; ".join(map(str, entry.problems)))
