"""Files of many pictures in which all annotations of a picture lie together: tasks of Label Studio, images of CVAT."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, BinaryIO, NamedTuple
from xml.parsers import expat

from packer.annotations.annotation import AnnotatedPicture
from packer.annotations.json_stream import BOM, items_of
from packer.annotations.json_values import MOST_BYTES
from packer.errors import BadPair

CHUNK = 1 << 20
HEAD = 1 << 16
"""The bytes in which the root of an XML file begins."""
WHOLE = CVAT, LABEL_STUDIO = ("cvat", "label_studio")
"""The formats, each a module of this folder, which is imported when a file of it is read."""


class WholePicture(NamedTuple):
    """The bytes of a picture with its annotations, and where they begin in the file."""

    start: int
    raw: bytes
    picture: AnnotatedPicture


def format_of_whole(file: BinaryIO) -> str | None:
    """Return the format of a file by its first character; None: it is another one. The file is at its start again."""
    first = file.read(256).removeprefix(BOM).lstrip()[:1]
    file.seek(0)
    return {b"[": LABEL_STUDIO, b"<": CVAT}.get(first)


def may_be_whole(file: BinaryIO) -> bool:
    """Return whether the beginning of a file looks like one of these formats, although it may be damaged later."""
    file.seek(0)
    name = format_of_whole(file)
    try:
        if name == LABEL_STUDIO:
            return bool(_module(name).is_task(next(items_of(file)).value))
        return name == CVAT and b"<annotations" in file.read(HEAD)
    except (BadPair, StopIteration):
        return False


def whole_pictures(file: BinaryIO, name: str) -> Iterator[WholePicture]:
    """Yield the pictures of a file of this format. Tasks without annotations have no label and are left out."""
    for start, raw in _images(file) if name == CVAT else _tasks(file):
        try:
            yield WholePicture(start, raw, read_whole(name, raw))
        except BadPair as bad:
            raise BadPair(f"{bad}, at byte {start}") from None


def read_whole(name: str, raw: bytes) -> AnnotatedPicture:
    """Return the objects of a picture in a format."""
    picture: AnnotatedPicture = _module(name).read(raw)
    return picture


def _module(name: str) -> Any:
    """Return the module of a format. The index of a COCO file imports none."""
    return import_module(f"packer.annotations.{name}")


def _tasks(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    label_studio = _module(LABEL_STUDIO)
    for item in items_of(file):
        if not label_studio.is_task(item.value):
            expected = "export tasks as JSON, not as JSON-MIN"
            raise BadPair(f"has an item that is not a task of Label Studio, at byte {item.start}; {expected}")
        if label_studio.picture_of(item.value) is not None:
            yield item.start, item.raw


def _images(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    images = _Images()
    parser = expat.ParserCreate()
    images.listen(parser)
    try:
        while chunk := file.read(CHUNK):
            parser.Parse(chunk, False)
            if file.tell() - images.seen > MOST_BYTES:  # expat holds a tag until it ends
                raise BadPair(f"has a tag of more than {MOST_BYTES >> 20} MiB, after byte {images.seen}")
        parser.Parse(b"", True)
    except (expat.ExpatError, ValueError, LookupError) as error:  # an unknown encoding is one of the latter
        raise BadPair(f"is not valid XML ({error})") from None
    for start, end in zip(images.starts, images.ends, strict=True):
        if end - start > MOST_BYTES:
            raise BadPair(f"has an <image> of more than {MOST_BYTES >> 20} MiB, at byte {start}")
        file.seek(start)
        yield start, file.read(end - start)


class _Images:
    """The places where each <image> begins and ends: it ends where what follows it begins."""

    def __init__(self) -> None:
        self.starts, self.ends = list[int](), list[int]()
        self.seen = 0
        """The place where the last event began. Between events, expat 2.9 does not know its place."""
        self._depth, self._ended = 0, False

    def listen(self, parser: Any) -> None:
        """Take the places from a parser."""

        def note() -> None:
            self.seen = parser.CurrentByteIndex
            if self._ended:
                self.ends.append(self.seen)
                self._ended = False

        def start(tag: str, _: dict[str, str]) -> None:
            note()
            if self._depth == 0 and tag != "annotations":
                raise BadPair(f"is XML of <{tag[:40]}>, and not of CVAT")
            if self._depth == 1 and tag == "track":
                raise BadPair("is CVAT for video; export the task as CVAT for images")
            if self._depth == 1 and tag == "image":
                self.starts.append(self.seen)
            self._depth += 1

        def end(tag: str) -> None:
            note()
            self._depth -= 1
            self._ended = self._depth == 1 and tag == "image"

        def declared(_: str, encoding: str | None, __: int) -> None:
            if (encoding or "utf-8").lower() not in ("utf-8", "ascii", "us-ascii"):
                raise BadPair(f"is XML in {encoding}; expected UTF-8")

        def doctype(*_: object) -> None:
            raise BadPair("is XML with a document type, which could define entities; remove the <!DOCTYPE>")

        parser.StartElementHandler, parser.EndElementHandler = start, end
        parser.DefaultHandler = lambda _: note()
        parser.XmlDeclHandler, parser.StartDoctypeDeclHandler = declared, doctype
