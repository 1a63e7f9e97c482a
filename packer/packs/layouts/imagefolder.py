"""Hugging Face imagefolder: pictures with masks, and a metadata.jsonl in each split that pairs them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from packer.packs.layouts.layout import LaidOut, Roles, RowOfPack, split_name
from packer.packs.write_rows import RowFile, png


class ImagefolderLayout:
    """`load_dataset("imagefolder", data_dir=FOLDER)` has the columns image and label_file_name, both pictures."""

    def __init__(self, roles: Roles) -> None:
        roles.check_pictures("imagefolder")
        self._roles, self._classes = roles, roles.classes

    def row(self, row: RowOfPack) -> LaidOut:
        split = split_name(row.split)
        image, label = f"images/{row.name}.png", f"labels/{row.name}.png"
        files = [RowFile(f"{split}/{image}", png(self._roles.picture(row)))]
        facts = {"file_name": image}
        if (numbers := self._roles.numbers(row)) is not None:
            files.append(RowFile(f"{split}/{label}", png(numbers)))
            facts["label_file_name"] = label
        return LaidOut(tuple(files), {f"{split}/metadata.jsonl": (json.dumps({**facts, "key": row.key}),)})

    def finish(self, folder: Path, splits: Mapping[str, int]) -> Iterator[RowFile]:
        names = {str(number): name for number, name in enumerate(self._classes.names)}
        yield RowFile("id2label.json", (json.dumps(names, indent=1, ensure_ascii=False) + "\n").encode())
