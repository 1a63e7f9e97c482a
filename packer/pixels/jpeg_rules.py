"""`JpegRules`: how the pictures of a field become JPEG files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from readers.contract.fields import Field
from readers.contract.json_entry import Entry
from readers.contract.kinds import PICTURE

DEFAULT_QUALITY, BEST_QUALITY = 95, 100
KEEP = "keep"


@dataclass(frozen=True)
class JpegRules:
    """The quality of the JPEG files. With `keep`, a picture that was read from one is stored as that file, if exactly
    its pixels are to be stored."""

    quality: int = DEFAULT_QUALITY
    keep: bool = False

    @classmethod
    def parse(cls, text: str) -> JpegRules:
        """Return the rules of a text such as `95` or `keep`; an empty one stands for the default."""
        if text == KEEP:
            return cls(keep=True)
        return cls(int(text)) if text else cls()

    @property
    def option(self) -> str:
        """The text that `parse` reads."""
        return KEEP if self.keep else str(self.quality)

    def to_json(self) -> dict[str, Any]:
        return {"quality": self.quality, "keep": self.keep}

    @classmethod
    def from_json(cls, entry: Entry) -> JpegRules:
        rules = cls(entry.whole("quality", least=1), entry.truth("keep"))
        entry.close()
        return rules


def can_be_jpeg(field: Field) -> bool:
    """Return whether the rows of a field can be JPEG files. Volumes cannot, nor pictures with pixels without data."""
    is_picture = (field.kind, field.dtype, len(field.shape)) == (PICTURE, "|u1", 3)
    return is_picture and field.numbers in (1, 3) and not field.no_data
