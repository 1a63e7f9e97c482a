"""Judge the shards of a build before they are published: all rows are there, few are bad, the data has no mistakes."""

from __future__ import annotations

from packer.data_checks.find_mistakes import ClassCounts, find_mistakes
from packer.data_checks.findings import NEAR_LEAKAGE, VOID_CLASS, Findings
from packer.data_checks.image_hashes import ImageHashes
from packer.errors import PackError
from packer.plan.expected import Expected
from packer.plan.problems import nothing_painted, problem_of, reject_error
from packer.runtime import no_collecting
from readers.contract.receipt_facts import AllReceipts
from readers.contract.statistics import class_counts, total
from readers.contract.tiles import picture_of


def judge(expected: Expected, receipts: AllReceipts) -> tuple[int, tuple[tuple[str, str, str], ...]]:
    """Return the number of rows, and the rejected pairs if the limits allow as many."""
    rows = receipts.rows
    rejected = sum(len(facts.rejects) for facts in receipts.values())
    if len(receipts) < expected.shards or rows + rejected != expected.pieces:
        raise PackError(
            f"{expected.pieces} pairs or tiles went in, {rows} rows and {rejected} rejects came out: please report this"
        )
    rejects, limits = _bad_pairs(expected, receipts), expected.judgement.limits
    if not limits.allows(len(rejects), expected.pairs) or rows == 0:
        bad = {(split, key) for split, key, _ in rejects}
        shards = [number for number, facts in receipts.items() if facts.rejects]
        refs = {row: ref for ref in expected.refs(shards) if (row := (ref.split, ref.key)) in bad}
        problems = [problem_of(refs[split, key], reason) for split, key, reason in rejects]
        raise reject_error(problems, limits, expected.pairs, "nothing was published")
    painted, annotated = receipts.notes.objects
    if annotated and not painted:
        lost = {what: count for what, count in receipts.notes.totals.items() if what.startswith("objects ")}
        raise nothing_painted(lost, "nothing was published")
    return rows, rejects


@no_collecting()
def find(expected: Expected, receipts: AllReceipts) -> Findings:
    """Return likely mistakes in the data, from the fingerprints and counts in the receipts."""
    judgement, classes = expected.judgement, expected.recipe.classes
    labels = None
    if classes is not None:
        fields, sums = expected.recipe.fields, receipts.statistics
        counts = {split: class_counts(total(fields, [sums[split]])) for split in receipts.splits}
        is_known = expected.classes_before == classes and VOID_CLASS not in judgement.fail_on
        if any(statistics.count for statistics in counts.values()):
            labels = ClassCounts(classes.names, counts, is_known)
    near = judgement.near_duplicates or NEAR_LEAKAGE in judgement.fail_on
    images = ImageHashes.of_receipts(receipts, expected.keys)
    counted = {words for facts in receipts.values() for words in facts.counts}
    return find_mistakes(images, expected.sizes, labels, near, judgement.accept, counted)


def _bad_pairs(expected: Expected, receipts: AllReceipts) -> tuple[tuple[str, str, str], ...]:
    """Every rejected pair once, even if each of its tiles is a reject. Rows of a pack may be tiles themselves."""
    name = picture_of if expected.cuts_tiles else str
    bad = {(facts.split, name(reject.key)): reject.reason for facts in receipts.values() for reject in facts.rejects}
    return tuple((split, key, reason) for (split, key), reason in bad.items())
