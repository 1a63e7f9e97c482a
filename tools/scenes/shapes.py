"""The shapes of pictures whose builds are measured: sizes and file types as public data sets have them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """The size of the raw pictures, the suffix of the images, the stored size, and how pictures are fitted to it."""

    height: int
    width: int
    suffix: str = ".jpg"
    stored: tuple[int, int] = (512, 512)
    fit: str = "stretch"

    def __str__(self) -> str:
        kind = {".jpg": "JPEG", ".png": "PNG"}[self.suffix]
        return f"{self.width}x{self.height}, {kind} and PNG, to {self.stored[1]}x{self.stored[0]} ({self.fit})"


SHAPES = {
    "street": Shape(720, 960),
    "cityscapes": Shape(1024, 2048, ".png", (512, 1024)),
    "photo": Shape(3000, 4000),
    "voc": Shape(375, 500, fit="letterbox"),
}
