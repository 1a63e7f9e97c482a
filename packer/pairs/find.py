"""Pairing: the pairs of a raw folder: by key, never by position; everything that has no partner is named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from packer.errors import InputError, UsageError, first_of
from packer.pairs.candidates import UNWRITABLE, Found, FoundPair
from packer.pairs.files import list_files
from packer.pairs.layouts import Layout, find_layouts
from packer.pairs.list_lines import ListedPairs
from packer.pairs.match import match
from packer.pairs.pair import Pair
from packer.pairs.pairs_csv import PairsTable
from packer.pairs.split_by_hash import Shares
from packer.pairs.split_lists import ListedLine, Lists, given_lists, usual_lists, without_unions
from packer.pairs.suggest import propose
from packer.pairs.template import OTHER_PICTURES, Template, composed
from readers.contract.manifest import ALL, NAME


@dataclass(frozen=True)
class PairingRules:
    """How the user wants pairs to be found, one attribute per option; None where the layout tells."""

    image: str | None = None
    label: str | None = None
    lists: str | None = None
    pairs: Path | None = None
    split: Shares | None = None
    split_by: str | None = None
    missing: str = "error"

    def __post_init__(self) -> None:
        if bool(self.image) != bool(self.label):
            raise UsageError("--image and --label go together: give both templates")
        if self.pairs and (self.image or self.lists):
            raise UsageError("--pairs names the files by itself: leave out --image, --label and --lists")
        if self.split and self.lists:
            raise UsageError("--split draws splits, --lists names them: give one of both")
        if self.split_by and not self.split:
            raise UsageError("--split-by: needs --split, such as --split 80/10/10")


@dataclass(frozen=True)
class Pairing:
    """All pairs of a raw folder, sorted, how they were found, and what was left aside."""

    layout: str
    pairs: tuple[Pair, ...]
    image_template: str = ""
    label_template: str = ""
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def find_pairs(raw: Path, rules: PairingRules | None = None, leave_out: Path | None = None) -> Pairing:
    """The pairs below `raw`, as the rules say, or by the one known layout that fits."""
    rules = rules or PairingRules()
    files = list_files(raw, leave_out)
    layout, found = _search(raw, files, rules)
    if rules.split:
        found.pairs = list(_drawn(found.pairs, rules.split, rules.split_by, layout))
    found.problems += _bad_splits({pair.split for pair in found.pairs})
    name = layout.name if layout else "given by " + ("--pairs" if rules.pairs else "--lists")
    if found.problems or not found.pairs or (found.missing and rules.missing == "error"):
        hint = _unlike(files) if layout and not found.pairs else _skippable(found, rules)
        raise InputError(f"{raw}: {_counted(found)} in the layout {name}{hint}", [*found.problems, *found.missing])
    return Pairing(
        name,
        tuple(sorted(Pair(pair.split or ALL, pair.key, pair.image, pair.label) for pair in found.pairs)),
        layout.image.text if layout else "",
        layout.label.text if layout else "",
        tuple(found.missing),
        tuple(found.notes),
    )


def _search(raw: Path, files: list[str], rules: PairingRules) -> tuple[Layout | None, Found]:
    """By a table, by lists, by a layout, or by a layout with lists."""
    if rules.pairs:
        return None, PairsTable(rules.pairs, raw, files).find()
    told = Found()
    lists = given_lists(raw, rules.lists) if rules.lists else None
    lines = _lines(raw, lists, told) if lists else []
    if lines and all(line.two_paths for line in lines):
        return None, ListedPairs(files, None).find(lines).with_told(told)
    layout = _layout(raw, files, rules)
    if lists and layout.has_splits:
        raise InputError(
            f"{raw}: the layout {layout.name} already has splits, so --lists cannot name others; "
            "leave --lists out, or give --image and --label without {split}"
        )
    beside = [] if lists or layout.has_splits else usual_lists(files)
    if layout.exclusive and beside:
        lists = _only(raw, beside)
        lines = _lines(raw, lists, told)
    matches = match(files, layout)
    found = ListedPairs(files, matches).find(lines) if lists else matches.found()
    if beside and not lists:
        told.notes.append(f"the lists {_shown(beside)} are not used; --lists '{beside[0].text}' would")
    return layout, found.with_told(told)


def _lines(raw: Path, lists: Lists, told: Found) -> list[ListedLine]:
    """The lines of all lists but those that say nothing new."""
    lines = lists.read(raw, told.problems)
    kept = without_unions(lines)
    for split in sorted({line.split for line in lines} - {line.split for line in kept} - {"trainval"}):
        told.notes.append(f"the list {split} names what other lists name, and is left out")
    return kept


def _layout(raw: Path, files: list[str], rules: PairingRules) -> Layout:
    """The layout that the user named, or the only known one that fits."""
    if rules.image and rules.label:
        return Layout("given by --image and --label", Template(rules.image), Template(rules.label), exclusive=False)
    layouts = find_layouts(files)
    if len(layouts) == 1:
        return layouts[0]
    choices = [f"{one.name}: --image '{one.image.text}' --label '{one.label.text}'" for one in layouts]
    if choices:
        raise InputError(f"{raw}: fits several layouts; choose one with", choices)
    example = "--image 'photos/{split}/{key}.jpg' --label 'truth/{split}/{key}_mask.png'"
    raise InputError(
        f"{raw}: fits no known layout (images/ + labels/, train/ + train_labels/, VOC, …); say where the pairs are, "
        f"such as {example}",
        [*_proposals(files), *_list_proposals(files), *_unpackable(files), "Found there:", *_contents(files)],
    )


def _only(raw: Path, lists: list[Lists]) -> Lists:
    if len(lists) > 1:
        raise InputError(
            f"{raw}: has split lists in several places; choose one with", [f"--lists '{one.text}'" for one in lists]
        )
    return lists[0]


def _shown(lists: list[Lists]) -> str:
    return ", ".join(one.text for one in lists)


def _proposals(files: list[str]) -> list[str]:
    """What would pair some of the files, to be pasted."""
    return [
        f"perhaps --image '{one.image}' --label '{one.label}'  ({one.pairs} pairs, {one.unmatched} without partner)"
        for one in propose(files)[:2]
    ]


def _list_proposals(files: list[str]) -> list[str]:
    return [f"perhaps --lists '{one.text}', if its lines name images and labels" for one in usual_lists(files)]


def _unpackable(files: list[str]) -> Iterator[str]:
    """Pictures that are not looked at, and that may be the ones meant."""
    suffixes = Counter(path[path.rfind(".") :].lower() for path in files if path.lower().endswith(OTHER_PICTURES))
    for suffix, count in sorted(suffixes.items()):
        yield f"{count} files are {suffix}, which cannot be packed; convert them to PNG"


def _contents(files: Iterable[str]) -> list[str]:
    """Each folder with the number of its files and an example."""
    folders: dict[str, list[str]] = {}
    for path in files:
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder or ".", []).append(name)
    lines = [f"{folder}/  {len(names)} files, such as {names[0]}" for folder, names in sorted(folders.items())]
    return first_of([UNWRITABLE.sub("?", line) for line in lines], 20, "folders") or ["nothing"]


def _drawn(
    pairs: Iterable[FoundPair], shares: Shares, split_by: str | None, layout: Layout | None
) -> Iterator[FoundPair]:
    """The pairs in the splits that their keys, or the groups they belong to, are drawn into."""
    for pair in pairs:
        if pair.split not in ("", ALL):
            raise InputError(
                f"--split: there are splits already, such as {pair.split!r} of {pair.image}; leave --split out, "
                "or give --image and --label without {split}, which passes over split lists as well"
            )
        group = pair.key
        if split_by:
            captures = dict(pair.captures) or (layout.captures(pair.image, pair.label) if layout else {})
            if split_by not in captures:
                known = ", ".join(captures) or "none"
                raise UsageError(f"--split-by {split_by}: nothing is captured by this name, only {known}")
            group = captures[split_by]
        yield pair._replace(split=shares.split_of(composed(group)))


def _bad_splits(splits: set[str]) -> Iterator[str]:
    """Names that cannot be part of a file's name, or that mean something else."""
    for split in sorted(splits - {""}):
        if not NAME.fullmatch(split):
            yield f"the split {split!r} needs a name of letters, digits and ._- only"
    if ALL in splits and len(splits) > 1:
        yield f"the split {ALL!r} stands for every row, so it cannot be beside others; rename it"
    elif "" in splits and len(splits) > 1:
        yield "some pairs have no split, though others do"


def _counted(found: Found) -> str:
    count = len(found.problems) + len(found.missing)
    return f"{count} problems" if count else "there is no pair"


def _skippable(found: Found, rules: PairingRules) -> str:
    if found.missing and found.pairs and rules.missing == "error":
        return "; --missing skip leaves out what has no partner"
    return "" if found.pairs else "; nothing that is named there is a pair of files"


def _unlike(files: list[str]) -> str:
    """What might help where images and labels have no key in common."""
    hints = [
        "no image and label have a key in common: --image and --label say how their names differ",
        *_proposals(files)[:1],
    ]
    return "; " + ", ".join(hints)
