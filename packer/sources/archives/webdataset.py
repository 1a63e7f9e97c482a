"""WebDataset: tars in which the members of a sample follow each other, with one key and different suffixes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from typing import ClassVar

from packer.errors import BadPair, Problem, first_of
from packer.pairs.template import OTHER_PICTURES, PICTURES, SLIDES
from packer.recipe.row_ref import RowRef
from packer.recipe.source import Listing, ListingRules
from packer.sources.archives.byte_ranges import ByteRanges
from packer.sources.archives.field_names import MOST_LISTED
from packer.sources.archives.position import Position
from packer.sources.archives.tar import Member, is_tar, members

MOST_SUFFIXES = 1000
"""The suffixes whose members are counted, for a message."""
LOSSY = ("jpeg", "jpg", "jpe", "jfif")
LABELS = ("seg", "segmentation", "label", "labels", "labelmap", "mask", "masks", "cls", "gt", "annotation", "target")
"""Words in a suffix that say that it is the label's, such as seg.png."""
_NAME = re.compile(r"(?:\./)*((?:.*/|)[^./][^./]*)\.([^/]*)", re.DOTALL)
Positions = tuple[Position | None, Position | None]
Sample = dict[str, Member]
"""The members of a sample by their suffixes."""


class WebDatasetSource(ByteRanges):
    """Tars of samples. A key is the path of a member up to the first dot of its name; its suffix is the rest."""

    kind: ClassVar[str] = "webdataset"
    suffix: ClassVar[re.Pattern[str]] = re.compile(r"\.(tar|tgz|tar\.\w+)$")

    @cached_property
    def suffixes(self) -> dict[str, Counter[str]]:
        """The suffixes of the members that were listed of each tar, as far as they tell what it holds."""
        return defaultdict(Counter)

    def list_rows(self, rules: ListingRules) -> Listing:
        return replace(super().list_rows(rules), contents=self._contents)

    def _contents(self) -> str:
        """Return what tars without rows hold, and what was looked for."""
        every = sum((self.suffixes[file] for file in self.files.states), Counter[str]())
        counts = [f"{suffix} ({count})" for suffix, count in every.most_common()]
        listed = ", ".join(first_of(counts, MOST_LISTED))
        holds = f"it holds members with the suffixes {listed}" if counts else "it is empty"
        needed = " and ".join(name for name in self.names[:2] if name is not None)
        return f": {holds}; needed are {needed or 'pictures, such as KEY.jpg and KEY.png, or KEY.jpg and KEY.seg.png'}"

    @staticmethod
    def knows(head: bytes) -> bool:
        return is_tar(head)

    def samples(self, file: str) -> Iterator[RowRef]:
        with self.open(file) as opened:
            named = filter(None, map(_named, members(opened, self.files.states[file][0])))
            for key, group in groupby(named, lambda item: item[0]):
                sample = list(group)  # a damaged tar ends here, outside of `try`
                if len(self.suffixes[file]) < MOST_SUFFIXES:
                    self.suffixes[file].update(suffix for _, suffix, _ in sample)
                try:
                    image, label = self._positions(file, key, [(suffix, member) for _, suffix, member in sample])
                except BadPair as bad:
                    self.refuse(file, Problem(str(bad), "", (f"{file}/{key}",), "sample"))
                else:
                    yield from self.row(file, key, image, label)
                    if not image and not label and self._is_expected(suffix for _, suffix, _ in sample):
                        self.lack(file, key, "has no image and no label")

    def _is_expected(self, suffixes: Iterable[str]) -> bool:
        """Return whether a sample without image and label should have them: others are of numbers or texts."""
        named = self.names.image is not None or self.names.label is not None
        return named or any(_is_picture(suffix, (*PICTURES, *OTHER_PICTURES)) for suffix in suffixes)

    def _positions(self, file: str, key: str, members: Sequence[tuple[str, Member]]) -> Positions:
        sample: Sample = {}
        for suffix, member in members:
            if _is_picture(suffix, SLIDES):
                raise BadPair(f"has the slide {member.name}, which openslide reads from a folder alone; unpack the tar")
            if suffix in sample:
                raise BadPair(f"has two members {member.name}")
            sample[suffix] = member
        image, label = self._chosen(sample)
        return _position(file, sample, image), _position(file, sample, label)

    def _chosen(self, sample: Sample) -> tuple[str | None, str | None]:
        """Return the suffixes of image and label in a sample."""
        pictures = [suffix for suffix in sample if _is_picture(suffix, PICTURES)]
        if self.names.label is not None:
            labels = [suffix for suffix in sample if suffix == self.names.label.lower().lstrip(".")]
        else:
            labels = [suffix for suffix in pictures if not set(LABELS).isdisjoint(re.split("[._-]", suffix))]
        if self.names.image is not None:
            images = [suffix for suffix in sample if suffix == self.names.image.lower().lstrip(".")]
        else:
            images = [suffix for suffix in pictures if suffix not in labels]
            if not labels and self.names.label is None and len(images) == 2:  # a JPEG cannot be a label
                labels = [suffix for suffix in images if suffix not in LOSSY]
                images = [suffix for suffix in images if suffix in LOSSY]
                if self.keeps_unlabelled and images and labels:  # then a sample of one picture could be either
                    raise BadPair(
                        f"may have its label in {labels[0]}; name both: --image {images[0]} --label {labels[0]}"
                    )
        for name, suffixes in (("image", images), ("label", labels)):
            if len(suffixes) > 1:
                listed = ", ".join(first_of(suffixes, MOST_LISTED))
                raise BadPair(f"may have several {name}s, {listed}; name one: --{name} {suffixes[0]}")
        return next(iter(images), None), next(iter(labels), None)


def _is_picture(suffix: str, endings: Sequence[str]) -> bool:
    return f".{suffix.rpartition('.')[2]}" in endings


def _named(member: Member) -> tuple[str, str, Member] | None:
    """Return the key and the suffix of a member; None for one that belongs to no sample, such as .DS_Store."""
    match = _NAME.fullmatch(member.name)
    return (match[1], match[2].lower(), member) if match else None


def _position(file: str, sample: Sample, suffix: str | None) -> Position | None:
    if suffix is None:
        return None
    member = sample[suffix]
    if member.is_link:
        raise BadPair(f"has a link {member.name}; store the file itself")
    return Position(file, member.start, member.size, member.name)
