"""Ask about what a proposal leaves out: other pairs of the folder, and split lists that come with it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from packer.config.config import Settings
from packer.errors import counted, first_of
from packer.pairs.find import Pairing
from packer.pairs.folder_names import by_folder
from packer.pairs.pairing_rules import PairingRules
from packer.pairs.split_lists import SplitLists, usual_lists
from packer.pairs.suggest import Suggestion, speaks_against_labels, suggest_templates
from packer.pairs.template import PICTURES, composed

MOST_NAMED = 3
TOGETHER = "trainval"
"""The list of VOC that should repeat two others."""


def coverage_questions(
    files: Sequence[str], rules: PairingRules, pairing: Pairing, fields: Collection[str], has_rivals: bool
) -> Iterator[str]:
    """Yield a question if pictures that are in no pair could be pairs, too. Templates of the user are certain.

    If the pairs have rivals, a question already names the files that are in no pair.
    """
    if rules.image or rules.pairs or rules.lists:
        return
    used = {composed(path) for pair in pairing.pairs for path in (pair.image, pair.label)}
    used |= {composed(path) for problem in pairing.missing for path in problem.files} | set(map(composed, fields))
    rest = [path for path in map(composed, files) if path not in used and path.lower().endswith(PICTURES)]
    covered = f"the proposal has {counted(len(pairing.pairs), 'pair')}, and other pictures"
    others = [suggestion for suggestion in suggest_templates(rest) if not speaks_against_labels(suggestion.label)]
    unlisted = sum(suggestion.pairs for suggestion in others if _templates(suggestion) == _templates(pairing))
    if unlisted:
        rest_of_lists = counted(unlisted, "pair")
        yield f"{covered} of the same templates are in no list ({rest_of_lists}); are they left out on purpose?"
    others = [suggestion for suggestion in others if _templates(suggestion) != _templates(pairing)]
    if others:
        texts = [f"image = '{suggestion.image}', label = '{suggestion.label}'" for suggestion in others]
        shown = ", ".join(first_of(texts, MOST_NAMED))
        yield f"{covered} could be pairs, too: {shown}; does one layout fit all, or is each a pack of its own?"
        return
    if unlisted:
        return
    folders = {path.rpartition("/")[0] for pair in pairing.pairs for path in (pair.image, pair.label)}
    near = [path for path in rest if path.rpartition("/")[0] in folders and not speaks_against_labels(path)]
    if near and not has_rivals:
        yield f"{covered} in the same folders are left out: {', '.join(first_of(near, MOST_NAMED))}; is that right?"


def _templates(pairs: Pairing | Suggestion) -> tuple[str, str]:
    if isinstance(pairs, Suggestion):
        return pairs.image, pairs.label
    return pairs.image_template, pairs.label_template


def list_questions(files: Sequence[str], pairing: Pairing, settings: Settings) -> Iterator[str]:
    """Yield a question if the folder has split lists, and the proposal has no splits or draws others."""
    if {"lists", "preset", "pairs"} & settings.keys() or ((pairs := pairing.pairs) and pairs[0].split != "all"):
        return
    for lists in usual_lists(by_folder(files)):
        text = _without_together(lists)
        yield (
            f"use the split lists of the folder, lists = '{text}', or draw other splits, such as split = '80/10/10'? "
            "The proposal does neither"
        )


def _without_together(lists: SplitLists) -> str:
    """Return the lists without the one that should repeat others, if it is there."""
    before, _, after = lists.text.partition("{split:")
    names, _, rest = after.partition("}")
    kept = [name for name in names.split("|") if name != TOGETHER]
    return f"{before}{{split:{'|'.join(kept)}}}{rest}" if kept else lists.text
