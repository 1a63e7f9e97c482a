"""Inspect a sample of the pairs in worker processes, before anything is packed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from packer.pixels.choices import MOST_PIXELS
from packer.pixels.label_rules import AS_THE_TABLE_SAYS
from packer.recipe.read_rules import ReadRules
from packer.recipe.recipe import Recipe
from packer.recipe.row_ref import RowRef
from packer.recipe.source import Source
from packer.shards.inspect import LABEL_NUMBER, InspectRequest, LabelCounts
from packer.workers.pool import Pool
from packer.workers.run import inspect_pairs, open_pool
from readers.contract.classes import ClassTable

SAMPLE_SIZE = 16
"""The rows of a sample."""


@dataclass(frozen=True)
class LabelSampler:
    """Inspects labels of one source. A decoder that crashes or hangs ends a worker and makes its pair bad."""

    source: Source
    pool: Pool
    max_pixels: int = MOST_PIXELS
    label: int = LABEL_NUMBER
    """The number of the label among the fields of a row; 0 if there is none."""

    def inspect(
        self,
        refs: Sequence[RowRef],
        most: int,
        classes: ClassTable | None = None,
        rules: ReadRules | None = None,
        images: bool = False,
        recipe: Recipe | None = None,
    ) -> dict[int, LabelCounts]:
        """Inspect the labels of about `most` rows, with their images if wanted. Keys are indices into `refs`.

        With `rules` a file that a shard would refuse makes its row bad; with a `recipe` also one of a further field.
        """
        indices = spread_indices(len(refs), most)
        label_rules = AS_THE_TABLE_SAYS if rules is None else rules.label
        image_rules = None if rules is None else rules.image
        requests = [
            InspectRequest(
                refs[index] if images else self._only_label(refs[index]),
                classes,
                label_rules,
                self.max_pixels,
                image_rules,
                self.label,
                recipe,
            )
            for index in indices
        ]
        answers = inspect_pairs(requests, self.source, self.pool)
        return dict(zip(indices, answers, strict=True))

    def heads(self, refs: Sequence[RowRef]) -> list[LabelCounts]:
        """Load these rows, and return the headers of their fields, or why a row is bad."""
        requests = [InspectRequest(ref, only_heads=True) for ref in refs]
        return inspect_pairs(requests, self.source, self.pool)

    def _only_label(self, ref: RowRef) -> RowRef:
        parts = (part if number == self.label else "" for number, part in enumerate(ref.parts))
        return ref._replace(parts=tuple(parts))

    def pixels(self, refs: Sequence[RowRef], divisor: int = 1) -> list[Counter[int]]:
        """Count the pixels of every label by value // divisor, or by colour. A label that cannot be read has none."""
        return [
            Counter[int](seen.colours) if seen.colours and not seen.values else _merged(seen.values, divisor)
            for seen in self.inspect(refs, len(refs)).values()
        ]


@contextmanager
def open_sampler(source: Source, workers: int, task_timeout: int) -> Iterator[LabelSampler]:
    """Open worker processes that inspect labels of a source."""
    with open_pool(workers, task_timeout) as pool:
        yield LabelSampler(source, pool)


def _merged(values: dict[int, int], divisor: int) -> Counter[int]:
    """Add up the pixels of values that are the same class."""
    counts: Counter[int] = Counter()
    for value, count in values.items():
        counts[value // divisor] += count
    return counts


def spread_indices(count: int, most: int) -> list[int]:
    """Return about `most` of `count` indices, evenly spread, with the first and the last."""
    if count <= most:
        return list(range(count))
    if most == 1:
        return [0]
    return sorted({round(number * (count - 1) / (most - 1)) for number in range(most)})
