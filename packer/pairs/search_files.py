"""Search the files of a raw folder for pairs: by a table, by lists, or by a layout that fits them."""

from __future__ import annotations

from pathlib import Path

from packer.errors import InputError
from packer.pairs.candidates import Candidates
from packer.pairs.files import RawFiles
from packer.pairs.given_layout import given_layout
from packer.pairs.layouts import Layout, find_layouts
from packer.pairs.list_lines import ListedPairs
from packer.pairs.match import match_files
from packer.pairs.name_suffixes import with_suffixes
from packer.pairs.pairing_rules import PairingRules
from packer.pairs.pairs_csv import PairsCsv
from packer.pairs.paths import PathIndex
from packer.pairs.split_lists import ListLine, SplitLists, given_lists, usual_lists, without_unions

IMAGES_EXAMPLE = "--field 'image=picture:photos/{key}.jpg'"
TEMPLATES_EXAMPLE = "--image 'photos/{split}/{key}.jpg' --label 'truth/{split}/{key}_mask.png'"


def search_files(raw: Path, files: RawFiles, rules: PairingRules) -> tuple[Layout | None, Candidates]:
    """Search by a table, by lists of two paths a line, by a layout, or by a layout with lists."""
    if rules.pairs:
        return None, PairsCsv(rules.pairs, raw, PathIndex({path: path for path in files.paths}), rules.keeps).find()
    messages = Candidates()
    lists = given_lists(raw, rules.lists) if rules.lists else None
    lines = _lines(raw, lists, messages) if lists else []
    if lines and all(line.two_paths for line in lines):
        return None, ListedPairs(files.paths, None).find(lines).with_messages(messages)
    layout = _layout(raw, files, rules)
    if lists and layout.has_splits:
        raise InputError(
            f"{raw}: the layout {layout.name} already has splits, so --lists cannot name others; "
            "leave --lists out, or give --image and --label without {split}"
        )
    unused = [] if lists or layout.has_splits else usual_lists(files.folders)
    if layout.exclusive and unused:
        lists, unused = _only(raw, unused), []
        lines = _lines(raw, lists, messages)
    matches = match_files(files.folders, layout)
    candidates = (
        ListedPairs(files.paths, matches, rules.keeps).find(lines) if lists else matches.candidates(rules.keeps)
    )
    if unused:
        names = ", ".join(lists.text for lists in unused)
        messages.notes.append(f"the lists {names} are not used; add --lists '{unused[0].text}' to use them")
    return layout, candidates.with_messages(messages)


def _lines(raw: Path, lists: SplitLists, messages: Candidates) -> list[ListLine]:
    """Read the lines of all lists, without the lists that only repeat others."""
    lines = lists.read(raw, messages.problems)
    kept = without_unions(lines)
    for split in sorted({line.split for line in lines} - {line.split for line in kept} - {"trainval"}):
        messages.notes.append(f"the list {split} only repeats other lists and is left out")
    return kept


def _layout(raw: Path, files: RawFiles, rules: PairingRules) -> Layout:
    """Return the layout that the user described, or the only known one that fits."""
    described = given_layout(rules)
    if described is not None:
        return described
    layouts = [with_suffixes(layout, files.folders) for layout in find_layouts(files.folders)]
    if len(layouts) == 1:
        return layouts[0]
    if layouts:
        raise InputError(
            f"{raw}: fits several layouts; choose one with",
            [f"{layout.name}: --image '{layout.image.text}' --label '{layout.label.text}'" for layout in layouts],
        )
    from packer.pairs.hints import unknown_layout_hints  # most folders need no words

    without = f"; if there are no labels, name the images: {IMAGES_EXAMPLE}" if rules.further else ""
    raise InputError(
        f"{raw}: fits no known layout (images/ + labels/, train/ + train_labels/, VOC, …); describe it with templates, "
        f"such as {TEMPLATES_EXAMPLE}{without}",
        unknown_layout_hints(files.paths),
    )


def _only(raw: Path, lists: list[SplitLists]) -> SplitLists:
    if len(lists) > 1:
        raise InputError(
            f"{raw}: has split lists in several folders; choose one with",
            [f"--lists '{choice.text}'" for choice in lists],
        )
    return lists[0]
