"""`PictureFormat`: what a module of this folder says about the files of one tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from packer.annotations.annotation import AnnotatedPicture
from packer.errors import BadPair


def _nothing_known(data: bytes) -> bool:
    return False


def _no_names(data: bytes) -> tuple[str, ...]:
    return ()


def _placed(picture: AnnotatedPicture, image: bytes) -> AnnotatedPicture:
    return picture


@dataclass(frozen=True, kw_only=True)
class AnnotationFormat:
    """A format of annotations. Only `name` and `rule` have no default."""

    name: str
    rule: str
    """The words of the recipe. They change when the pixels do."""
    is_of_stored: bool = False
    """True if coordinates are of the stored picture where its size does not show it."""
    to_pixels: Callable[[AnnotatedPicture, bytes], AnnotatedPicture] = _placed
    """Returns the objects in pixels. Coordinates on the ground need the bytes of the picture."""
    embedded: Callable[[bytes], bytes] | None = None
    """Returns the bytes of the picture within a file of annotations."""

    def picture_in(self, data: bytes) -> bytes:
        """Return the bytes of the picture within a file of annotations. Raise BadPair if there is none."""
        if self.embedded is None:
            raise BadPair(f"is not a picture, and files of {self.name} have none within them")
        return self.embedded(data)


@dataclass(frozen=True, kw_only=True)
class PictureFormat(AnnotationFormat):
    """A format of a file for each picture."""

    knows: Callable[[bytes], bool]
    """Returns whether a whole file is of this format. Never raises."""
    read: Callable[[bytes, Sequence[str]], AnnotatedPicture]
    """Returns the objects of a picture, by its file and the list of categories. Raises BadPair for a bad file."""
    categories: tuple[str, ...] = ()
    """The categories that every data set of the format has, in their order."""
    lists: tuple[str, ...] = ()
    """The names of files that list the categories, such as data.yaml."""
    other_lists: tuple[str, ...] = ()
    """The suffixes of other files that may list the categories."""
    has_names: Callable[[bytes], bool] = _nothing_known
    """Returns whether a file with such a suffix lists categories."""
    names_of: Callable[[bytes], tuple[str, ...]] = _no_names
    """Returns the categories of a list, in their order."""
    doubt_about: Callable[[Iterable[bytes]], str] | None = None
    """Describes the objects of some files if they could be something else than outlines."""
