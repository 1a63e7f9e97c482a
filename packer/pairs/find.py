"""Find the pairs of a raw folder. Images and labels are matched by key, never by position."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packer.errors import InputError, Problem, TargetError, UsageError, first_of
from packer.pairs.candidates import MOST_NAMED, Candidate, Candidates
from packer.pairs.files import RawFiles, find_files
from packer.pairs.hints import no_common_key_hint, unknown_layout_hints
from packer.pairs.layouts import Layout, find_layouts
from packer.pairs.list_lines import ListedPairs
from packer.pairs.match import match_files
from packer.pairs.name_suffixes import with_suffixes
from packer.pairs.pair import Pair
from packer.pairs.pairs_csv import PairsCsv
from packer.pairs.split_by_hash import Shares
from packer.pairs.split_exact import CountPixels, draw_exact
from packer.pairs.split_lists import ListLine, SplitLists, given_lists, usual_lists, without_unions
from packer.pairs.template import Template, composed
from readers.contract.manifest import ALL, NAME

ERROR, KEEP = "error", "keep"
"""Stop at files without a partner, or pack images without a label; "skip" leaves them out."""
FEW_PAIRS, FEW_PERCENT = 5, 1
"""A drawn split with fewer pairs, or with a smaller part of all pairs, is reported."""
TEMPLATES_EXAMPLE = "--image 'photos/{split}/{key}.jpg' --label 'truth/{split}/{key}_mask.png'"


@dataclass(frozen=True)
class PairingRules:
    """The options that decide how pairs are found. Without any, the folder must have a known layout."""

    image: str | None = None
    label: str | None = None
    lists: str | None = None
    pairs: Path | None = None
    split: Shares | None = None
    split_by: str | None = None
    split_exact: bool = False
    missing: str = ERROR

    @property
    def keeps(self) -> bool:
        """True if images without a label are rows."""
        return self.missing == KEEP

    def __post_init__(self) -> None:
        if bool(self.image) != bool(self.label):
            raise UsageError("--image and --label go together: give both templates")
        if self.pairs and (self.image or self.lists):
            raise UsageError("--pairs already names the files: leave out --image, --label and --lists")
        if self.split and self.lists:
            raise UsageError("--split and --lists both set the splits: give only one of them")
        if self.split_by and not self.split:
            raise UsageError("--split-by: needs --split, such as --split 80/10/10")
        if self.split_exact and not self.split:
            raise UsageError("--split-exact: needs --split, such as --split 80/10/10")


@dataclass(frozen=True)
class Pairing:
    """All pairs of a raw folder, sorted, the layout or option that found them, and the files without a partner."""

    layout: str
    pairs: tuple[Pair, ...]
    image_template: str = ""
    label_template: str = ""
    missing: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


def find_pairs(
    raw: Path,
    rules: PairingRules | None = None,
    leave_out: Path | None = None,
    count_pixels: CountPixels = lambda labels: [{}] * len(labels),
) -> Pairing:
    """Find the pairs below `raw` by the rules, or by the one known layout that fits. Skip the folder `leave_out`.

    `count_pixels` is called if the splits are to have every class in its share.
    """
    pairing, refusal = search_pairs(raw, rules or PairingRules(), leave_out, count_pixels)
    if refusal is not None:
        raise refusal
    return pairing


def search_pairs(
    raw: Path, rules: PairingRules, leave_out: Path | None, count_pixels: CountPixels, only: Sequence[str] = ()
) -> tuple[Pairing, InputError | None]:
    """Find the pairs. If some are found in spite of problems, also return the error that `find_pairs` raises.

    Problems that are certainly in other splits than `only` do not count.
    """
    files = find_files(raw, leave_out)
    layout, found = _search(raw, files, rules)
    if only:
        found.problems, found.missing = (
            [problem for problem in problems if not problem.split or problem.split in only]
            for problems in (found.problems, found.missing)
        )
    if layout and leave_out:
        _check_target(raw, leave_out, layout)
    if files.packs:
        found.notes.append(f"passed over packed data sets: {', '.join(first_of(files.packs, MOST_NAMED))}")
    if rules.split:
        groups = [_group(pair, rules.split_by, layout) for pair in found.pairs]
        exact = {}
        if rules.split_exact:
            exact = draw_exact(rules.split, groups, count_pixels([pair.label for pair in found.pairs]))
        drawn = [exact.get(group) or rules.split.split_of(group) for group in groups]
        found.pairs = [pair._replace(split=split) for pair, split in zip(found.pairs, drawn, strict=True)]
        found.notes += _small_splits(rules, Counter(drawn))
    found.problems += map(Problem, _bad_splits({pair.split for pair in found.pairs}))
    name = layout.name if layout else "given by " + ("--pairs" if rules.pairs else "--lists")
    refusal = None
    if found.problems or not found.pairs or (found.missing and rules.missing == ERROR):
        count = len(found.problems) + len(found.missing)
        summary = f"{count} problems" if count else "there is no pair"
        hint = _hint(files, found, layout, rules)
        refusal = InputError(f"{raw}: {summary} in the layout {name}{hint}", [*found.problems, *found.missing])
        if not found.pairs:
            raise refusal
    pairing = Pairing(
        name,
        tuple(sorted(Pair(split or ALL, key, image, label) for split, key, image, label, _, _ in found.pairs)),
        layout.image.text if layout else "",
        layout.label.text if layout else "",
        tuple(found.missing),
        tuple(found.notes),
    )
    return pairing, refusal


def _check_target(raw: Path, out: Path, layout: Layout) -> None:
    """Refuse a target that lies where the layout looks for images or labels."""
    inside = os.path.relpath(os.path.realpath(out), os.path.realpath(raw))
    if inside.split("/")[0] == "..":
        return
    for template in (layout.image, layout.label):
        if inside == "." or template.fits_below(inside):
            raise TargetError(
                f"{out}: lies where {template.text} looks for pictures in {raw}; name a folder outside of {raw}"
            )


def _search(raw: Path, files: RawFiles, rules: PairingRules) -> tuple[Layout | None, Candidates]:
    """Search by a table, by lists of two paths a line, by a layout, or by a layout with lists."""
    if rules.pairs:
        return None, PairsCsv(rules.pairs, raw, files.paths, rules.keeps).find()
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
    found = ListedPairs(files.paths, matches, rules.keeps).find(lines) if lists else matches.candidates(rules.keeps)
    if unused:
        names = ", ".join(lists.text for lists in unused)
        messages.notes.append(f"the lists {names} are not used; add --lists '{unused[0].text}' to use them")
    return layout, found.with_messages(messages)


def _lines(raw: Path, lists: SplitLists, messages: Candidates) -> list[ListLine]:
    """Read the lines of all lists, without the lists that only repeat others."""
    lines = lists.read(raw, messages.problems)
    kept = without_unions(lines)
    for split in sorted({line.split for line in lines} - {line.split for line in kept} - {"trainval"}):
        messages.notes.append(f"the list {split} only repeats other lists and is left out")
    return kept


def _layout(raw: Path, files: RawFiles, rules: PairingRules) -> Layout:
    """Return the layout that the user described, or the only known one that fits."""
    if rules.image and rules.label:
        return Layout("given by --image and --label", Template(rules.image), Template(rules.label), exclusive=False)
    layouts = [with_suffixes(layout, files.folders) for layout in find_layouts(files.folders)]
    if len(layouts) == 1:
        return layouts[0]
    if layouts:
        raise InputError(
            f"{raw}: fits several layouts; choose one with",
            [f"{layout.name}: --image '{layout.image.text}' --label '{layout.label.text}'" for layout in layouts],
        )
    raise InputError(
        f"{raw}: fits no known layout (images/ + labels/, train/ + train_labels/, VOC, …); describe it with templates, "
        f"such as {TEMPLATES_EXAMPLE}",
        unknown_layout_hints(files.paths),
    )


def _only(raw: Path, lists: list[SplitLists]) -> SplitLists:
    if len(lists) > 1:
        raise InputError(
            f"{raw}: has split lists in several folders; choose one with",
            [f"--lists '{choice.text}'" for choice in lists],
        )
    return lists[0]


def _group(pair: Candidate, split_by: str | None, layout: Layout | None) -> str:
    """Return what decides the split of a pair: its key, or the capture or column `split_by`."""
    if pair.split not in ("", ALL):
        raise InputError(
            f"--split: there are splits already, such as {pair.split!r} of {pair.image}; leave --split out, "
            "or give --image and --label without {split} to ignore these splits and any split lists"
        )
    group = pair.key
    if split_by:
        captures = dict(pair.captures) or (layout.captures(pair.image, pair.label) if layout else {})
        if split_by not in captures:
            known = ", ".join(captures) or "none"
            raise UsageError(f"--split-by {split_by}: no capture or column has this name; there are only {known}")
        group = captures[split_by]
    return composed(group)


def _small_splits(rules: PairingRules, counts: Mapping[str, int]) -> Iterator[str]:
    """Warn about drawn splits that are too small to measure anything on."""
    total = sum(counts.values())
    advice = "" if rules.split_exact else "; --split-exact draws splits of exact sizes"
    for name, share in rules.split.parts if rules.split else ():
        if counts.get(name, 0) < max(FEW_PAIRS, FEW_PERCENT * total / 100):
            drawn = f"the split {name} gets {counts.get(name, 0)} of {total} pairs"
            yield f"{drawn}, for a share of {float(100 * share):g} %{advice}"


def _bad_splits(splits: set[str]) -> Iterator[str]:
    """Report splits whose names cannot be part of a file name or have another meaning."""
    for split in sorted(splits - {""}):
        if not NAME.fullmatch(split):
            yield f"the split {split!r} needs a name of letters, digits and ._- only"
    if ALL in splits and len(splits) > 1:
        yield f"the split {ALL!r} means every row, so there cannot be others; rename it"
    elif "" in splits and len(splits) > 1:
        yield "some pairs have no split, though others do"


def _hint(files: RawFiles, found: Candidates, layout: Layout | None, rules: PairingRules) -> str:
    if not found.pairs:
        return f"; {no_common_key_hint(files.paths)}" if layout else "; no line names an image and its label"
    if not found.missing or rules.missing != ERROR:
        return ""
    return "; --missing skip leaves out files without a partner; --missing keep packs images without labels"
