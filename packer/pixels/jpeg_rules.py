"""`JpegRules`: how the pictures of a field become JPEG files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from readers.contract.json_entry import Entry

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
        return cls(keep=True) if text == KEEP else cls(int(text)) if text else cls()

    def to_json(self) -> dict[str, Any]:
        return {"quality": self.quality, "keep": self.keep}

    @classmethod
    def from_json(cls, entry: Entry) -> JpegRules:
        rules = cls(entry.whole("quality", least=1), entry.truth("keep"))
        entry.close()
        return rules
