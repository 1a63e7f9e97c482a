"""Find the pairs of a raw folder. Images and labels are matched by key, never by position."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packer.errors import InputError, Problem, TargetError, counted
from packer.pairs.candidates import Candidates
from packer.pairs.draw_splits import SplitDrawer, draw_splits
from packer.pairs.files import RawFiles, find_files
from packer.pairs.further import FoundFiles, lacking, take_further, with_further
from packer.pairs.layouts import Layout
from packer.pairs.pair import Pair
from packer.pairs.pairing_rules import ERROR, KEEP, PairingRules
from packer.pairs.search_files import search_files
from packer.pairs.split_exact import NOT_COUNTED, ClassPixels
from readers.contract.manifest import ALL, NAME


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
    files: RawFiles | None = None,
) -> Pairing:
    """Find the pairs below `raw` by the rules, or by the one known layout that fits. Skip the folder `leave_out`.

    `files` are those below it, if known.
    """
    pairing, refusal = search_pairs(raw, rules or PairingRules(), leave_out, files=files)
    if refusal is not None:
        raise refusal
    return pairing


def counting(problems: Sequence[Problem], only: Sequence[str]) -> list[Problem]:
    """Return the problems that count if a build takes some splits only: those that may be in one of them."""
    return [problem for problem in problems if not (only and problem.split) or problem.split in only]


def search_pairs(
    raw: Path,
    rules: PairingRules,
    leave_out: Path | None,
    pixels: Mapping[str, ClassPixels] = NOT_COUNTED,
    only: Sequence[str] = (),
    files: RawFiles | None = None,
) -> tuple[Pairing, InputError | None]:
    """Find the pairs, in `files` if these are listed. If some are found in spite of problems, also return the error
    that `find_pairs` raises.

    `pixels` are the pixels of each label by class, with which --split-exact draws splits that have every class in its
    share. Problems that are certainly in other splits than `only` do not count.
    """
    files = find_files(raw, leave_out) if files is None else files
    files.folders, further = take_further(files.folders, rules.further, list(filter(None, (rules.image, rules.label))))
    channels = None
    if rules.has_channels:
        from packer.pairs.channels import Channels  # most pictures are one file

        channels = Channels.of(rules)
        files.folders = channels.take(files.folders)
    layout, candidates = search_files(raw, files, rules)
    if channels is not None:
        channels.add_to(candidates)
    has_pairs = bool(candidates.pairs)
    _add_further(candidates, further, rules)
    candidates.problems, candidates.missing = (
        counting(problems, only) for problems in (candidates.problems, candidates.missing)
    )
    if layout and leave_out:
        check_target(raw, leave_out, layout)
    candidates.notes += files.notes
    if rules.split:
        drawer = SplitDrawer(rules.split, rules.split_by, layout)
        draw_splits(candidates, drawer, pixels if rules.split_exact else None)
    candidates.problems += map(Problem, bad_splits({pair.split for pair in candidates.pairs}))
    name = layout.name if layout else "given by " + ("--pairs" if rules.pairs else "--lists")
    refusal = None
    if candidates.problems or not candidates.pairs or (candidates.missing and rules.missing == ERROR):
        hint = _hint(files, candidates, layout, rules, has_pairs)
        refusal = refusal_of(raw, name, [*candidates.problems, *candidates.missing], hint)
        if not candidates.pairs:
            raise refusal
    pairing = Pairing(
        name,
        tuple(sorted(Pair(pair.split or ALL, *pair[1:4], pair.further, pair.channels) for pair in candidates.pairs)),
        layout.image.text if layout else "",
        layout.label.text if layout and rules.has_label else "",
        tuple(candidates.missing),
        tuple(candidates.notes),
    )
    return pairing, refusal


def _add_further(candidates: Candidates, further: Sequence[FoundFiles], rules: PairingRules) -> None:
    """Add the files of further fields to the pairs, or the problems of those that lack one."""
    if not further:
        return
    candidates.pairs = list(with_further(candidates.pairs, further))
    candidates.problems += (problem for files in further for problem in files.problems)
    candidates.missing += (problem for files in further for problem in files.without_image(candidates.pairs))
    candidates.missing += (problem for files in further for problem in files.unread)
    candidates.notes += filter(None, (files.note(candidates.pairs) for files in further))
    without = [
        f"no file fits {files.rule.template} of the field {files.rule.name}" for files in further if not files.paths
    ]
    if rules.missing == KEEP:
        candidates.notes += without
        return
    candidates.problems += map(Problem, without)
    candidates.missing += lacking(candidates.pairs, further)
    candidates.pairs = [pair for pair in candidates.pairs if all(pair.further)]


def check_target(raw: Path, out: Path, layout: Layout) -> None:
    """Refuse a target that lies where the layout looks for images or labels."""
    inside = os.path.relpath(os.path.realpath(out), os.path.realpath(raw))
    if inside.split("/")[0] == "..":
        return
    for template in (layout.image, layout.label):
        if inside == "." or template.fits_below(inside):
            raise TargetError(
                f"{out}: lies where {template.text} looks for pictures in {raw}; name a folder outside of {raw}"
            )


def bad_splits(splits: set[str]) -> Iterator[str]:
    """Report splits whose names cannot be part of a file name or have another meaning."""
    for split in sorted(splits - {""}):
        if not NAME.fullmatch(split):
            yield f"the split {split!r} needs a name of letters, digits and ._- only"
    if ALL in splits and len(splits) > 1:
        yield f"the split {ALL!r} means every row, so there cannot be others; rename it"
    elif "" in splits and len(splits) > 1:
        yield "some pairs have no split, though others do"


def _hint(files: RawFiles, candidates: Candidates, layout: Layout | None, rules: PairingRules, has_pairs: bool) -> str:
    """Return what to do next. `has_pairs`: there were pairs before their further fields were searched."""
    if not candidates.pairs and has_pairs:
        return "; no image and label have all further fields"
    if not candidates.pairs:
        from packer.pairs.hints import no_common_key_hint  # most folders need no words

        return f"; {no_common_key_hint(files.paths)}" if layout else "; no line names an image and its label"
    return missing_hint(rules) if candidates.missing and rules.missing == ERROR else ""


def refusal_of(raw: Path, layout: str, problems: Sequence[Problem], hint: str) -> InputError:
    summary = counted(len(problems), "problem") if problems else "there is no pair"
    return InputError(f"{raw}: {summary} in the layout {layout}{hint}", problems)


def missing_hint(rules: PairingRules) -> str:
    lacking = "rows that lack a field" if rules.further else "images without labels"
    return f"; --missing skip leaves out files without a partner; --missing keep packs {lacking}"
