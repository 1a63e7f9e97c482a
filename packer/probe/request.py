"""The request of a probe: what was asked for, as typed values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import TypedDict

from packer.classes.documents import unknown_key
from packer.config.effective import from_python
from packer.config.options import OPTIONS, TASK_TIMEOUT, value_of
from packer.pairs.pairing_rules import PairingRules
from packer.sources.files.objects import ObjectsSource
from readers.contract.classes import ClassTable
from readers.machine import usable_cores


class ProbeOptions(TypedDict, total=False):
    """The options of a probe from Python; the documentation of each is the help of the command."""

    image: str | None
    label: str | None
    lists: str | None
    pairs: str | PathLike[str] | None
    classes: str | int | PathLike[str] | ClassTable | None
    ignore: Sequence[str | int]
    sample: int
    near_duplicates: bool
    workers: int | None
    task_timeout: int


@dataclass(frozen=True)
class ProbeRequest:
    """The options of a probe, as typed values."""

    raw: Path
    pairing: PairingRules
    classes: str | ClassTable | None = None
    ignore: tuple[str, ...] = ()
    sample: int = 64
    near_duplicates: bool = False
    workers: int = 1
    task_timeout: int = TASK_TIMEOUT
    objects: ObjectsSource | None = None
    """The objects below a URL. Then `raw` has copies of the texts among them."""

    @property
    def location(self) -> str:
        """The folder, or the URL."""
        return self.objects.url if self.objects else str(self.raw)

    def path_of(self, name: str) -> str:
        """Return the path of a file in the folder, or its URL."""
        return f"{self.objects.url}/{name}" if self.objects else str((self.raw / name).absolute())

    @classmethod
    def from_options(cls, raw: Path, options: ProbeOptions) -> ProbeRequest:
        """The request that these options make. None counts as not given."""
        names = list(ProbeOptions.__annotations__)
        for name in options:
            if name not in names:
                raise TypeError(f"probe options: {name!r} {unknown_key(name, names)}")
        settings = from_python({name: value for name, value in options.items() if name != "sample"})
        values = {name.replace("-", "_"): value_of(OPTIONS[name], setting) for name, setting in settings.items()}
        rules = {rule.name: values.pop(rule.name) for rule in fields(PairingRules) if rule.name in values}
        values.setdefault("workers", usable_cores())
        return cls(raw, PairingRules(**rules), sample=options.get("sample", cls.sample), **values)
