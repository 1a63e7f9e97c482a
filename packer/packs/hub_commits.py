"""`HubCommits`: the Hugging Face Hub as the target of a push. What is written is collected and sent as commits.

Each commit names its parent, and the Hub refuses it if another user has committed since then: so of two pushes one ends
with an error. Files are read from the last commit of this push, or from the one that was there before.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from logging import ERROR
from pathlib import Path
from threading import Lock
from typing import Any

from packer.errors import BusyError, TargetError
from readers.contract.errors import StoreBusyError, StoreError
from readers.stores.hub_store import DATASET, HubStore
from readers.stores.store import Data, Version
from readers.stores.waiting import answered

MOST_FILES = 100
"""The files of a commit. The Hub advises not to send more, and takes 128 commits an hour."""
MOST_ENTRIES = 10_000
"""The files of a folder on the Hub."""
TRIES, PAUSE = 5, 1.0
"""The number of times that a commit is sent, and the seconds before the second time."""

_QUERY = re.compile(r"\?\S*")
"""The part of an address that may have a signature in it."""


class HubCommits(HubStore):
    """The store of one push. `threads` files are uploaded at the same time. All functions may be called by threads."""

    def __init__(self, url: str, threads: int) -> None:
        super().__init__(url)
        self._branch, self._threads, self._lock = self.revision, threads, Lock()
        self._collected: dict[str, Any] = {}
        self._sent: dict[str, int] = {}
        head = answered(self._head)
        if head is None or head == self._branch:
            raise TargetError(f"{self.url}: a commit never changes; name a branch, or leave @{self._branch} out")
        self.revision = head

    def _head(self) -> str | None:
        with self.errors():
            commit: str | None = self._api.repo_info(self.repo, revision=self._branch, repo_type=DATASET).sha
        return commit

    def check_entries(self, count: int) -> None:
        """Refuse a folder with more files than the Hub keeps in one."""
        if count > MOST_ENTRIES:
            raise TargetError(
                f"{self.url}: there would be {count:,} files in a folder, and the Hub keeps {MOST_ENTRIES:,}; build "
                "with a larger --shard-size, or with --format arrow, and push to a new repository or folder of it"
            )

    def read(self, name: str, start: int = 0, stop: int | None = None) -> tuple[bytes, Version]:
        with self._lock:
            collected = self._collected.get(name)
        if collected is None:
            return super().read(name, start, stop)
        with collected.as_file() as file:
            return file.read()[start:stop], Version("collected")

    def add(self, name: str, content: Path | bytes) -> None:
        """Collect a file, which stays unchanged on this machine until it is sent. Commit if there are enough."""
        with self._lock:
            operation = self._hub.CommitOperationAdd(self._prefix + name, content)
            self._collected[name] = operation
            if len(self._collected) >= MOST_FILES:
                self._commit()

    def put(self, name: str, data: Data) -> None:
        try:
            if self.read(name)[0] == data:
                return
        except FileNotFoundError:
            pass
        self.add(name, bytes(data))

    def create(self, name: str, data: Data) -> bool:
        try:
            self.read(name)
        except FileNotFoundError:
            self.add(name, bytes(data))
            return True
        return False

    def replace(self, name: str, data: Data, old: Version) -> bool:
        self.add(name, bytes(data))  # no other user wrote it: what was read is in the parent of the next commit
        return True

    def send(self) -> None:
        """Commit all that was collected, and check that it is there: rules of the repository may leave files out."""
        self.commit()
        sizes = {entry.name: entry.size for entry in self.list("")}
        for name, size in self._sent.items():
            if sizes.get(name) != size:
                raise StoreError(f"{self.url}/{name}: was left out of a commit; does a .gitignore there name it?")

    def commit(self) -> None:
        """Commit all that was collected."""
        with self._lock:
            self._commit()

    def _commit(self) -> None:
        if not self._collected:
            return
        self.revision = self._new_head(secrets.token_hex(16))
        self._sent |= {name: operation.upload_info.size for name, operation in self._collected.items()}
        self._collected = {}

    def _new_head(self, token: str) -> str:
        """Send a commit. A reply may be lost, or be an error although the commit was made, so the history decides."""
        for number in range(TRIES):
            time.sleep(PAUSE * (2**number - 1))
            try:
                return self._try(token)
            except StoreError as error:
                made = self._made(token, error)
                if made is not None:
                    return made
                if number == TRIES - 1 or not isinstance(error, StoreBusyError):
                    raise
        raise AssertionError("the last try returns or raises")

    def _try(self, token: str) -> str:
        with self.errors(), _quiet():
            try:
                done = self._api.create_commit(
                    self.repo,
                    list(self._collected.values()),
                    commit_message=f"packer push: {len(self._collected)} files",
                    commit_description=token,
                    repo_type=DATASET,
                    revision=self._branch,
                    num_threads=self._threads,
                    parent_commit=self.revision,
                )
            except (self._errors_of_hub.HTTPError, self._errors_of_hub.OfflineModeIsEnabled):
                raise
            except (OSError, RuntimeError, ValueError) as error:  # of a thread that uploads, or of Xet
                if isinstance(error.__cause__, self._errors_of_hub.HTTPError):
                    raise error.__cause__ from None
                kind = StoreBusyError if isinstance(error, (ConnectionError, RuntimeError)) else StoreError
                why = _QUERY.sub("", str(error).partition("\n")[0])[:300]
                raise kind(f"{self.url}: files cannot be uploaded ({why or type(error).__name__})") from error
            return done.oid

    def _made(self, token: str, error: StoreError) -> str | None:
        """Return our commit, if it was made; None if there is no new commit.

        Raises BusyError if another user has committed.
        """
        with self.errors():
            commits = self._api.list_repo_commits(self.repo, revision=self._branch, repo_type=DATASET)
        for commit in commits:
            if commit.commit_id == self.revision:
                break
            if token in commit.message:
                return commit.commit_id
        if commits[0].commit_id == self.revision:
            return None
        raise BusyError(
            f"{self.url}: another user has committed there since this push began, so nothing was published; try again"
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Let huggingface_hub show no bars of its own, and no warnings, which may have signed addresses in them."""
    from huggingface_hub.utils import logging
    from huggingface_hub.utils.tqdm import disable_progress_bars

    level = logging.get_verbosity()
    logging.set_verbosity(ERROR)
    try:
        with disable_progress_bars():
            yield
    finally:
        logging.set_verbosity(level)
