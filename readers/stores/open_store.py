"""Open a store by its URL or path."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from readers.contract.errors import RequestError
from readers.stores.folder_store import FolderStore
from readers.stores.fsspec_store import FsspecStore
from readers.stores.hub_store import SCHEME, HubStore
from readers.stores.object_store import SCHEMES, ObjectStore
from readers.stores.store import Store

_FILE = "file"
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/+)(.*)", re.DOTALL)


def url_of(location: object) -> str | None:
    """Return the URL of a store, such as s3://bucket/folder; None of a folder of this machine.

    A `Path` of it is taken, too, although it has lost a slash.
    """
    found = _URL.fullmatch(str(location))
    if found is None:
        return None
    scheme = found[1].lower()
    return f"{scheme}:{'///' if scheme == _FILE or found[2] == '///' else '//'}{found[3].rstrip('/')}"


def is_url(location: object) -> bool:
    """Return whether this names a store by a URL, and not a folder of this machine."""
    return url_of(location) is not None


def open_store(location: str | Path) -> Store:
    """Return the store at a URL or in a folder. A URL with a user, a key or options in it is refused."""
    url = url_of(location)
    if url is None:
        return FolderStore(Path(location).absolute())
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        raise RequestError(f"{shown}: the URL has a user, a key or options in it; set them in the environment")
    if parts.scheme == _FILE:
        return FolderStore(url.removeprefix("file://"))
    if parts.scheme == SCHEME:
        return HubStore(url)
    return ObjectStore(url) if parts.scheme in SCHEMES else FsspecStore(url)
