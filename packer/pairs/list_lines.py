"""What the lines of split lists mean among the files that are there: two paths, or a name that a layout pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from packer.pairs.candidates import Found, FoundPair
from packer.pairs.layouts import Place
from packer.pairs.match import Matches
from packer.pairs.paths import WrittenPaths, is_picture, stem
from packer.pairs.split_lists import ListedLine
from packer.pairs.template import composed


class ListedPairs:
    """Finds the pair that each line names; what it cannot find is gathered."""

    def __init__(self, files: Iterable[str], matches: Matches | None) -> None:
        self.found = Found()
        self._matches = matches
        self._paths = WrittenPaths({path: path for path in files if is_picture(path)})
        images = matches.images.values() if matches else ()
        self._stems = WrittenPaths({stem(path): path for paths in images for path in paths})

    def find(self, lines: Iterable[ListedLine]) -> Found:
        self.found.add_named(self._pairs(lines))
        if self._matches:
            self.found.problems += self._matches.all_problems()
            named = {pair.image for pair in self.found.pairs}
            unlisted = sum(path not in named for paths in self._matches.images.values() for path in paths)
            if unlisted:
                self.found.notes.append(f"{unlisted} images are in no list and are left out")
        return self.found

    def _pairs(self, lines: Iterable[ListedLine]) -> Iterator[FoundPair]:
        for line in lines:
            pair = self._two_paths(line, *line.two_paths) if line.two_paths else self._one_name(line)
            if pair:
                yield pair

    def _two_paths(self, line: ListedLine, image_text: str, label_text: str) -> FoundPair | None:
        image, label = self._file(line, image_text), self._file(line, label_text)
        if not image or not label:
            return None
        place = self._matches.layout.image_place(image) if self._matches else None
        key = place[1] if place else stem(image)
        return FoundPair(line.split, key, image, label, line.place)

    def _file(self, line: ListedLine, text: str) -> str | None:
        """The one file that a path means."""
        found = self._paths.find(text)
        if not found:
            self.found.missing.append(f"{line.place}: there is no file {text}")
        if len(found) > 1:
            self.found.problems.append(f"{line.place}: {text} may be any of {', '.join(found)}")
        return found[0] if len(found) == 1 else None

    def _one_name(self, line: ListedLine) -> FoundPair | None:
        assert self._matches, "lines that name one thing are read with a layout"
        places = next((places for name in line.names if (places := self._places(name))), {("", line.names[-1])})
        if len(places) > 1:
            keys = ", ".join(sorted(key for _, key in places))
            self.found.problems.append(f"{line.place}: {line.text} may be any of {keys}")
            return None
        (place,) = places
        if place in self._matches.images and place in self._matches.labels:
            return self._matches.pair(place, line.place, line.split)
        lacks = "no label" if place in self._matches.images else "no image" if place in self._matches.labels else None
        self.found.missing.append(f"{line.place}: {place[1]} has {lacks or 'neither image nor label'}")
        return None

    def _places(self, name: str) -> set[Place]:
        """The places that a name may mean: a key, or an image's or a label's path, with or without suffix."""
        assert self._matches
        images, labels, layout = self._matches.images, self._matches.labels, self._matches.layout
        key = ("", composed(name))
        if key in images or key in labels:
            return {key}
        paths = self._paths.find(name) if is_picture(name) else self._stems.find(name)
        by_image = {place for path in paths if (place := layout.image_place(path)) and path in images.get(place, ())}
        by_label = {place for path in paths if (place := layout.label_place(path)) and path in labels.get(place, ())}
        return by_image | by_label
