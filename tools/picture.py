"""Draw docs/road.png, the picture of the README, from data_samples/raw: raw files, the pack, a training batch.

tools/run picture [--raw FOLDER] [--out FILE]
"""

from __future__ import annotations

import csv
from pathlib import Path

import cv2
import numpy as np
from PIL import Image
from program import REPO, SAMPLES, parser
from scenes.pictures import CLASS_TABLE, read_picture
from scenes.street import Pixels

Colour = tuple[int, int, int]

WIDTH, HEIGHT, SCALE = 1600, 560, 2
"""The size in points. The page is drawn larger by SCALE and shrunk, which makes lines as smooth as text."""
TOP, BOTTOM = 132, 490
"""The upper and the lower end of all three parts."""
LEFT, PACK, BATCH = 40, 428, 960
"""The left ends of the three parts."""
INK, GREY, FAINT = (34, 40, 49), (106, 115, 127), (208, 215, 224)
ACCENT, CARD, WHITE = (24, 104, 190), (245, 248, 251), (255, 255, 255)
SANS, CODE = cv2.FontFace("sans"), cv2.FontFace("uni")


class Sheet:
    """A white page with coordinates in points."""

    def __init__(self) -> None:
        self.pixels: Pixels = np.full((HEIGHT * SCALE, WIDTH * SCALE, 3), 255, np.uint8)

    def write(self, x: float, y: float, text: str, size: int, colour: Colour = INK, weight: int = 400) -> None:
        """Write text in the sans face, centred on x, with its foot on y."""
        wide = cv2.getTextSize((0, 0), text, (0, 0), SANS, size * SCALE, weight)[2]
        at = (round(x * SCALE - wide / 2), round(y * SCALE))
        cv2.putText(self.pixels, text, at, colour, SANS, size * SCALE, weight)

    def write_code(self, x: float, y: float, text: str, size: int, colour: Colour = INK, centred: bool = True) -> None:
        """Write text in the code face, centred on x or starting there. The … is of the sans face, where it is low."""
        runs = [(run, SANS if run == "…" else CODE) for run in text.replace("…", "\0…\0").split("\0")]
        wides = [cv2.getTextSize((0, 0), run, (0, 0), face, size * SCALE)[2] if run else 0 for run, face in runs]
        pen = x * SCALE - (sum(wides) / 2 if centred else 0)
        for (run, face), wide in zip(runs, wides, strict=True):
            cv2.putText(self.pixels, run, (round(pen), round(y * SCALE)), colour, face, size * SCALE)
            pen += wide + SCALE * (run == "…")

    def box(self, x: float, y: float, wide: float, high: float, radius: float, fill: Colour, edge: Colour) -> None:
        """Draw a rectangle with round corners and a thin edge."""
        for inset, colour in ((0.0, edge), (1.0, fill)):
            a, b, r = x + inset, y + inset, max(radius - inset, 0)
            w, h = wide - 2 * inset, high - 2 * inset
            corners = [(a + r, b + r, 180), (a + w - r, b + r, 270), (a + w - r, b + h - r, 0), (a + r, b + h - r, 90)]
            arcs = [
                [(u + r * np.cos(t), v + r * np.sin(t)) for t in np.radians(np.arange(0, 91, 6) + start)]
                for u, v, start in corners
            ]
            self.polygon([point for arc in arcs for point in arc], colour)

    def polygon(self, points: list[tuple[float, float]], colour: Colour) -> None:
        """Draw a filled shape with smooth edges."""
        cv2.fillPoly(self.pixels, [np.round(np.array(points) * SCALE * 16).astype(np.int32)], colour, cv2.LINE_AA, 4)

    def paste(
        self, picture: Pixels, x: float, y: float, wide: int, high: int, edge: Colour = WHITE, rim: int = 1
    ) -> None:
        """Draw a picture with a thin edge on a soft shadow."""
        a, b, w, h = (round(v * SCALE) for v in (x, y, wide, high))
        reach = 8 * SCALE
        around = np.s_[max(b - reach, 0) : b + h + reach, max(a - reach, 0) : a + w + reach]
        shade = np.zeros(self.pixels[around].shape[:2], np.float32)
        shade[reach + SCALE : reach + SCALE + h, reach : reach + w] = 0.28
        dark = cv2.GaussianBlur(shade, (0, 0), 2.2 * SCALE)[..., None]
        self.pixels[around] = (self.pixels[around] * (1 - dark)).astype(np.uint8)
        self.pixels[b : b + h, a : a + w] = edge
        inset = rim * SCALE
        size, how = (w - 2 * inset, h - 2 * inset), cv2.INTER_AREA if picture.shape[1] > w else cv2.INTER_CUBIC
        self.pixels[b + inset : b + h - inset, a + inset : a + w - inset] = cv2.resize(picture, size, interpolation=how)


