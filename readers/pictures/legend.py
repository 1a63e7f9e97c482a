"""The legend of a sheet: classes with their colours and shares, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from readers.contract.palette import RGB, Palette
from readers.pictures.draw import ramp
from readers.pictures.text import cut_to, visible, width_of, write

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

INK, SOFT = (28, 37, 48), (104, 115, 128)
LETTER, LINE, SWATCH = 14, 24, 14
MOST_SHOWN = 240
"""The most classes in a legend: it names the classes with the largest shares."""
WIDEST, GAP = 340, 28
HATCH = (150, 156, 164)
RAMP_NOTE = "from the low number below a picture to the high one"


@dataclass(frozen=True)
class LegendLine:
    """A line of a legend: a name, a colour, how much there is of it; `hatched` as ignored pixels are."""

    name: str
    colour: RGB
    share: str = ""
    hatched: bool = False


@dataclass(frozen=True)
class Legend:
    """The entries of a sheet, what is left out, and the ramp of measured values if there is one."""

    entries: Sequence[LegendLine] = ()
    note: str = ""
    is_ramp: bool = False

    def columns(self, width: int) -> tuple[int, int]:
        """Return how many columns there are, and how wide each is."""
        widest = max((width_of(f"{visible(entry.name)}  {entry.share}", LETTER) for entry in self.entries), default=0)
        column = min(WIDEST, widest + SWATCH + 12 + GAP, width)
        return max(1, width // column), column

    def height(self, width: int) -> int:
        """Return the height of the legend in pixels."""
        lines = -(-len(self.entries) // self.columns(width)[0]) + bool(self.note) + self.is_ramp
        return LINE * lines + (12 if lines else 0)

    def draw(self, image: Image, draw: ImageDraw, left: int, top: int, width: int) -> None:
        """Draw the legend, column by column."""
        count, column = self.columns(width)
        lines = -(-len(self.entries) // count)
        for number, entry in enumerate(self.entries):
            at = left + number // lines * column, top + number % lines * LINE
            _draw_entry(draw, entry, at, column - GAP)
        below = top + lines * LINE
        if self.is_ramp:
            _draw_ramp(image, draw, left, below)
            below += LINE
        if self.note:
            write(draw, (left, below + SWATCH - 1), cut_to(self.note, width, LETTER - 1), LETTER - 1, SOFT)


def legend_of(names: Sequence[str], palette: Palette, shares: Sequence[float], ignored: float | None) -> Legend:
    """Return the legend of classes, those with the largest shares if there are many."""
    numbers = sorted(range(len(names)), key=lambda number: (-shares[number], number))[:MOST_SHOWN]
    entries = [LegendLine(names[number], palette[number], percent(shares[number])) for number in sorted(numbers)]
    if ignored:
        entries.append(LegendLine("ignored", palette.ignored, percent(ignored), hatched=True))
    many = f"the {MOST_SHOWN} most frequent of {len(names):,} classes" if len(names) > MOST_SHOWN else ""
    return Legend(entries, many)


def percent(share: float) -> str:
    """Return a share in per cent, with as many digits as it takes to see that it is not 0."""
    if share <= 0:
        return "0"
    if share < 0.0001:
        return "< 0.01 %"
    return f"{100 * share:.2f} %" if share < 0.1 else f"{100 * share:.1f} %"


def _draw_entry(draw: ImageDraw, entry: LegendLine, at: tuple[int, int], width: int) -> None:
    left, top = at
    dark = tuple(3 * part // 4 for part in entry.colour)
    draw.rounded_rectangle((left, top, left + SWATCH, top + SWATCH), 3, fill=entry.colour, outline=dark)
    if entry.hatched:
        for step in range(3, 2 * SWATCH, 6):
            first, last = max(0, step - SWATCH), min(step, SWATCH)
            draw.line((left + first, top + step - first, left + last, top + step - last), fill=HATCH, width=2)
    share = width_of(entry.share, LETTER)
    baseline, text = top + SWATCH - 2, left + SWATCH + 8
    name = cut_to(entry.name, width - SWATCH - 8 - share - 10, LETTER)
    write(draw, (text, baseline), name, LETTER, INK)
    write(draw, (text + width_of(name, LETTER) + 8, baseline), entry.share, LETTER, SOFT)


def _draw_ramp(image: Image, draw: ImageDraw, left: int, top: int) -> None:
    from PIL.Image import fromarray

    image.paste(fromarray(ramp()[None].repeat(SWATCH, 0)), (left, top))
    write(draw, (left + 256 + 10, top + SWATCH - 2), RAMP_NOTE, LETTER, SOFT)
