"""`Location`: where a data set is, and how its pack is opened, for the first time or again in another process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from readers.contract.errors import DamagedError, RequestError
from readers.pack import Pack
from readers.staged_copies import open_pack, reopen

Verify = Literal["digest"]


@dataclass(frozen=True)
class Location:
    """The pack to open, and the options of opening it."""

    root: Path
    verify: Verify | None
    staged: bool

    def __post_init__(self) -> None:
        if self.verify not in (None, "digest"):
            raise RequestError(f'verify={self.verify!r} is neither None nor "digest"')

    @property
    def digests(self) -> bool:
        """True if files are compared with their checksums before they are opened."""
        return self.verify == "digest"

    def open(self, generation: int | None = None) -> Pack:
        """Open the pack, or a staged copy of it."""
        return open_pack(self.root, generation, self.digests, self.staged)

    def open_again(self, folder: Path, generation: int, identity: str) -> Pack:
        """Open a generation that was read from `folder` before: there if it is a copy that still exists."""
        copy = reopen(folder, generation, identity, self.digests) if folder != self.root else None
        pack = copy or self.open(generation)
        if pack.manifest.identity != identity:
            raise DamagedError(f"{self.root}: generation {generation} is not the one that was pickled")
        return pack
