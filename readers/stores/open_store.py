"""Open a store by its URL or path."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from readers.contract.errors import RequestError
from readers.stores.folder_store import FolderStore
from readers.stores.store import HUB, Store

_FILE = "file"
_CONTAINERS = ("abfs", "abfss")
"""The schemes whose URLs have a container where others have a user: abfss://container@account.dfs.core.windows.net/x."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/+)(.*)", re.DOTALL)


def url_of(location: object) -> str | None:
    """Return the URL of a store, such as s3://bucket/folder; None of a folder of this machine.

    A `Path` of it is taken, too, although it has lost a slash.
    """
    match = _URL.fullmatch(str(location))
    if match is None:
        return None
    scheme = match[1].lower()
    return f"{scheme}:{'///' if scheme == _FILE or match[2] == '///' else '//'}{match[3].rstrip('/')}"


def is_url(location: object) -> bool:
    """Return whether this names a store by a URL, and not a folder of this machine."""
    return url_of(location) is not None


def open_store(location: str | Path) -> Store:
    """Return the store at a URL or in a folder. A URL with a user, a key or options in it is refused.

    The client of a store is imported when it is opened: most packs are in folders.
    """
    url = url_of(location)
    if url is None:
        return FolderStore(Path(location).absolute())
    parts = urlsplit(url)
    has_user = parts.username is not None and parts.scheme not in _CONTAINERS
    if has_user or parts.password is not None or parts.query or parts.fragment:
        shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        raise RequestError(f"{shown}: the URL has a user, a key or options in it; set them in the environment")
    if parts.scheme == _FILE:
        return FolderStore(url.removeprefix("file://"))
    if parts.scheme == HUB:
        from readers.stores.hub_store import HubStore

        return HubStore(url)
    from readers.stores.object_store import SCHEMES, ObjectStore

    if parts.scheme not in SCHEMES:
        from readers.stores.fsspec_store import FsspecStore

        return FsspecStore(url)
    names = unquote(parts.path).split("/")[1:]
    if not parts.netloc or any(name in ("", ".", "..") for name in names) or _CONTROL.search(unquote(url)):
        raise RequestError(f"{url!r}: is not the URL of a folder in a bucket, such as s3://bucket/folder")
    return ObjectStore(url)
