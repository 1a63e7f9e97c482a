"""Remarks: what the build of a generation noticed, in OUT/remarks, for reports. Readers do not need them.

Rejects, findings and notes are in the receipts, too, or follow from them, but 10^6 rows have 230 MB of receipts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from packer.errors import TargetError
from packer.publish.atomic import write_atomic
from packer.publish.target import REMARKS
from readers.contract.errors import DamagedError
from readers.contract.files import plain_file
from readers.contract.json_entry import Entry, JsonProblem, loads
from readers.contract.manifest import Manifest

MOST_LISTED = 1000
_MOST_BYTES = 16 << 20


@dataclass(frozen=True)
class Remarks:
    """The first rejects, findings and notes of a build, how many there are, and its seconds."""

    identity: str
    """The identity in the manifest."""
    seconds: float
    rows: int
    reused: int
    """Rows in shards that existed before."""
    rejects: tuple[tuple[str, str, str], ...]
    """Split, key and reason."""
    all_rejects: int
    findings: tuple[tuple[str, tuple[str, ...], str], ...]
    """The kind, the pairs and the words of each likely mistake that was not accepted."""
    all_findings: int
    notes: tuple[tuple[str, str, str], ...]
    """Split, key and text."""
    all_notes: int
    totals: tuple[str, ...] = ()
    """The sums of what sources counted, such as "12 objects hidden by others"."""


def remarks_path(out: Path, generation: int) -> Path:
    return out / REMARKS / f"{generation:06d}.json"


def keep_remarks(out: Path, generation: int, remarks: Remarks) -> None:
    """Write the remarks of a generation, unless they are there. If that fails, a report lacks them."""
    path = remarks_path(out, generation)
    if path.exists():
        return
    with suppress(OSError, TargetError):
        path.parent.mkdir(exist_ok=True)
        write_atomic(path, json.dumps(asdict(remarks), indent=0, ensure_ascii=False) + "\n")


def forget_in_remarks(out: Path, before: Manifest, after: Manifest, key: str) -> None:
    """Write the remarks of a generation again, whose manifest changed, without those that name a row."""
    remarks = load_remarks(out, before)
    remarks_path(out, before.generation).unlink(missing_ok=True)
    if remarks is None:
        return
    names_it = re.compile(rf"(?<!\w){re.escape(key)}(?!\w)")  # part of a longer word is another key
    lists = {
        name: tuple(line for line in getattr(remarks, name) if not names_it.search(_text(line)))
        for name in ("rejects", "findings", "notes")
    }
    counts = {
        f"all_{name}": getattr(remarks, f"all_{name}") - len(getattr(remarks, name)) + len(lines)
        for name, lines in lists.items()
    }
    facts: dict[str, Any] = {**lists, **counts, "identity": after.identity, "rows": after.rows}
    keep_remarks(out, after.generation, replace(remarks, **facts))


def _text(line: Sequence[str | Sequence[str]]) -> str:
    """Return all texts of a remark."""
    return "\n".join(part if isinstance(part, str) else "\n".join(part) for part in line)


def load_remarks(out: Path, manifest: Manifest) -> Remarks | None:
    """Return the remarks of a generation; None if there are none, or they are damaged or of another one."""
    path = remarks_path(out, manifest.generation)
    try:
        with plain_file(out, path).open("rb") as file:
            document = loads(file.read(_MOST_BYTES))
    except (OSError, DamagedError, ValueError, RecursionError):
        return None
    problems: list[JsonProblem] = []
    remarks = _remarks(Entry(document, "", problems))
    return None if problems or remarks.identity != manifest.identity else remarks


def _remarks(entry: Entry) -> Remarks:
    remarks = Remarks(
        identity=entry.text("identity"),
        seconds=entry.number("seconds"),
        rows=entry.whole("rows"),
        reused=entry.whole("reused"),
        rejects=_triples(entry, "rejects"),
        all_rejects=entry.whole("all_rejects"),
        findings=tuple(
            (str(kind), tuple(map(str, pairs)), str(words)) for kind, pairs, words in _lists(entry, "findings")
        ),
        all_findings=entry.whole("all_findings"),
        notes=_triples(entry, "notes"),
        all_notes=entry.whole("all_notes"),
        totals=entry.texts("totals") if entry.has("totals") else (),
    )
    entry.close()
    return remarks


def _triples(entry: Entry, key: str) -> tuple[tuple[str, str, str], ...]:
    return tuple((str(split), str(name), str(words)) for split, name, words in _lists(entry, key))


def _lists(entry: Entry, key: str) -> list[list[Any]]:
    """Take lists of three items. The second one of a finding is a list."""
    lists = entry.lists(key)
    inner = list if key == "findings" else str
    if len(lists) > MOST_LISTED or any(len(item) != 3 or not isinstance(item[1], inner) for item in lists):
        entry.problem(key, f"expected at most {MOST_LISTED} lists of three items")
        return []
    return lists
