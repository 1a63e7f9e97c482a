"""Find the presets that something speaks for: the name of the data set in a path, or the size of its pictures.

That a preset knows all values of some labels says nothing: every preset of street scenes knows 0 to 10.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

from packer.config.config import Settings
from packer.config.preset import preset_classes, presets
from packer.pixels.label_rules import AUTO, INDEX
from readers.contract.classes import ClassTable
from readers.contract.tiles import Size

SIZES: dict[str, tuple[Size, ...]] = {
    "bdd100k": ((720, 1280),),
    "camvid-11": ((360, 480), (720, 960)),
    "cityscapes": ((1024, 2048), (512, 1024)),
    "kitti": ((375, 1242), (370, 1224), (374, 1238), (376, 1241)),
}
"""The sizes that the pictures of a data set have, height and width."""


@cache
def presets_with_classes() -> tuple[tuple[str, Settings, ClassTable], ...]:
    """Return the presets that name their classes. Their files are parsed once in a process."""
    named = []
    for preset in presets():
        settings = preset.settings()
        classes = preset_classes(settings)
        if classes is not None:
            named.append((preset.name, settings, classes))
    return tuple(named)


def likely_presets(values: Collection[int], paths: Collection[str], sizes: Collection[Size]) -> list[str]:
    """Return the presets that know all these values and that a path or a size speaks for, the smallest first."""
    likely = []
    text = "\n".join(paths).casefold()
    for name, settings, classes in presets_with_classes():
        numbers = {value for entry in classes.classes for value in entry.values}
        is_numbered = settings.get("label-codec", AUTO) in (AUTO, INDEX) and bool(numbers)
        speaks = name.partition("-")[0] in text or not set(SIZES.get(name, ())).isdisjoint(sizes)
        if is_numbered and speaks and set(values) <= numbers | set(classes.ignored_values):
            likely.append((len(classes), name))
    return [name for _, name in sorted(likely)]