def pairs(raw: Path) -> list[tuple[Path, Path]]:
    """Return the images of both splits, each with its label."""
    images = sorted(raw.glob("*/images/*"), key=lambda path: path.name)
    return [(path, path.parents[1] / "labels" / f"{path.stem}.png") for path in images]


def draw_heading(sheet: Sheet, x: float, title: str, note: str) -> None:
    """Write the title of a part and a line below it."""
    sheet.write(x, 66, title, 27, INK, 600)
    sheet.write(x, 96, note, 17, GREY)


def draw_raw(sheet: Sheet, chosen: list[tuple[Path, Path]]) -> None:
    """Draw two fanned stacks: image files, and their labels below."""
    wide, high, step = 200, 133, 11
    middle, tall = LEFT + wide / 2 + step, high + 2 * step
    draw_heading(sheet, middle, "Raw files", "decoded every epoch")
    for kind, top, names in ((0, TOP, "images/*.png  *.jpg"), (1, BOTTOM - tall, "labels/*.png")):
        for depth in range(len(chosen) - 1, -1, -1):
            sheet.paste(read_picture(chosen[depth][kind]), LEFT + depth * step, top + (2 - depth) * step, wide, high)
        sheet.write_code(middle, top + tall + 21, names, 16, GREY)


def draw_arrow(sheet: Sheet, start: float, end: float, code: str, note: str) -> None:
    """Draw an arrow half-way up, with the call above it and a note below."""
    y, middle = (TOP + BOTTOM) / 2, (start + end) / 2
    sheet.polygon([(start, y - 1.5), (end - 10, y - 1.5), (end - 10, y + 1.5), (start, y + 1.5)], ACCENT)
    sheet.polygon([(end, y), (end - 14, y - 8), (end - 14, y + 8)], ACCENT)
    sheet.write_code(middle, y - 16, code, 18, INK)
    sheet.write(middle, y + 30, note, 16, GREY)


def draw_pack(sheet: Sheet, wide: int) -> None:
    """Draw the folder with its manifest and shards, and the formats of packs."""
    draw_heading(sheet, PACK + wide / 2, "Pack", "decoded once, never changed")
    sheet.box(PACK, TOP, 104, 60, 10, CARD, FAINT)
    sheet.box(PACK, TOP + 32, wide, BOTTOM - TOP - 32, 10, CARD, FAINT)
    sheet.polygon([(PACK + 1, TOP + 30), (PACK + 103, TOP + 30), (PACK + 103, TOP + 46), (PACK + 1, TOP + 46)], CARD)
    sheet.write_code(PACK + 52, TOP + 25, "out/", 19, INK)
    names = ("manifest.json", "train-3f9a….lmdb", "train-81c4….lmdb", "val-5b26….lmdb")
    for number, name in enumerate(names):
        y = TOP + 52 + number * 54
        sheet.box(PACK + 20, y, wide - 40, 44, 7, WHITE, FAINT)
        draw_icon(sheet, PACK + 35, y + 12, number > 0)
        sheet.write_code(PACK + 66, y + 28, name, 18, INK, centred=False)
    pitch = (wide - 40 + 8) / 4
    for number, kind in enumerate((".lmdb", ".h5", ".npy", ".arrow")):
        x, on = PACK + 20 + number * pitch, number == 0
        sheet.box(x, BOTTOM - 66, pitch - 8, 30, 15, ACCENT if on else WHITE, ACCENT if on else FAINT)
        sheet.write_code(x + pitch / 2 - 4, BOTTOM - 46, kind, 15, WHITE if on else GREY)
    sheet.write(PACK + wide / 2, BOTTOM - 13, "one of four formats", 15, GREY)


