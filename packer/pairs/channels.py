"""Find pictures whose bands are in files of their own: those that differ in `{channel}` alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from packer.errors import Problem, UsageError, did_you_mean, first_of
from packer.pairs.candidates import MOST_NAMED, UNWRITABLE, Candidate, Candidates
from packer.pairs.folder_names import Folders
from packer.pairs.given_layout import given_layout
from packer.pairs.layouts import Layout, SplitKey
from packer.pairs.pairing_rules import PairingRules
from packer.pairs.template import CHANNEL
from readers.contract.field_entry import LONGEST_BAND
from readers.contract.plain_text import odd_character

LONGEST = LONGEST_BAND - len(" band 512")
"""The longest name of a channel: a file may have several bands, whose names begin with it."""


@dataclass
class Channels:
    """The files of each picture by their channels. For the pairing, a picture is the first of its files."""

    layout: Layout
    chosen: tuple[str, ...]
    """The channels that are wanted, in their order; none means all."""
    files: dict[SplitKey, dict[str, str]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    @classmethod
    def of(cls, rules: PairingRules) -> Channels:
        """Return the channels of rules whose template of images has `{channel}`."""
        layout = given_layout(rules)
        assert layout is not None, "the image has a template, and so the label"
        return cls(layout, rules.channels)

    def take(self, folders: Folders) -> Folders:
        """Return the files; of each picture only the first one."""
        rest = {folder: [name for name in names if not self._takes(folder + name)] for folder, names in folders.items()}
        firsts = {self._first(files) for files in self.files.values()}
        for path in sorted(firsts - {""}):
            start = path.rfind("/") + 1
            rest[path[:start]].append(path[start:])
        return rest

    @property
    def names(self) -> tuple[str, ...]:
        """The channels in their order."""
        return self.chosen or self.every_name

    @cached_property
    def every_name(self) -> tuple[str, ...]:
        """The channels of all files, once these are taken: numbers by size, other names by their letters."""
        names = {name for files in self.files.values() for name in files}
        are_numbers = all(name.isascii() and name.isdecimal() for name in names)
        return tuple(sorted(names, key=lambda name: (int(name) if are_numbers else 0, name)))

    def add_to(self, candidates: Candidates) -> None:
        """Add the files of all channels to the pairs; report the pictures that lack one, and leave them out."""
        self._check_chosen()
        pairs = list(map(self._with_files, candidates.pairs))
        candidates.pairs = [pair for pair in pairs if pair.channels and all(pair.channels)]
        candidates.problems += self.problems
        candidates.missing += (problem for pair in pairs for problem in self._lacking(pair))

    def _takes(self, path: str) -> bool:
        """Add a file to its picture; return False if it is not one of a channel, or not to be named."""
        image, label = self.layout.keys(path)
        is_label = label is not None and self.layout.label.literal >= self.layout.image.literal
        if image is None or is_label or UNWRITABLE.search(path):
            return False
        match = self.layout.image.match(path)
        assert match is not None, "it has a key"
        name = match[CHANNEL]
        first = self.files.setdefault(image, {}).setdefault(name, path)
        if self.chosen and name not in self.chosen:
            return True
        if first != path:
            cause = f"has the same key and channel as {first}"
            self.problems.append(Problem(cause, "", (path,), kind="several files of a channel"))
        elif len(name) > LONGEST or odd_character(name):
            cause = f"has the channel {name!r}; it needs a name of at most {LONGEST} plain characters"
            self.problems.append(Problem(cause, "rename the file", (path,), kind="name of a channel"))
        return True

    def _first(self, files: dict[str, str]) -> str:
        """Return the first file of a picture; an empty text if it has none of the channels."""
        return next((files[name] for name in self.names if name in files), "")

    def _with_files(self, pair: Candidate) -> Candidate:
        key = self.layout.image_key(pair.image)
        if key is None or key not in self.files:  # a list names it by its path
            self.problems.append(Problem(f"does not fit {self.layout.image.text}", "", (pair.image,)))
            return pair
        return pair._replace(channels=tuple(self.files[key].get(name, "") for name in self.names))

    def _lacking(self, pair: Candidate) -> Iterator[Problem]:
        for name, path in zip(self.names, pair.channels, strict=False):  # a pair of a list may have none
            if not path:
                hint = "--bands names the channels to pack"
                yield Problem(
                    f"has no channel {name}", hint, (pair.key,), "key", f"no channel {name}", split=pair.split
                )

    def _check_chosen(self) -> None:
        """Refuse a channel that no picture has."""
        for name in self.chosen:
            if self.every_name and name not in self.every_name:
                channels = ", ".join(first_of(self.every_name, MOST_NAMED))
                raise UsageError(
                    f"--bands: no file of {self.layout.image.text} has the channel {name!r}, only {channels}"
                    f"{did_you_mean(name, self.every_name)}"
                )
