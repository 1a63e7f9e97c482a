"""`OfflineStore`: stands for a store that shall not be asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn

from readers.contract.errors import StoreError
from readers.stores.store import Data, Listed, Version


class OfflineStore:
    """A store that is not asked: what the cache lacks is an error."""

    def __init__(self, url: str) -> None:
        self.url = url

    def list(self, folder: str) -> Iterator[Listed]:
        self._refuse(folder)

    def read(self, name: str, start: int = 0, stop: int | None = None) -> tuple[bytes, Version]:
        self._refuse(name)

    def fetch(self, name: str, write: Callable[[memoryview], object]) -> None:
        self._refuse(name)

    def put(self, name: str, data: Data) -> None:
        self._refuse(name)

    def delete(self, names: Iterable[str]) -> None:
        self._refuse(", ".join(names))

    def create(self, name: str, data: Data) -> bool:
        self._refuse(name)

    def replace(self, name: str, data: Data, old: Version) -> bool:
        self._refuse(name)

    def _refuse(self, name: str) -> NoReturn:
        raise StoreError(f"{self.url}/{name}: is not in the cache, and offline=True asks no store")
