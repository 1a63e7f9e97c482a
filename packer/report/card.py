"""The card of a pack: a page in Markdown with the front matter that the Hugging Face Hub reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from packer.errors import first_of
from packer.packs.stats import SplitStats
from packer.report.croissant import About
from readers.contract.classes import ClassTable
from readers.contract.folds import TRAIN, fold_numbers
from readers.contract.kinds import CLASSES
from readers.contract.manifest import Manifest
from readers.contract.plain_text import one_line

CARD, CROISSANT, SHEET = "README.md", "croissant.json", "sheet.jpg"
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"), (10**7, "1M<n<10M"))
"""The categories of sizes of the Hub."""
LARGEST = "n>10M"
MARK = "# Written by packer card."
"""A comment in the front matter. A file with it is replaced, another one is not."""
_SPECIAL = re.compile(r"[\\`*_{}\[\]()<>#|~&$@]|!(?=\[)|(?<=:)//|^[-+\d]")
"""The characters that Markdown, its tables or its automatic links would obey."""
MOST_LINES = 300


def card_text(manifest: Manifest, stats: Sequence[SplitStats], about: About, losses: Mapping[str, str]) -> str:
    """Return the card. Every name in it is escaped: Markdown has HTML."""
    lines = [
        *_front_matter(manifest, about),
        f"# {_plain(about.name)}",
        "",
        _plain(about.description),
        "",
        f"![rows with their labels, and the classes]({SHEET})",
        "",
        *_load(manifest),
        *_splits(manifest, stats),
        *_fields(manifest),
        *(f"{name} is stored as JPEG: {words}.\n" for name, words in losses.items()),
        *_classes(manifest, stats),
        *_recipe(manifest),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _front_matter(manifest: Manifest, about: About) -> Iterator[str]:
    """Yield YAML. Texts are in quotes as JSON has them, which YAML reads."""
    size = next((name for most, name in SIZES if manifest.rows < most), LARGEST)
    yield "---"
    yield MARK
    yield f"pretty_name: {json.dumps(one_line(about.name))}"
    yield f"license: {json.dumps(one_line(about.licence) or 'other')}"
    yield "task_categories: [image-segmentation]"
    yield f"size_categories: [{json.dumps(size)}]"
    yield 'tags: ["segpack", "semantic-segmentation"]'
    yield "viewer: false"
    yield "---"
    yield ""


def _load(manifest: Manifest) -> Iterator[str]:
    folds = fold_numbers(split.name for split in manifest.splits)
    rows = f'split="{TRAIN}", fold={folds[0]}' if folds else f'split="{manifest.splits[0].name}"'
    yield "## Load"
    yield ""
    yield "```python"
    yield "from readers import open_dataset  # pip install segpack"
    yield ""
    yield f'data = open_dataset("PATH", {rows})'
    yield "for images, labels in data.loader(32, shuffle=True):"
    yield "    ..."
    yield "```"
    yield ""
    yield f"{manifest.rows:,} rows, {manifest.bytes:,} bytes in {manifest.shards:,} shards of {manifest.storage}."
    yield f"Generation {manifest.generation}, published {manifest.created}."
    yield ""


def _splits(manifest: Manifest, stats: Sequence[SplitStats]) -> Iterator[str]:
    statistics = {split.split: split for split in stats}
    cells = [
        [split.name, f"{split.rows:,}", _numbers(statistics[split.name].mean), _numbers(statistics[split.name].std)]
        for split in manifest.splits
        if split.name in statistics
    ]
    yield "## Splits"
    yield ""
    yield from _table(["split", "rows", "mean", "deviation"], cells)


def _fields(manifest: Manifest) -> Iterator[str]:
    yield "## Fields"
    yield ""
    cells = [
        [
            field.name,
            field.kind,
            field.form,
            field.dtype,
            field.encoding_text,
            "×".join("any" if side is None else str(side) for side in field.shape),
        ]
        for field in manifest.fields
    ]
    yield from _table(["field", "kind", "form", "type", "encoding", "shape of a row"], cells)


def _side(side: int | None) -> str:
    return "any" if side is None else str(side)


def _classes(manifest: Manifest, stats: Sequence[SplitStats]) -> Iterator[str]:
    """Yield the palette: the colours in which the classes are drawn, with their shares in each split."""
    for field in manifest.fields:
        if field.classes is None:
            continue
        alone = field.kind == CLASSES
        shares = [{counts.name: counts.classes for counts in split.fields}[field.name] for split in stats]
        head = ["", "class", "colour", *(f"{split.split}, {'pixels' if alone else 'rows'}" for split in stats)]
        cells = [
            [str(number), _plain(name), f"`{colour}`"]
            + [f"{100 * classes[number].share:.3f} %" if alone else f"{classes[number].rows:,}" for classes in shares]
            for number, (name, colour) in enumerate(_named(field.classes))
        ]
        yield f"## Classes of {_plain(field.name)}"
        yield ""
        if alone:
            yield f"Ignored pixels are {field.classes.ignore_index}."
            yield ""
        yield from _table(head, cells)


def _named(classes: ClassTable) -> Iterator[tuple[str, str]]:
    return zip(classes.names, classes.palette.hex, strict=True)


def _recipe(manifest: Manifest) -> Iterator[str]:
    yield "## Recipe"
    yield ""
    yield "The options and versions that decide the bytes:"
    yield ""
    yield "```json"
    text = json.dumps(dict(manifest.recipe), indent=1, ensure_ascii=True)
    yield text.replace("```", "\\u0060\\u0060\\u0060")
    yield "```"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from first_of([f"| {' | '.join(row)} |" for row in rows], MOST_LINES, "lines")
    yield ""


def _plain(text: str) -> str:
    """Return a text that Markdown shows unchanged: no class name becomes a link or a tag."""
    return _SPECIAL.sub(lambda match: "".join(f"&#{ord(letter)};" for letter in match[0]), one_line(text))


def _numbers(values: Sequence[float]) -> str:
    return " ".join(f"{value:.4f}" for value in values)
