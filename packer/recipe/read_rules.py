"""`ReadRules`: how the files of a row are read, and whether their headers allow it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from packer.decoding.decode import check_image, check_label
from packer.decoding.header import Header
from packer.decoding.raw_file import naming
from packer.decoding.rules import ImageRules
from packer.pixels.label_rules import LabelRules
from packer.recipe.row_ref import RowRef
from readers.contract import VERSION
from readers.contract.json_entry import fingerprint


@dataclass(frozen=True)
class ReadRules:
    """The rules for images and those for labels."""

    image: ImageRules
    label: LabelRules

    @classmethod
    def of(
        cls, image_range: tuple[float, float] | None, alpha: str, max_pixels: int, decode: str, label: LabelRules
    ) -> ReadRules:
        return cls(ImageRules(image_range, alpha, max_pixels, decode), label)

    def check(self, ref: RowRef, headers: Sequence[Header]) -> None:
        """Raise BadPair if a shard would certainly reject a row with these headers."""
        image, *labels = headers
        with naming(ref.parts[0]):
            check_image(image, self.image)
        for label in labels:
            with naming(ref.parts[1]):
                check_label(label, self.label.lossy)

    @property
    def judged(self) -> str:
        """The fingerprint of everything that decides whether headers are good."""
        return fingerprint([VERSION, self.image.to_json(), self.label.lossy])[:32]
