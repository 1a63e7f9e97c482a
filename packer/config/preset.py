"""Presets: configurations that come with the package and describe how public data sets are paired and read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from packer.classes.load import load_class_table
from packer.config.config import Settings, read_config
from packer.errors import UsageError, did_you_mean
from packer.pixels.label_rules import BINARY, BINARY_CLASSES
from readers.contract.classes import ClassTable

FOLDER = Path(__file__).parent / "presets"


@dataclass(frozen=True)
class Preset:
    """One of the TOML files in packer/config/presets."""

    name: str

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.toml"

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def about(self) -> str:
        """The data set in one line: the first line of the file."""
        return self.text.partition("\n")[0].removeprefix("#").strip()

    def settings(self) -> Settings:
        return read_config(self.path)


def presets() -> list[Preset]:
    """All presets, by name."""
    return [Preset(name) for name in sorted(path.stem for path in FOLDER.glob("*.toml"))]


def find_preset(name: str) -> Preset:
    """The preset with this name; UsageError with the nearest name if it does not exist."""
    names = [preset.name for preset in presets()]
    if name.lower() in names:
        return Preset(name.lower())
    hint = did_you_mean(name, names) or f"; known are {', '.join(names)}"
    raise UsageError(f"--preset {name}: unknown preset{hint}")


def preset_classes(settings: Settings) -> ClassTable | None:
    """The classes in the labels of a preset, without what it ignores."""
    classes, ignore = settings.get("classes"), settings.get("ignore", [])
    if isinstance(classes, (str, ClassTable)) and isinstance(ignore, list):
        return load_class_table(FOLDER, classes, ignore)
    return BINARY_CLASSES if settings.get("label-codec") == BINARY else None
