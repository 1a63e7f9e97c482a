"""The recipe: everything that decides the bytes of a packed data set. Same recipe, same raw files: same bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from packer.geometry import FITS, INTERPOLATIONS, Geometry
from packer.pictures.rules import ImageRules
from readers.contract.checked import Entry, fingerprint
from readers.contract.classes import ClassTable
from readers.contract.fields import IMAGE, LABEL, Field
from readers.contract.manifest import STORAGES

IMAGE_DTYPES = {"uint8": "|u1", "float16": "<f2", "float32": "<f4"}
LABEL_FORMS = ("onehot", "index")
UNKNOWNS = ("error", "ignore")


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the bytes. `tools` names the libraries that decode and write, for the same reason."""

    storage: str
    classes: ClassTable
    geometry: Geometry
    image_dtype: str
    labels: str
    unknown: str
    rules: ImageRules
    shard_bytes: int
    image_template: str
    label_template: str
    tools: tuple[str, ...]

    @property
    def fields(self) -> tuple[Field, Field]:
        """The stored columns."""
        height, width = self.geometry.size
        image = Field(IMAGE, IMAGE_DTYPES[self.image_dtype], (3, height, width), "rgb")
        if self.labels == "onehot":
            return image, Field(LABEL, "|u1", (len(self.classes), height, width), "onehot")
        return image, Field(LABEL, self.classes.index_dtype, (height, width), "index")

    @property
    def row_bytes(self) -> int:
        return sum(field.row_bytes for field in self.fields)

    @property
    def shard_rows(self) -> int:
        """How many rows a shard has on average."""
        return max(1, self.shard_bytes // self.row_bytes)

    def fingerprint(self) -> str:
        return fingerprint(self.to_json())

    def to_json(self) -> dict[str, Any]:
        return {
            "storage": self.storage,
            "classes": self.classes.to_json(),
            "size": list(self.geometry.size),
            "fit": self.geometry.fit,
            "interpolation": self.geometry.interpolation,
            "image_dtype": self.image_dtype,
            "labels": self.labels,
            "unknown": self.unknown,
            "image_rules": self.rules.to_json(),
            "shard_bytes": self.shard_bytes,
            "image_template": self.image_template,
            "label_template": self.label_template,
            "tools": list(self.tools),
        }

    @classmethod
    def from_json(cls, entry: Entry) -> Recipe:
        height, width = (*entry.wholes("size", least=1), 1, 1)[:2]
        recipe = cls(
            storage=entry.choice("storage", STORAGES),
            classes=ClassTable.from_json(entry.entry("classes")),
            geometry=Geometry(
                (height, width), entry.choice("fit", FITS), entry.choice("interpolation", INTERPOLATIONS)
            ),
            image_dtype=entry.choice("image_dtype", tuple(IMAGE_DTYPES)),
            labels=entry.choice("labels", LABEL_FORMS),
            unknown=entry.choice("unknown", UNKNOWNS),
            rules=ImageRules.from_json(entry.entry("image_rules")),
            shard_bytes=entry.whole("shard_bytes", least=1),
            image_template=entry.text("image_template"),
            label_template=entry.text("label_template"),
            tools=entry.texts("tools"),
        )
        entry.close()
        return recipe
