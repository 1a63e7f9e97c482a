"""`ClassChange`: the class numbers of one pack as the class numbers of a common list, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.contract.classes import ClassTable

ClassNames = Mapping[str, str | None]
"""The name in the common list for a name of a pack; None: its pixels are ignored."""


@dataclass(frozen=True)
class ClassChange:
    """A number of the common list for each number that an index label of a pack can have."""

    numbers: NDArray[Any]

    @classmethod
    def of(cls, own: ClassTable, common: ClassTable, names: ClassNames) -> tuple[ClassChange | None, list[str]]:
        """Return the change of the labels of a pack, None if they stay, and what is wrong with `names`."""
        problems = _problems(own, common, names)
        places = {name: number for number, name in reversed(list(enumerate(common.names)))}
        if not names and own.names == common.names:
            return None, problems
        targets = [names.get(name, name) for name in own.names]
        lacking = [name for name, target in zip(own.names, targets, strict=True) if name not in names]
        lacking = [name for name in lacking if name not in places]
        if lacking:
            quoted = ", ".join(map(repr, lacking))
            problems.append(f"{quoted}: no class of the common list; name the class for each, or None to ignore it")
        numbers = np.full(np.iinfo(own.index_dtype).max + 1, common.ignore_index, common.index_dtype)
        for number, target in enumerate(targets):
            if isinstance(target, str) and target in places:
                numbers[number] = places[target]
        return cls(numbers), problems

    def names(self, own: ClassTable, common: ClassTable) -> dict[str, str | None]:
        """Return the name in the common list of each class of a pack; None if its pixels are ignored."""
        targets = self.numbers[: len(own)].tolist()
        return {
            name: common.names[target] if target < len(common) else None
            for name, target in zip(own.names, targets, strict=True)
        }

    def apply(self, labels: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the changed numbers of `labels` into `out`, which may be the same array."""
        if labels.dtype == out.dtype == np.uint8:  # Python translates bytes three times as fast as NumPy looks them up
            changed = bytearray(labels).translate(self.numbers.tobytes())
            out[...] = np.frombuffer(changed, np.uint8).reshape(out.shape)
        else:
            np.take(self.numbers, labels, out=out, mode="clip")


def _problems(own: ClassTable, common: ClassTable, names: Mapping[Any, Any]) -> list[str]:
    """Return what is wrong with the names that a user gave for the classes of a pack."""
    unknown = [repr(name) for name in names if name not in own.names]
    no_target = sorted({repr(target) for target in names.values() if target is not None and target not in common.names})
    return [
        *([f"mapping names {', '.join(unknown)}, which this pack lacks"] if unknown else []),
        *([f"mapping leads to {', '.join(no_target)}, which the common list lacks"] if no_target else []),
    ]
