"""Write the card of a pack: the page, its Croissant description and a sheet of rows, in one folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import BytesIO
from os import PathLike
from pathlib import Path

from packer.errors import TargetError
from packer.packs.sha256sums import sha256sums
from packer.packs.stats import pack_stats
from packer.publish.atomic import write_atomic
from packer.report.card import CROISSANT, MARK, SHEET, card_text
from packer.report.croissant import About, croissant
from readers.contract.manifest import ALL, Manifest
from readers.contract.psnr import PsnrCounts
from readers.pack import Pack
from readers.row_pictures import RowPictures, Style
from readers.row_sheet import Choice, row_sheet
from readers.stores.checksums import read_receipt

ROWS = 12


def write_card(
    out: str | PathLike[str], output: str | PathLike[str], about: About, *, files: bool = False, seed: int = 0
) -> tuple[Path, ...]:
    """Write the card of the pack at `out` to `output`, with `croissant.json` and `sheet.jpg` next to it.

    With `files`, the description lists every file of the pack with its SHA-256, for which all of them are read.
    Files that no card wrote are not replaced: TargetError.
    """
    root, output = Path(out), Path(output)
    manifest = Manifest.load(root)
    written = (output, output.with_name(CROISSANT), output.with_name(SHEET))
    _check_ours(written)
    sums: Sequence[str] = list(sha256sums(root)) if files else ()
    described = json.dumps(croissant(root, manifest, about, sums), indent=1, ensure_ascii=False) + "\n"
    card = card_text(manifest, pack_stats(root), about, _losses(root, manifest))
    contents: tuple[str | bytes, ...] = (card, described, _sheet(root, about.name, seed))
    output.parent.mkdir(exist_ok=True)
    for path, content in zip(written, contents, strict=True):
        write_atomic(path, content)
    return written


def _check_ours(files: Sequence[Path]) -> None:
    """Refuse to replace files that no card wrote. The page has a mark, for itself and the files next to it."""
    page = files[0]
    existing = [path for path in files if path.exists() or path.is_symlink()]
    if existing and not (page.is_file() and MARK.encode() in page.read_bytes()[:1000]):
        names = ", ".join(map(str, existing))
        raise TargetError(
            f"{names}: not written by packer card, so not replaced; write elsewhere with -o FOLDER/README.md"
        )


def _losses(root: Path, manifest: Manifest) -> dict[str, str]:
    """Return how much each field lost that is stored as JPEG, in words."""
    losses: dict[str, PsnrCounts] = {}
    if any(field.is_jpeg for field in manifest.fields):
        pack = Pack(root, manifest)
        for shard in range(len(pack.table)):
            for name, values in read_receipt(root, pack.stem(shard), pack.table.receipt(shard)).psnr.items():
                losses.setdefault(name, PsnrCounts()).add(values)
    return {name: str(psnr) for name, psnr in losses.items()}


def _sheet(root: Path, title: str, seed: int) -> bytes:
    pack, file = Pack.open(root), BytesIO()
    choice = Choice(pack.rows_of(ALL), [ALL], ROWS, seed)
    row_sheet(RowPictures(pack, Style()), title, choice).save(file, "JPEG", quality=88)
    return file.getvalue()