def draw_icon(sheet: Sheet, x: float, y: float, shard: bool) -> None:
    """Draw a sheet of paper, or the layers of a shard."""
    if shard:
        for layer in range(3):
            sheet.box(x, y + layer * 7.5, 18, 5.5, 2, ACCENT, ACCENT)
    else:
        sheet.box(x + 1, y, 16, 21, 2.5, WHITE, GREY)
        for line in range(3):
            sheet.box(x + 5, y + 5 + line * 4.5, 8, 1.6, 0.5, GREY, GREY)


def draw_batch(sheet: Sheet, chosen: list[tuple[Path, Path]], planes: list[tuple[Pixels, Colour]]) -> None:
    """Draw a grid of images, and to its right the one-hot planes of the label of the first."""
    wide, high, gap = 92, 61, 5
    across = 4 * (wide + gap) - gap
    down, top = 4 * (high + gap) - gap, (TOP + BOTTOM) / 2 - 2 * (high + gap)
    draw_heading(sheet, (BATCH + WIDTH - 40) / 2, "Training batch", "tensors for PyTorch")
    for number, (image, _) in enumerate(chosen):
        row, column = divmod(number, 4)
        sheet.paste(read_picture(image), BATCH + column * (wide + gap), top + row * (high + gap), wide, high)
    left, size = BATCH + across + 24, (138, 92)
    step = ((WIDTH - 40 - left - size[0]) / (len(planes) - 1), (down - size[1]) / (len(planes) - 1))
    for number, (plane, colour) in enumerate(planes):
        x, y = left + (len(planes) - 1 - number) * step[0], top + number * step[1]
        sheet.paste(plane, x, y, *size, colour, rim=2)
    sheet.write(BATCH + across / 2, top + down + 32, "images  16 × 3 × H × W", 18)
    sheet.write((left + WIDTH - 40) / 2, top + down + 32, "labels  16 × C × H × W", 18)


def onehot(raw: Path, label: Path) -> list[tuple[Pixels, Colour]]:
    """Return the planes of a label, white at their class, each with the colour of the class. Sky is in front."""
    with (raw / CLASS_TABLE).open(encoding="utf-8") as file:
        colours = [(int(row["r"]), int(row["g"]), int(row["b"])) for row in csv.DictReader(file)]
    pixels = read_picture(label)
    masks = [(pixels == colour).all(axis=2, keepdims=True) for colour in reversed(colours)]
    shown = [np.where(mask, np.uint8(250), np.uint8(30)).repeat(3, axis=2) for mask in masks]
    return list(zip(shown, reversed(colours), strict=True))


def main() -> None:
    """Draw at SCALE times the size, shrink, write."""
    options = parser(__doc__)
    options.add_argument("--raw", type=Path, default=SAMPLES, help="default: data_samples/raw")
    options.add_argument("--out", type=Path, default=REPO / "docs" / "road.png", help="default: docs/road.png")
    chosen = options.parse_args()
    found, sheet, wide = pairs(chosen.raw), Sheet(), 292
    draw_raw(sheet, [found[number] for number in (15, 6, 17)])
    draw_arrow(sheet, LEFT + 242, PACK - 20, "packer build", "once, offline")
    draw_pack(sheet, wide)
    draw_arrow(sheet, PACK + wide + 20, BATCH - 20, 'LmdbSegDataset("out")', "memory-mapped")
    draw_batch(
        sheet,
        [found[number] for number in (15, 6, 17, 3, 1, 20, 8, 10, 7, 13, 0, 16, 5, 22, 19, 12)],
        onehot(chosen.raw, found[15][1]),
    )
    small = cv2.resize(sheet.pixels, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA)
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(small).quantize(256).save(chosen.out, optimize=True)  # a third of the size of all colours
