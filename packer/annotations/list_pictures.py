"""Read a file of the annotations of many pictures once, item by item, into a `PictureIndex`."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, BinaryIO

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from packer.annotations import panoptic
from packer.annotations.annotation import check_categories
from packer.annotations.coco import NAME, ONE_PICTURE, Id, id_of, name_of, size_of, why_lost
from packer.annotations.json_stream import Item, items_of
from packer.annotations.json_values import MOST_BYTES
from packer.annotations.picture_index import (
    DIGEST,
    Longs,
    PictureIndex,
    digest_of_categories,
    digest_of_picture,
    hash_of,
)
from packer.annotations.unread import why_unread
from packer.annotations.whole_pictures import WholePicture, format_of_whole, whole_pictures
from packer.errors import BadPair


class _Places:
    """The places of items in a file, each with the hash of its picture and a digest of its bytes: 36 bytes."""

    def __init__(self) -> None:
        self.pictures, self.starts, self.lengths = array("q"), array("q"), array("i")
        self._digests = bytearray()

    def __len__(self) -> int:
        return len(self.starts)

    def add(self, picture: int, item: Item) -> None:
        self.pictures.append(picture)
        self.starts.append(item.start)
        self.lengths.append(len(item.raw))
        self._digests += blake3(item.raw).digest(DIGEST)

    @property
    def digests(self) -> NDArray[np.uint8]:
        return np.frombuffer(self._digests, np.uint8).reshape(-1, DIGEST)


class _Listed:
    """The items of a file that were found so far."""

    def __init__(self) -> None:
        self.pictures, self.annotations = _Places(), _Places()
        self.names, self.sizes = array("q"), array("i")
        self.longer_names = array("q")
        """The names with the subsets of pictures, if the file has any."""
        self.categories: dict[Id, str] = {}
        self.counts: Counter[Id | None] = Counter()
        self.without_outline: Counter[Id | None] = Counter()
        self.lost = Counter[str]()
        self.pngs: list[str] = []
        """The PNG of each annotation, if the file is a panoptic one."""

    def add(self, item: Item) -> str | None:
        """Note an item. Return the name of a picture."""
        if item.member == "image" and isinstance(item.value, dict):
            raise BadPair(ONE_PICTURE)
        if item.member not in ("images", "annotations", "categories"):
            return None
        try:
            if not isinstance(item.value, dict):
                raise BadPair("is not a table")
            if item.member == "images":
                return self._picture(item)
            if item.member == "annotations":
                self._annotation(item)
            else:
                self._category(item.value)
        except BadPair as bad:
            raise BadPair(f"{bad}, at byte {item.start}") from None
        return None

    def _picture(self, item: Item) -> str:
        name = name_of(item.value)
        self.pictures.add(number_of(id_of(item.value.get("id"))), item)
        self.names.append(hash_of(name))
        self.sizes.extend(size_of(item.value) or (0, 0))
        return name

    def add_whole(self, whole: WholePicture) -> str:
        """Note a picture that lies together with its annotations. Return its name."""
        name = whole.picture.name or ""
        self.pictures.add(len(self.pictures), Item("", None, whole.start, whole.raw))
        self.names.append(hash_of(name))
        self.longer_names.append(hash_of(whole.picture.longer_name or name))
        self.sizes.extend(whole.picture.size or (0, 0))
        self.counts.update(annotation.category for annotation in whole.picture.annotations)
        self.lost.update(whole.picture.lost)
        check_categories({annotation.category for annotation in whole.picture.annotations})
        self.categories.update((annotation.category, annotation.category) for annotation in whole.picture.annotations)
        return name

    def _annotation(self, item: Item) -> None:
        is_panoptic = "segments_info" in item.value
        if len(self.annotations) and is_panoptic != bool(self.pngs):
            raise BadPair("has segments_info, as only some annotations have" if is_panoptic else "has no segments_info")
        if "image_id" not in item.value:
            raise BadPair("has an annotation without an image_id")
        self.annotations.add(number_of(id_of(item.value.get("image_id"))), item)
        if not is_panoptic:
            self.counts[id_of(item.value.get("category_id"))] += 1
            if not item.value.get("segmentation"):
                self.lost[why_lost(item.value)] += 1
                self.without_outline[id_of(item.value.get("category_id"))] += 1
            return
        self.pngs.append(panoptic.png_of(item.value))
        self.counts.update(id_of(segment.get("category_id")) for segment in panoptic.segments_of(item.value))

    def _category(self, value: Mapping[str, Any]) -> None:
        number, name = id_of(value.get("id")), value.get("name")
        if not isinstance(name, str) or not name:
            raise BadPair("has a category without a name")
        check_categories([name])
        if number in self.categories:
            raise BadPair(f"has two categories with the id {number}")
        self.categories[number] = name


def _why_no_pictures(file: BinaryIO) -> str:
    """Return which other tool wrote a file, if that is known."""
    file.seek(0)
    return why_unread(".json", file.read(MOST_BYTES)) or "is not a file of COCO: it lists no images"


def index_of(file: BinaryIO, take: list[str] | None = None) -> PictureIndex:
    """Read a file of many pictures. Raise BadPair if it is not one. The names of its pictures are put into `take`."""
    listed, whole_format = _Listed(), format_of_whole(file)
    for item in whole_pictures(file, whole_format) if whole_format else items_of(file):
        name = listed.add_whole(item) if isinstance(item, WholePicture) else listed.add(item)
        if name is not None and take is not None:
            take.append(name)
    if not len(listed.pictures):
        raise BadPair(f"lists no annotated pictures of {whole_format}" if whole_format else _why_no_pictures(file))
    return _sorted(listed, whole_format or (panoptic.NAME if listed.pngs else NAME))


def _sorted(listed: _Listed, of: str) -> PictureIndex:
    """Bring the annotations of a format to their pictures."""
    pictures, annotations = listed.pictures, listed.annotations
    ids, names = np.array(pictures.pictures, np.int64), _names(listed)
    _refuse_twice(ids, "the same id", pictures.starts)
    _refuse_twice(names, "the same file_name", pictures.starts)
    by_name = np.argsort(names, kind="stable")
    rank = np.empty(len(names), np.int64)
    rank[by_name] = np.arange(len(names))
    by_id = np.argsort(ids, kind="stable")
    referenced = np.array(annotations.pictures, np.int64)
    at = np.minimum(np.searchsorted(ids[by_id], referenced), len(ids) - 1)
    owner = by_id[at]
    is_known = ids[owner] == referenced
    owners = np.concatenate([rank, rank[owner[is_known]]])
    order = np.argsort(owners, kind="stable")  # a picture comes before its annotations, and these in the file's order

    def joined(of_pictures: Any, of_annotations: Any) -> NDArray[Any]:
        return np.concatenate([np.asarray(of_pictures), np.asarray(of_annotations)[is_known]])[order]

    firsts = np.searchsorted(owners[order], np.arange(len(names) + 1))
    digests = joined(pictures.digests, annotations.digests)
    categories = {number: listed.categories[number] for number in sorted(listed.categories, key=_numbers_first)}
    return PictureIndex(
        names[by_name],
        firsts,
        joined(pictures.starts, annotations.starts),
        joined(pictures.lengths, annotations.lengths),
        np.array(listed.sizes, np.int32).reshape(-1, 2)[by_name],
        _digests(digests, firsts, digest_of_categories(of, categories)),
        categories,
        {
            name: sum(listed.counts[n] for n, other in categories.items() if other == name)
            for name in categories.values()
        },
        tuple(_notes(listed, int(np.count_nonzero(~is_known)))),
        sum(listed.counts[number] - listed.without_outline[number] for number in categories),
        listed.lost,
        of,
        pngs=panoptic.of_pictures(compress(listed.pngs, is_known), owners[len(names) :].tolist(), len(names))
        if listed.pngs
        else (),
    )


def _names(listed: _Listed) -> Longs:
    """Return the hash of the name of each picture; with its subset if several have the same name."""
    names = np.array(listed.names, np.int64)
    if not listed.longer_names:
        return names
    _, numbers, counts = np.unique(names, return_inverse=True, return_counts=True)
    return np.where(counts[numbers] > 1, np.array(listed.longer_names, np.int64), names)


def _notes(listed: _Listed, strangers: int) -> Iterator[str]:
    if strangers:
        yield f"{strangers} annotations are of pictures that the file does not list"
    if unknown := sum(count for number, count in listed.counts.items() if number not in listed.categories):
        yield f"{unknown} annotations are of categories that the file does not list"


def _digests(items: NDArray[np.uint8], firsts: Longs, names: bytes) -> NDArray[np.uint8]:
    digests = bytearray()
    for first, last in zip(firsts[:-1].tolist(), firsts[1:].tolist(), strict=True):
        digests += digest_of_picture(items[first:last].tobytes(), names)
    return np.frombuffer(digests, np.uint8).reshape(-1, DIGEST)


def _refuse_twice(numbers: Longs, what: str, starts: Sequence[int]) -> None:
    _, first, counts = np.unique(numbers, return_index=True, return_counts=True)
    if len(first) < len(numbers):
        at = starts[int(first[counts > 1].min())]
        raise BadPair(f"lists {len(numbers) - len(first)} images with {what} as another, such as that at byte {at}")


def _numbers_first(number: Id) -> tuple[bool, int, str]:
    return isinstance(number, str), 0 if isinstance(number, str) else number, str(number)


def number_of(number: Id) -> int:
    """Return an id as 64 bits. The number of a text is negative."""
    return number if isinstance(number, int) and 0 <= number < 1 << 63 else ~(hash_of(str(number)) & ((1 << 63) - 1))
