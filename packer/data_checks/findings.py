"""`Finding`: a likely mistake in the data, of one of a few kinds. Light: numpy is not needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from packer.errors import FindingsError, first_of

LEAKAGE, NEAR_LEAKAGE, DUPLICATES = "leakage", "near-leakage", "duplicates"
ONE_COLOUR, EXTREME_SHAPE_KIND, IGNORED_PIXELS = "one-colour", "extreme-shape", "ignored-pixels"
NO_DATA = "no-data"
ABSENT_CLASS, ABSENT_IN_SPLIT, VOID_CLASS = "absent-class", "absent-in-split", "void-class"
KINDS = {
    LEAKAGE: "the same image in more than one split",
    NEAR_LEAKAGE: "nearly the same image in two splits",
    DUPLICATES: "the same image more than once in a split",
    NO_DATA: "values that files name for no data, and that are packed like others",
    ONE_COLOUR: "images of one colour",
    EXTREME_SHAPE_KIND: "extreme shapes",
    ABSENT_CLASS: "classes that never occur",
    ABSENT_IN_SPLIT: "classes that a split lacks",
    VOID_CLASS: "stored as classes of their own, which --ignore NAME would leave out",
    IGNORED_PIXELS: "many label pixels are ignored",
}
"""The kinds of findings, the worst first, and what they are in words."""
MOST_FAILING = 20


@dataclass(frozen=True)
class Finding:
    """A likely mistake. `pairs` are names such as `train/street_01`."""

    kind: str
    name: str
    """The name for the option --accept: pairs joined by =, a class, or split/class."""
    pairs: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()

    @property
    def accept(self) -> str:
        """The text that accepts this finding and no other."""
        return f"{self.kind}:{self.name}" if self.name else self.kind

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "pairs": list(self.pairs),
            "splits": list(self.splits),
            "classes": list(self.classes),
            "accept": self.accept,
        }

    def text(self, most: int) -> str:
        """Return a short text, with only the first names of a long group."""
        if self.kind == ABSENT_IN_SPLIT:
            return f"{self.classes[0]} in {self.splits[0]}"
        separator = " ~ " if self.kind == NEAR_LEAKAGE else " = "
        return separator.join(first_of(self.pairs, most)) or self.name


@dataclass(frozen=True)
class Findings:
    """All likely mistakes of a data set, and what the user has accepted: kinds, or single findings as KIND:NAME."""

    items: tuple[Finding, ...]
    ignored_share: float = 0.0
    accepted: frozenset[str] = frozenset()

    def is_accepted(self, finding: Finding) -> bool:
        return not self.accepted.isdisjoint((finding.kind, finding.accept))

    def without(self, accepted: Iterable[str]) -> Findings:
        """Return the findings without these, which are not listed because options decide what happens with them."""
        left_out = set(accepted)
        return replace(self, items=tuple(finding for finding in self.items if finding.accept not in left_out))

    def of(self, kind: str) -> list[Finding]:
        """Return the findings of a kind that are not accepted."""
        return [finding for finding in self.items if finding.kind == kind and not self.is_accepted(finding)]

    @property
    def open(self) -> list[Finding]:
        """The findings that are not accepted, the worst first."""
        return [finding for kind in KINDS for finding in self.of(kind)]

    def to_json(self) -> list[dict[str, Any]]:
        return [{**finding.to_json(), "accepted": self.is_accepted(finding)} for finding in self.items]

    def lines(self, most: int = 5) -> Iterator[str]:
        """Yield a line for each kind of mistake that was found and not accepted, the worst first."""
        for kind, what in KINDS.items():
            findings = self.of(kind)
            if kind == IGNORED_PIXELS and findings:
                yield f"{100 * self.ignored_share:.1f} % of the label pixels are ignored"
            elif findings:
                texts = first_of(findings, most, show=lambda item: item.text(most))
                yield f"{what} ({len(findings)}): {', '.join(texts)}"

    def check(self, kinds: Sequence[str]) -> None:
        """Raise FindingsError if there is a finding of these kinds that is not accepted."""
        failing = [finding for kind in kinds for finding in self.of(kind)]
        if failing:
            raise FindingsError(
                f"{len(failing)} findings of --fail-on {','.join(kinds)} (nothing was published); fix the data, or "
                "accept them with --accept, or in the configuration: accept = [...]",
                first_of(failing, MOST_FAILING, show=lambda finding: finding.accept),
                [finding.to_json() for finding in failing],
            )
