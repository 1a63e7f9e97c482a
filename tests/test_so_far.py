"""A pack that is built for the first time can be looked at before it is published."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from conftest import errors_of, good, make_raw

from packer.building.live import live_view
from packer.building.run_build import build_from, built_here
from packer.packs.so_far import PackSoFar, open_so_far
from packer.plan.plan import Plan
from packer.plan.request import request_of
from packer.publish.target import REMARKS
from packer.report.report import make_report
from packer.view.viewed import Settings, Viewed
from packer.workers.pool import Pool
from readers.contract.errors import NoPackError
from readers.contract.manifest import LIVE, STORAGES, Manifest
from readers.contract.receipt import Receipt
from readers.pack import Pack

OPTIONS: dict[str, Any] = {"size": (24, 36), "shard_size": "8KiB", "workers": 1}


class StoppedError(Exception):
    """Stands for a build that ends after some shards."""


def build_some(raw: Path, out: Path, chosen: set[int], storage: str) -> None:
    """Build some shards of a pack, as a live build does."""

    def some(plan: Plan, pool: Pool) -> Generator[tuple[int, Receipt], None, None]:
        with live_view(plan, "{}") as view:
            for number, receipt in built_here(plan, pool):
                if number in chosen:
                    view.note(number, receipt)
                yield number, receipt
        raise StoppedError

    with pytest.raises(StoppedError):
        build_from(request_of(raw, out, format=storage, **OPTIONS), builder=some)


@pytest.mark.parametrize("storage", STORAGES)
def test_what_is_built_so_far_is_a_pack_to_look_at(storage: str, tmp_path: Path) -> None:
    raw, out = make_raw(tmp_path / "raw", {"train": 40, "val": 9}).path, tmp_path / "out"
    build_some(raw, out, {1, 3, 4}, storage)
    so_far = open_so_far(out)
    assert isinstance(so_far, PackSoFar)
    planned = Manifest.load(out / LIVE)
    assert 0 < so_far.manifest.rows < planned.rows
    report = make_report(out, rows=4)
    assert sum(split.rows for split in report.splits) == so_far.manifest.rows
    assert so_far.manifest.created == f"so far, {so_far.manifest.rows} of 49 rows" == report.manifest.created
    assert not (out / REMARKS).exists(), "remarks of a part would be taken for those of the pack"
    viewed = Viewed(Settings(out))
    keys = [entry[2] for entry in viewed.rows(viewed.query({}), 0, 100)["rows"]]
    assert len(keys) == so_far.manifest.rows
    good("sheet", out, "-o", tmp_path / "sheet.png")
    assert keys[0] in good("show", out, keys[0]).stdout
    good("report", out, "-o", tmp_path / "report.html", "--quiet")
    assert f"so far, {len(keys)} of 49 rows" in (tmp_path / "report.html").read_text()
    assert f"packer view {out}" in errors_of(1, "info", out)

    good("build", raw, out, "--size", "24x36", "--shard-size", "8KiB", "--format", storage)
    published = open_so_far(out)
    assert type(published) is Pack
    assert published.manifest.rows == 49
    labels = {published.stem(number): first_label(published, number) for number in range(len(published.table))}
    for number in range(3):
        assert first_label(so_far, number) == labels[so_far.stem(number)], "it can still be read"


def first_label(pack: Pack, number: int) -> bytes:
    return bytes(pack.shard(number).row(pack.manifest.fields[1], 0).tobytes())


def test_a_pack_without_a_finished_shard_says_so(tmp_path: Path) -> None:
    raw, out = make_raw(tmp_path / "raw", {"train": 5}).path, tmp_path / "out"
    build_some(raw, out, set(), "npy")
    with pytest.raises(NoPackError, match="is being built, and no shard is finished yet"):
        open_so_far(out)
