"""`Store`: a folder or a bucket, in which objects are read, written and listed by their names.

A name is a relative path with `/`, such as `generations/000001.json`. One suite, tests/test_stores.py, runs over all
stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from readers.contract.errors import RequestError

Data: TypeAlias = "bytes | bytearray | memoryview"
HUB = "hf"
"""The scheme of the URLs of the Hugging Face Hub."""
SHORT_SECONDS = 600
"""The most seconds of an answer that is not an object: a part of a listing, the size of an object, a deletion."""


@dataclass(frozen=True)
class Version:
    """Identify the bytes of an object. Every write makes another version."""

    tag: str
    """The ETag of an object, or the identity, size and time of a file."""
    number: str = ""
    """The version or generation, in stores that have one. Listings do not have it."""


@dataclass(frozen=True)
class Listed:
    """An object in a listing."""

    name: str
    size: int
    tag: str
    modified: float
    """Seconds since 1970, by the clock of the store."""


class Store(Protocol):
    """A folder or a bucket. All functions may be called by several threads.

    A missing object is a FileNotFoundError. Everything else that fails is a StoreError, or DamagedError for an object
    that must not be read, such as a link that leads out of a folder. A name that `check_name` refuses is a
    RequestError.
    """

    @property
    def url(self) -> str:
        """The folder or URL, for messages. It has no credentials."""

    def list(self, folder: str) -> Iterator[Listed]:
        """Yield every object below a folder, in any order, as the listing arrives; "" is the whole store.

        A folder without objects does not exist, so it has no entries.
        """

    def read(self, name: str, start: int = 0, stop: int | None = None) -> tuple[bytes, Version]:
        """Return the bytes from `start`, which is within the object, to `stop`, or to the end if that comes first."""

    def fetch(self, name: str, write: Callable[[memoryview], object]) -> None:
        """Pass the bytes of an object to `write`, piece by piece in order. A piece is valid until `write` returns.

        An error may follow after any piece: then begin with a new file.
        """

    def put(self, name: str, data: Data) -> None:
        """Write an object, or replace it. Readers see the old bytes or all of the new ones."""

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects. Missing ones are not an error."""

    def create(self, name: str, data: Data) -> bool:
        """Write an object if none has this name, and return whether it was written.

        False is not proof: a reply may be lost, and the try after it finds the object of the first. See
        `packer.publish.conditional_writes`.
        """

    def replace(self, name: str, data: Data, old: Version) -> bool:
        """Write an object if it is still the one that was read, and return whether it was written. See `create`.

        The bytes must differ from those that were read: in some stores the same bytes have the same version.
        """


def check_name(name: str) -> str:
    """Return a name that means the same object in every store; else raise RequestError."""
    parts = name.split("/")
    if "\0" in name or any(part in ("", ".", "..") for part in parts):
        raise RequestError(f"{name!r} is not the name of an object")
    return name
