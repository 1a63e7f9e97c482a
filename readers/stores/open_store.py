"""Open a store by its URL or path."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from readers.contract.errors import RequestError
from readers.stores.folder_store import FolderStore
from readers.stores.fsspec_store import FsspecStore
from readers.stores.object_store import SCHEMES, ObjectStore
from readers.stores.store import Store

_FILE = "file"


def is_url(location: object) -> bool:
    """Return whether this names a store by a URL such as s3://bucket/folder, and not a folder of this machine."""
    return "://" in str(location)


def open_store(location: str) -> Store:
    """Return the store at a URL or in a folder. A URL with a user, a key or options in it is refused."""
    if not is_url(location):
        return FolderStore(Path(location).absolute())
    parts = urlsplit(location)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        raise RequestError(f"{shown}: the URL has a user, a key or options in it; set them in the environment")
    if parts.scheme == _FILE:
        return FolderStore(parts.path)
    return ObjectStore(location) if parts.scheme in SCHEMES else FsspecStore(location)
