"""Name a raw file in front of the reason why its pair is bad."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from packer.errors import MOST_FILES, BadFile, BadPair, LostFile, first_of
from readers.contract.regular_files import NotRegularError

SEPARATOR = "\t"
"""Between the paths of a field that has a file for each class or band. No path has a tab: it is a control character."""


@contextmanager
def naming_number(number: int) -> Iterator[None]:
    """Say which of the files of a field is to blame, for `naming`."""
    try:
        yield
    except LostFile:
        raise
    except BadPair as bad:
        raise BadFile(number, str(bad)) from None


class Naming:
    """Puts a file's name in front of the reason why it is bad. A class, as a generator takes a tenth of a header."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, BadPair):
            files = self._path.split(SEPARATOR)
            if isinstance(error, BadFile) and len(files) > 1:
                raise BadPair(f"{files[error.number]}: {error}") from None
            raise error.because(f"{', '.join(first_of(list(filter(None, files)), MOST_FILES))}: {error}") from None
        if isinstance(error, NotRegularError):
            raise LostFile(f"{self._path}: {error.strerror}") from None
        if isinstance(error, OSError):
            raise LostFile(f"{self._path}: cannot be read ({error.strerror})") from error


def naming(path: str) -> Naming:
    """Put a file's name in front of the reason why it is bad. Several paths have the separator between them."""
    return Naming(path)
