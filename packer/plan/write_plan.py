"""Write a plan as files: packer/recipe/plan_folder.py describes them. Each file is written in one pass."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import numpy as np

from packer.config.config import to_toml
from packer.config.effective import portable
from packer.config.options import BUILD
from packer.errors import TargetError
from packer.plan.header_blocks import has_only_blocks, remove_blocks
from packer.plan.plan import Plan
from packer.publish.atomic import target_errors, write_atomic
from packer.publish.target import STAMPS
from packer.recipe.piece import PieceTable
from packer.recipe.plan_facts import PlanFacts
from packer.recipe.plan_folder import PLAN, RECORD, ROWS, SHARDS, SIZE, SIZES, PlanFolder, digest_of_shard, npy_header
from packer.recipe.recipe import Recipe
from packer.recipe.ref_table import CHUNK
from packer.recipe.row_ref import RowRef
from packer.recipe.shard_spec import ShardSpec
from packer.recipe.source import Source
from packer.sources.portable import path_of
from packer.sources.portable import portable as portable_text
from readers.contract import VERSION
from readers.contract.atomic import make_folder
from readers.contract.shard_table import field_bits
from readers.stores.open_store import url_of

MOST_BYTES = 256 << 20
"""A file of rows gets no further shard from this number of bytes on."""
KEPT = {"from", "raw", *BUILD} - {"workers", "engine"}
"""The settings that a plan keeps: the settings of the machine that planned do not change its name."""
_ROWS = re.compile(r"rows-[0-9]{5,}\.txt")


def write_plan(
    plan: Plan, folder: Path, advance: Callable[[int], object] = lambda done: None, has_tickets: bool = True
) -> PlanFolder:
    """Write a plan into a new or empty folder. Raise the error with which a build of it would stop before its work.

    `advance` is called with the number of shards that were written. Without tickets, no shard is known by its plan, and
    the plan has no states.
    """
    if plan.refusal is not None:
        raise plan.refusal
    source, settings = portable_text(plan.found_rows.source.to_text()), plan.request.settings
    kept = {name: settings[name] for name in settings if name in KEPT}
    raw = settings.get("from", settings.get("raw"))
    with target_errors(folder):
        begun = check_folder(folder)
        make_folder(folder)
        for name in begun:
            (folder / name).unlink()
        states = StatesDigest(plan.found_rows.source)
        with PlanWriter(folder, plan.recipe, plan.pairs) as writer:
            for number, spec in enumerate(plan.specs):
                receipt = plan.reused.get(number)
                if receipt is None and has_tickets:
                    states.add(spec)
                writer.add(spec, "" if receipt is None else receipt.fingerprint)
                advance(1)
            writer.finish()
        facts = PlanFacts(
            package=VERSION,
            recipe=plan.recipe,
            source=source,
            raw=path_of(source) if raw is None else url_of(raw) or str(Path(str(raw)).absolute()),
            settings=to_toml(portable(kept)),
            splits=plan.found_rows.refs.splits,
            shards=writer.shards,
            pieces=writer.pieces,
            rows_files=tuple(writer.rows_files),
            records=writer.digest,
            states=states.digest,
            layout=plan.found_rows.layout,
            missing=tuple(map(str, plan.found_rows.missing)),
            sizes=plan.sizes,
            own_classes=plan.found_rows.classes is not None and plan.found_rows.classes == plan.recipe.classes,
        )
    write_atomic(folder / PLAN, facts.to_text())
    remove_blocks(folder)
    return PlanFolder.open(folder)


def check_folder(folder: Path) -> list[str]:
    """Refuse a folder that is not for a new plan. Return the names of files of a plan that was begun there, without
    what its parts have read."""
    if (url := url_of(folder)) is not None:
        raise TargetError(f"{url}: a plan is a folder of this machine; name one, and copy it to the other machines")
    if folder.exists() and not folder.is_dir():
        raise TargetError(f"{folder}: is a file; name a new or an empty folder")
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    names = [name for name in names if not (name == STAMPS and has_only_blocks(folder))]
    others = [name for name in names if name not in (SHARDS, SIZES) and not _ROWS.fullmatch(name)]
    if others:
        what = "holds a plan, which is never changed" if PLAN in others else f"holds {others[0]}"
        raise TargetError(f"{folder}: {what}; name a new or an empty folder")
    return names


class StatesDigest:
    """Identifies the states of the rows that a plan builds.

    Without it, a plan of files that have changed could be equal to an earlier plan, whose shards are in OUT.
    """

    def __init__(self, source: Source) -> None:
        self._source, self._sha256 = source, hashlib.sha256()
        self._refs: list[RowRef] = []
        """Rows whose states are asked for together, by many threads if files are far away."""

    def add(self, spec: ShardSpec) -> None:
        """Add the states of the rows of a shard."""
        self._refs += dict.fromkeys(piece.ref for piece in spec.pieces)
        if len(self._refs) >= CHUNK:
            self._ask()

    def _ask(self) -> None:
        """Ask for the states of rows. A row without any state makes a plan of its own."""
        states = self._source.states(self._refs)
        self._sha256.update(states.tobytes())
        if (states < 0).all(1).any():
            self._sha256.update(secrets.token_bytes(16))
        self._refs = []

    @property
    def digest(self) -> str:
        """The digest of the states of all rows so far."""
        self._ask()
        return self._sha256.hexdigest()


class PlanWriter:
    """Writes the shards of a plan in their order. It holds none of them."""

    def __init__(self, folder: Path, recipe: Recipe, rows: int) -> None:
        self._folder, self._files = folder, ExitStack()
        self._names = [rule.name for rule in recipe.rules]
        self._records = self._file(SHARDS)
        self._records.write(npy_header(RECORD, (0,)))
        self._sizes = self._file(SIZES)
        self._sizes.write(npy_header(SIZE, (rows, recipe.sides)))
        self._lines: BinaryIO | None = None
        self._splits: dict[str, int] = {}
        self._sha256 = hashlib.sha256()
        self._rows = self.shards = self.pieces = 0
        self.rows_files: list[int] = []
        """The bytes of each file of rows."""

    def __enter__(self) -> PlanWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self._files.close()

    @property
    def digest(self) -> str:
        """The SHA-256 of all records."""
        return self._sha256.hexdigest()

    def add(self, spec: ShardSpec, fingerprint: str = "") -> None:
        """Write the next shard, which exists already if it has a fingerprint."""
        assert isinstance(spec.pieces, PieceTable), "a plan cuts tables of pieces"
        lines, sizes, skipped = spec.pieces.lines
        pairs = sizes.astype(SIZE).tobytes()
        begin, rows = self._write_lines(lines), lines.count(b"\n")
        facts = {
            "fingerprint": fingerprint.encode(),
            "digest": digest_of_shard(lines, pairs),
            "begin": begin,
            "bytes": len(lines),
            "row": self._rows - (skipped > 0),
            "weight": spec.weight,
            "file": len(self.rows_files) - 1,
            "rows": rows,
            "skip": skipped,
            "pieces": len(spec.pieces),
            "split": self._splits.setdefault(spec.split, len(self._splits)),
            "fields": field_bits(self._names, [field.name for field in spec.fields]),
        }
        record = np.array([tuple(facts[name] for name in RECORD.names or ())], RECORD).tobytes()
        self._sha256.update(record)
        self._records.write(record)
        self._sizes.write(pairs[sizes.shape[1] * SIZE.itemsize * (skipped > 0) :])
        self._rows += rows - (skipped > 0)
        self.shards += 1
        self.pieces += len(spec.pieces)

    def finish(self) -> None:
        """Bring all files to the disk."""
        header = npy_header(RECORD, (self.shards,))
        assert len(header) == len(npy_header(RECORD, (0,))), "numpy leaves space for any number"
        self._records.seek(0)
        self._records.write(header)
        for file in (self._records, self._sizes, self._lines):
            if file is not None:
                _sync(file)

    def _write_lines(self, lines: bytes) -> int:
        """Write lines, perhaps to a new file, and return where they begin in it."""
        if self._lines is None or self.rows_files[-1] >= MOST_BYTES:
            if self._lines is not None:
                _sync(self._lines)
                self._lines.close()
            self._lines = self._file(ROWS.format(len(self.rows_files)))
            self.rows_files.append(0)
        self._lines.write(lines)
        self.rows_files[-1] += len(lines)
        return self.rows_files[-1] - len(lines)

    def _file(self, name: str) -> BinaryIO:
        return self._files.enter_context((self._folder / name).open("wb"))


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
