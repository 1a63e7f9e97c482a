"""A data set of the Hugging Face Hub as a `Store` to read from: hf://datasets/OWNER/NAME[@REVISION][/FOLDER].

The Hub takes commits and no single writes, so `packer push` writes by `packer.packs.hub_commits`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from readers.contract import VERSION
from readers.contract.errors import RequestError, StoreBusyError, StoreError
from readers.stores.least_rate import LeastRate
from readers.stores.store import Data, Listed, Version, check_name
from readers.stores.waiting import RETRY_SECONDS, Patience, within

ENDPOINT = "HF_ENDPOINT"
"""The variable that names another Hub."""
TOKEN = "HF_TOKEN"
DATASET = "dataset"
LIBRARY = "segpack"
OF_THE_HUB = (".gitattributes", "README.md")
"""Files that the Hub and its pages keep at the root of a repository. A pack has none of these names."""
NO_SUCH_RANGE = 416
TIMEOUT, AGAIN = 60.0, 1
"""The most seconds that the Hub may be silent, and the tries of its client after the first: it keeps to Retry-After."""
LISTED, LIST_SECONDS = 1000, RETRY_SECONDS
"""Entries of a listing that are waited for together, and how long: the client would wait for ever."""
PASSING = (408, 425, 429)
"""The codes below 500 after which trying again may help."""


class HubStore:
    """The files of a data set on the Hub, or of a folder in it. The token is found by huggingface_hub."""

    def __init__(self, url: str) -> None:
        try:
            import huggingface_hub
            from huggingface_hub import errors, utils
        except ImportError:
            raise StoreError(f"{url}: needs huggingface_hub; pip install 'segpack[hub]'") from None
        self.url = url.rstrip("/")
        self._hub: Any = huggingface_hub
        self._errors_of_hub: Any = errors
        self._utils: Any = utils
        try:
            address = huggingface_hub.parse_hf_uri(self.url)
        except ValueError:
            raise RequestError(f"{self.url}: expected hf://datasets/OWNER/NAME, with @REVISION or a folder") from None
        if address.type != DATASET:
            raise RequestError(f"{self.url}: names a {address.type} of the Hub; packs go to hf://datasets/OWNER/NAME")
        self.repo, self.revision = address.id, address.revision or "main"
        self._prefix = f"{check_name(address.path_in_repo)}/" if address.path_in_repo else ""
        self._api = huggingface_hub.HfApi(os.environ.get(ENDPOINT), library_name=LIBRARY, library_version=VERSION)

    def list(self, folder: str) -> Iterator[Listed]:
        path = self._prefix + check_name(folder) if folder else self._prefix
        with self.errors():
            files = iter(
                self._api.list_repo_tree(
                    self.repo, path.rstrip("/") or None, recursive=True, revision=self.revision, repo_type=DATASET
                )
            )
            while entries := self._listed(files):
                for file in entries:
                    if isinstance(file, self._hub.RepoFile) and file.path not in OF_THE_HUB:
                        tag = file.blob_id if file.lfs is None else file.lfs.sha256
                        yield Listed(file.path.removeprefix(self._prefix), file.size, tag, 0)

    def _listed(self, files: Iterator[Any]) -> Sequence[Any]:
        """Return the next entries of a listing; a folder that is not there has none."""
        try:
            return within(LIST_SECONDS, lambda: tuple(islice(files, LISTED)))
        except TimeoutError as error:
            raise StoreBusyError(f"{self.url}: the Hub does not list its files ({error})") from error
        except self._errors_of_hub.EntryNotFoundError:
            return ()

    def read(self, name: str, start: int = 0, stop: int | None = None) -> tuple[bytes, Version]:
        pieces = self._pieces(name, start, stop if stop is None else max(stop, start + 1))
        tag, data = next(pieces)
        data = data.join(piece for _, piece in pieces)
        return data[: None if stop is None else max(0, stop - start)], Version(tag)

    def fetch(self, name: str, write: Callable[[memoryview], object]) -> None:
        for _, piece in self._pieces(name, 0, None):
            write(memoryview(piece))

    def put(self, name: str, data: Data) -> None:
        raise StoreError(f"{self.url}: build into a folder, then copy that to the Hub: packer push OUT {self.url}")

    def delete(self, names: Iterable[str]) -> None:
        raise StoreError(f"{self.url}: files on the Hub are deleted there, by its pages or by: hf repos delete-files")

    def create(self, name: str, data: Data) -> bool:
        self.put(name, data)
        return False

    def replace(self, name: str, data: Data, old: Version) -> bool:
        return self.create(name, data)

    def _pieces(self, name: str, start: int, stop: int | None) -> Iterator[tuple[str, bytes]]:
        """Yield the ETag and pieces of a file. After an answer that is cut, or none, a further request asks for the
        rest, until the clock ends this."""
        done, patience = start, Patience()
        while True:
            try:
                for tag, piece in self._answer(check_name(name), done, stop):
                    if piece:
                        done, patience = done + len(piece), Patience()
                    yield tag, piece
                return
            except StoreBusyError as error:
                patience.wait(error)

    def _answer(self, name: str, start: int, stop: int | None) -> Iterator[tuple[str, bytes]]:
        """Ask for a file, from `start` on. Large ones come from another host, which gets no token."""
        headers = {**self._utils.build_hf_headers(library_name=LIBRARY), "Accept-Encoding": "identity"}
        if start or stop is not None:
            headers["Range"] = f"bytes={start}-{'' if stop is None else stop - 1}"
        url = self._hub.hf_hub_url(
            self.repo, self._prefix + name, repo_type=DATASET, revision=self.revision, endpoint=self._api.endpoint
        )
        options = {"headers": headers, "timeout": TIMEOUT, "follow_redirects": True, "max_retries": AGAIN}
        with self.errors(name), self._utils.http_stream_backoff("GET", url, **options) as response:
            is_empty = response.status_code == NO_SUCH_RANGE  # no byte of an empty file can be asked for
            if not is_empty:
                self._utils.hf_raise_for_status(response)
            tag, passed = _tag(response), start if response.status_code == 200 else 0
            yield tag, b""
            if is_empty:
                return
            rate = LeastRate(f"{self.url}/{name}")
            try:  # within the answer, because the client would ask again for errors of the network
                for piece in response.iter_bytes():
                    rate.came(len(piece))
                    kept = piece[passed:]
                    passed -= len(piece) - len(kept)
                    yield tag, kept
            except self._errors_of_hub.HTTPError:
                raise StoreBusyError(f"{self.url}/{name}: the answer is cut again and again") from None

    @contextmanager
    def errors(self, name: str = "") -> Iterator[None]:
        """Turn the errors of huggingface_hub into errors of a store. None shows an address: it may be a signed one."""
        hub, where = self._errors_of_hub, f"{self.url}/{name}" if name else self.url
        try:
            yield
        except hub.RemoteEntryNotFoundError as error:
            raise FileNotFoundError(f"{where}: there is no such file") from error
        except hub.GatedRepoError as error:
            raise StoreError(f"{where}: ask for access on its page, and log in: hf auth login, or {TOKEN}") from error
        except hub.RepositoryNotFoundError as error:
            raise StoreError(
                f"{where}: the Hub shows no such data set. Make it: hf repos create {self.repo} --type dataset "
                f"(--private). If it is there and private, log in: hf auth login, or set {TOKEN}"
            ) from error
        except hub.RevisionNotFoundError as error:
            raise StoreError(f"{where}: there is no branch, tag or commit {self.revision}") from error
        except hub.HfHubHTTPError as error:
            raise self._refusal(where, error.response.status_code, error.server_message) from error
        except hub.HTTPError as error:
            raise StoreBusyError(f"{where}: the Hub does not answer ({type(error).__name__})") from error
        except hub.OfflineModeIsEnabled as error:
            raise StoreError(f"{where}: HF_HUB_OFFLINE is set") from error

    def _refusal(self, where: str, status: int, message: str | None) -> StoreError:
        why = f"the Hub answers {status}" + (f", {message.splitlines()[0][:300]}" if message else "")
        if status in (401, 403):
            why += f"; log in with a token that may do this: hf auth login, or set {TOKEN}"
        if status >= 500 or status in PASSING:
            return StoreBusyError(f"{where}: {why}")
        return StoreError(f"{where}: {why}")


def _tag(response: Any) -> str:
    """Return the tag that listings have, too: of a large file, whose bytes come from another host, the Hub itself has
    it."""
    headers = (response.history or [response])[0].headers
    tag: str = headers.get("x-linked-etag") or headers.get("etag", "")
    return tag.removeprefix("W/").strip('"')
