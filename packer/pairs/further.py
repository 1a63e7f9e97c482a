"""Find the files of further fields, such as depth: the files of a template that have the keys of the pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress

from packer.errors import Problem, UsageError, counted, first_of
from packer.pairs.candidates import MOST_NAMED, NO_TYPE, UNWRITABLE, UNWRITABLE_NAME, Candidate
from packer.pairs.folder_names import Folders
from packer.pairs.template import KEY, OTHER_PICTURES, SPLIT, Template, composed, conversion

CLASS, LABEL = "class", "label"
FileKey = tuple[str, str, str]
"""The split, the key and the class in a path; empty if the template does not have them."""


@dataclass(frozen=True)
class FurtherFiles:
    """A field, the template of its files, and the classes that have a file each, if they have."""

    name: str
    template: str
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the template. Without one, rows are not files."""
        if not self.template:
            return
        captures = Template(self.template).captures
        others = [name for name in captures if name not in (SPLIT, KEY, CLASS)]
        if others:
            raise UsageError(
                f"--field {self.name}: {{{others[0]}}} is not a part of a key; "
                "the files of a field have {key}, and perhaps {split}; write * for other parts"
            )
        if (CLASS in captures) != bool(self.classes):
            reason = "only the kind multilabel has a file for each class" if CLASS in captures else "names no {class}"
            raise UsageError(f"--field {self.name}: {self.template}: {reason}")


@dataclass
class FoundFiles:
    """The files of one field by their keys."""

    rule: FurtherFiles
    paths: dict[FileKey, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    unread: list[Problem] = field(default_factory=list)
    """The pictures that cannot be packed and fit the template."""

    def note(self, pairs: Iterable[Candidate]) -> str | None:
        """Return how many files belong to no pair, and the first of them."""
        rest = [] if self.rule.name == LABEL else self._unused(pairs)
        if not rest:
            return None
        named = ", ".join(first_of(sorted(rest), MOST_NAMED))
        return f"{counted(len(rest), 'file')} of {self.rule.name} without an image: {named}"

    def without_image(self, pairs: Iterable[Candidate]) -> Iterator[Problem]:
        """Yield a problem for each annotated label of a picture that is not there."""
        for path in sorted(self._unused(pairs)) if self.rule.name == LABEL else ():
            yield Problem("has no image", "", (path,), "label")

    def _unused(self, pairs: Iterable[Candidate]) -> list[str]:
        used = {(pair.split if self._has_split else "", pair.key) for pair in pairs}
        return [path for (split, key, _), path in self.paths.items() if (split, key) not in used]

    @cached_property
    def _has_split(self) -> bool:
        return SPLIT in Template(self.rule.template).captures

    def add(self, key: FileKey, path: str) -> None:
        if UNWRITABLE.search(path):
            self.problems.append(Problem(UNWRITABLE_NAME, "rename the file", (repr(path),)))
        elif (first := self.paths.setdefault(key, path)) != path:
            cause = f"has the same key as {first}, and both fit the files of {self.rule.name}"
            self.problems.append(Problem(cause, "", (path,), kind="several files"))
        elif self.rule.classes and key[2] not in self.rule.classes:
            classes = ", ".join(first_of(self.rule.classes, MOST_NAMED))
            self.problems.append(Problem(f"{key[2]!r} is not a class of {self.rule.name}: {classes}", "", (path,)))

    def of(self, split: str, key: str) -> tuple[str, ...]:
        """Return the path of a key, or a path for each class, which may be empty; nothing if it has none."""
        split = split if self._has_split else ""
        if not self.rule.classes:
            path = self.paths.get((split, key, ""))
            return () if path is None else (path,)
        paths = tuple(self.paths.get((split, key, name), "") for name in self.rule.classes)
        return paths if any(paths) else ()


def take_further(
    folders: Folders, further: Sequence[FurtherFiles], kept: Sequence[str] = ()
) -> tuple[Folders, list[FoundFiles]]:
    """Return the files that belong to no further field, and the files of each field.

    A file may belong to several fields: to a label and its instances, for example. It is an image or a label, too, if
    one of their templates, `kept`, gives it the same key. With `{key}.png`, depth/a1.png has the key depth/a1.
    """
    if without := [files.name for files in further if not files.template]:
        raise UsageError(f"--field {without[0]}: needs the template of its files, such as {without[0]}/{{key}}.png")
    found_files = [FoundFiles(files) for files in further]
    templates = [(files, Template(files.rule.template)) for files in found_files]
    others = [Template(text) for text in kept]
    rest: dict[str, Sequence[str]] = {}
    for folder, names in folders.items():
        here = [(files, template) for files, template in templates if _may_hold(template, folder)]
        rest[folder] = names
        if here:
            is_left = [_is_left(folder + name, _keys(folder + name, here), others) for name in names]
            rest[folder] = list(compress(names, is_left))
    return rest, found_files


def _keys(path: str, here: Sequence[tuple[FoundFiles, Template]]) -> set[str]:
    """Return the keys of a file in the fields that it belongs to, and add it to these."""
    keys = set()
    for files, template in here:
        match = template.match(path)
        if match is None and not template.suffix and path.lower().endswith(OTHER_PICTURES):
            if match := template.match(path[: path.rindex(".")] + ".png"):
                files.unread.append(Problem(NO_TYPE, conversion(path), (path,)))
                keys.add(match[KEY])
        elif match is not None:
            captures = match.groupdict()
            keys.add(captures[KEY])
            files.add((captures.get(SPLIT, ""), captures[KEY], captures.get(CLASS, "")), path)
    return keys


def _is_left(path: str, keys: set[str], others: Sequence[Template]) -> bool:
    """Return whether a file, with these keys in further fields, may be an image or a label."""
    return not keys or any((match := template.match(path)) is not None and match[KEY] in keys for template in others)


def _may_hold(template: Template, folder: str) -> bool:
    """Return whether a folder may have files of a template."""
    name = composed(folder)
    return any(name.startswith(start) or start.startswith(name) for start in template.folders)


def with_further(pairs: Iterable[Candidate], further: Sequence[FoundFiles]) -> Iterator[Candidate]:
    """Yield the pairs with the files of the further fields that they have."""
    for pair in pairs:
        yield pair._replace(further=tuple(files.of(pair.split, pair.key) for files in further))


def lacking(pairs: Iterable[Candidate], further: Sequence[FoundFiles]) -> Iterator[Problem]:
    """Yield a problem for each further field that a pair lacks, if others have it."""
    for pair in pairs:
        for files, paths in zip(further, pair.further, strict=True):
            if not paths and files.paths:
                name = files.rule.name
                cause = f"has no {name} with the key {pair.key!r}"
                yield Problem(cause, "", (pair.image,), "image", f"no {name}", split=pair.split)
