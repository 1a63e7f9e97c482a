"""The memory of a worker: the rows of a shard, and little more for each of them."""

from __future__ import annotations

import gc
import json
import tracemalloc
from contextlib import nullcontext

import pytest
from conftest import make_raw
from recipes import plain_recipe

from packer.pixels.resize import Geometry
from packer.plan.make_plan import make_plan
from packer.plan.request import request_of
from packer.recipe.cut import cut
from packer.recipe.piece import Piece
from packer.recipe.recipe import ROWS_OF_A_SHARD
from packer.recipe.row_ref import RowRef
from packer.sources.files.folder import FolderSource
from packer.workers.jobs import ShardJob
from packer.workers.tasks import TaskRunner
from readers.contract.json_lines import ROWS_OF_A_PART
from readers.contract.receipt import SUFFIX, Receipt

ROWS = 3 * ROWS_OF_A_PART
BYTES_OF_A_ROW = 2650
"""The limit for what a worker needs to know of a row of 8x8 while the garbage collector does not run: 2,540 are
measured, 600 of them for the counts of its cells, which are kept until the shard is written. It was 2,900."""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> ShardJob:
    """A shard of thousands of rows of 8x8."""
    tmp_path = tmp_path_factory.mktemp("job")
    raw = make_raw(tmp_path / "raw", {"train": 1}, height=8, width=8).path
    for kind in ("images", "masks"):
        first = raw / "train" / kind / "street_000.png"
        for number in range(1, ROWS):
            first.with_name(f"street_{number:06d}.png").hardlink_to(first)
    plan = make_plan(request_of(raw, tmp_path / "out", workers=1))
    (spec,) = plan.specs
    assert len(spec.pieces) == ROWS
    for folder in ("shards", "stamps"):
        (tmp_path / "out" / folder).mkdir(parents=True)
    return ShardJob(0, spec, FolderSource(raw).to_text(), tmp_path / "out")


@pytest.fixture(scope="module")
def runner(job: ShardJob) -> TaskRunner:
    """A worker, without its process."""
    runner = TaskRunner(lambda index: nullcontext(), lambda index: None, lambda: None, lambda: 1)
    runner.use_source(job.source)
    return runner


@pytest.fixture(scope="module")
def receipt(runner: TaskRunner, job: ShardJob) -> Receipt:
    """The receipt of the shard, which the worker has built."""
    receipt = job.read(runner.run(job.task()))
    assert receipt is not None
    return receipt


def test_a_receipt_of_many_parts_is_the_text_that_it_was(job: ShardJob, receipt: Receipt) -> None:
    assert job.out is not None
    text = (job.out / "shards" / f"{receipt.stem}{SUFFIX}").read_text()
    assert Receipt.from_text(text, "receipt").to_text() == text
    assert text == json.dumps(json.loads(text), indent=0, ensure_ascii=False) + "\n"


@pytest.mark.long
@pytest.mark.usefixtures("receipt")
def test_a_worker_needs_little_memory_for_a_row_besides_its_pixels(job: ShardJob, runner: TaskRunner) -> None:
    """The second time: libraries are loaded, and the memory of the columns is there."""
    assert job.out is not None
    for file in (job.out / "shards").iterdir():  # else the shard is taken as it is
        file.unlink()
    task = job.task()
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        runner.run(task)
        assert tracemalloc.get_traced_memory()[1] < ROWS * BYTES_OF_A_ROW
    finally:
        tracemalloc.stop()
        gc.enable()


@pytest.mark.parametrize("size", [(2, 2), None])
def test_shards_of_tiny_rows_have_a_limit_of_rows(size: tuple[int, int] | None) -> None:
    recipe = plain_recipe(Geometry(size, "stretch" if size else "native"), 1 << 30)
    pieces = [Piece(RowRef("all", f"{number:06d}", ("a", "b")), (2, 2)) for number in range(3 * ROWS_OF_A_SHARD)]
    lengths = list(map(len, cut(pieces, recipe)))
    assert sum(lengths) == len(pieces)
    assert len(lengths) > 1
    assert max(lengths) <= 2 * ROWS_OF_A_SHARD
