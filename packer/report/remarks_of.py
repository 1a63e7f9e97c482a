"""The remarks of a pack: those that its build left, or what its receipts show, if it is a copy or an older pack."""

from __future__ import annotations

from packer.data_checks.find_mistakes import ClassCounts, find_mistakes
from packer.data_checks.image_hashes import ImageHashes
from packer.packs.so_far import PackSoFar
from packer.progress import Progress, no_progress
from packer.publish.remarks import MOST_LISTED, Remarks, keep_remarks, load_remarks
from packer.publish.target import is_ours
from readers.contract.errors import DamagedError
from readers.contract.receipt import Receipt
from readers.contract.receipt_facts import AllReceipts
from readers.contract.statistics import class_counts
from readers.contract.tiles import picture_of
from readers.pack import Pack
from readers.stores.checksums import read_receipt

MOST_PAIRS = 20
"""The number of pairs that a finding names in words."""
TILE = "tile"


def remarks_of(pack: Pack, progress: Progress = no_progress) -> Remarks | None:
    """Return the remarks of a pack; None if it has none and a receipt is damaged.

    Receipts do not know the seconds of the build, which are 0, nor which likely mistakes were accepted. What was found
    in them is kept in the pack if it may be written to.
    """
    kept = load_remarks(pack.root, pack.manifest)
    if kept is not None:
        return kept
    try:
        remarks = _from_receipts(pack, progress)
    except (DamagedError, OSError):
        return None
    if is_ours(pack.root) and not isinstance(pack, PackSoFar):
        keep_remarks(pack.root, pack.manifest.generation, remarks)
    return remarks


def _from_receipts(pack: Pack, progress: Progress) -> Remarks:
    manifest = pack.manifest
    name = picture_of if manifest.recipe.get("fit") == TILE else str
    receipts = AllReceipts(name=name)
    with progress("reading receipts", len(pack.table), "shards") as advance:
        for shard in range(len(pack.table)):
            receipts.add(shard, _receipt(pack, shard))
            advance(1)
    bad = {
        (receipt.split, name(reject.key)): reject.reason for receipt in receipts.values() for reject in receipt.rejects
    }
    images = ImageHashes.of_receipts(receipts, lambda shard: [source.key for source in _receipt(pack, shard).sources])
    findings = find_mistakes(images, (), _labels(pack)).open
    notes = receipts.notes
    return Remarks(
        identity=manifest.identity,
        seconds=0,
        rows=manifest.rows,
        reused=0,
        rejects=tuple((split, key, reason) for (split, key), reason in bad.items())[:MOST_LISTED],
        all_rejects=len(bad),
        findings=tuple((item.kind, item.pairs[:MOST_LISTED], item.text(MOST_PAIRS)) for item in findings[:MOST_LISTED]),
        all_findings=len(findings),
        notes=notes.first,
        all_notes=notes.rows,
        totals=notes.sums,
    )


def _receipt(pack: Pack, shard: int) -> Receipt:
    return read_receipt(pack.root, pack.stem(shard), pack.table.receipt(shard))


def _labels(pack: Pack) -> ClassCounts | None:
    """Return the counts of the label by split. A class with the name of nothing was known to the build."""
    counts = {split.name: class_counts(split.statistics) for split in pack.manifest.splits}
    if not any(split_counts.count for split_counts in counts.values()):
        return None
    return ClassCounts(pack.manifest.classes.names, counts, is_known=True)
