"""Find the pairs that the lines of split lists name: by two paths, or by one name that a layout pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from packer.errors import counted, first_of
from packer.pairs.candidates import MOST_NAMED, Candidate, Candidates, of_line
from packer.pairs.layouts import SplitKey
from packer.pairs.match import Matches
from packer.pairs.paths import PathIndex, is_picture, stem
from packer.pairs.split_lists import ListLine
from packer.pairs.template import composed


class ListedPairs:
    """Finds the pair of each line, and collects the lines without a pair."""

    def __init__(self, files: Iterable[str], matches: Matches | None, keep: bool = False) -> None:
        """With `keep`, a name that has an image and no label is a pair, too."""
        self.candidates = Candidates()
        self._matches, self._keep = matches, keep
        self._paths = PathIndex({path: path for path in files if is_picture(path)})
        images = matches.image_paths() if matches else ()
        self._stems = PathIndex({stem(path): path for path in images})

    def find(self, lines: Iterable[ListLine]) -> Candidates:
        self.candidates.add_listed(self._pairs(lines))
        if self._matches:
            self.candidates.problems += self._matches.all_problems()
            named = {pair.image for pair in self.candidates.pairs}
            unlisted = sum(path not in named for path in self._matches.image_paths())
            if unlisted:
                self.candidates.notes.append(f"left out, because in no list: {counted(unlisted, 'image')}")
        return self.candidates

    def _pairs(self, lines: Iterable[ListLine]) -> Iterator[Candidate]:
        for line in lines:
            pair = self._two_paths(line, *line.two_paths) if line.two_paths else self._one_name(line)
            if pair:
                yield pair

    def _two_paths(self, line: ListLine, image_text: str, label_text: str) -> Candidate | None:
        image, label = self._file(line, image_text), self._file(line, label_text)
        if not image or not label:
            return None
        split_key = self._matches.layout.image_key(image) if self._matches else None
        key = split_key[1] if split_key else stem(image)
        return Candidate(line.split, key, image, label, line.where)

    def _file(self, line: ListLine, text: str) -> str | None:
        """Return the one file that a path means."""
        paths = self._paths.find(text)
        if not paths:
            self.candidates.missing.append(of_line(line.where, f"there is no file {text}", "no file"))
        if len(paths) > 1:
            cause = f"{text} may be any of {', '.join(first_of(paths, MOST_NAMED))}"
            self.candidates.problems.append(of_line(line.where, cause, "any of"))
        return paths[0] if len(paths) == 1 else None

    def _one_name(self, line: ListLine) -> Candidate | None:
        assert self._matches, "lines with one name need a layout"
        matching = next((matching for name in line.names if (matching := self._keys(name))), {("", line.name)})
        if len(matching) > 1:
            keys = ", ".join(first_of(sorted(key for _, key in matching), MOST_NAMED))
            self.candidates.problems.append(of_line(line.where, f"{line.text} may be any of {keys}", "any of"))
            return None
        (key,) = matching
        paired = key in self._matches.images and key in self._matches.labels
        if paired or (self._keep and self._matches.lacks_label(key)):
            return self._matches.pair(key, line.where, line.split)
        lacks = "neither image nor label"
        if key in self._matches.images:
            lacks = "no label"
        elif key in self._matches.labels:
            lacks = "no image"
        self.candidates.missing.append(of_line(line.where, f"{key[1]} has {lacks}", lacks))
        return None

    def _keys(self, name: str) -> set[SplitKey]:
        """Return the keys that a name may mean: the key itself, or an image or label path with or without suffix."""
        assert self._matches
        images, labels, layout = self._matches.images, self._matches.labels, self._matches.layout
        whole = ("", composed(name))
        if whole in images or whole in labels:
            return {whole}
        paths = self._paths.find(name) if is_picture(name) else self._stems.find(name)
        matches = self._matches
        by_image = {key for path in paths if (key := layout.image_key(path)) and path in matches.of("image", key)}
        by_label = {key for path in paths if (key := layout.label_key(path)) and path in matches.of("label", key)}
        return by_image | by_label
