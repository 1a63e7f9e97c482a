"""Golden files: packs of this format version open in every release, and the same raw files give the same bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import run
from golden import (
    GOLDEN,
    PACKS,
    SPLITS,
    VOLUMES,
    golden_classes,
    golden_image,
    golden_label,
    golden_volume,
    request,
    volumes_request,
)

from packer.building import build
from packer.plan.make_plan import make_plan
from packer.workers.run import open_pool
from readers import open_dataset
from readers.contract.manifest import Manifest

pytestmark = pytest.mark.usefixtures("in_process")


@pytest.mark.parametrize("name", PACKS)
def test_a_golden_pack_opens_and_holds_what_the_formula_gives(name: str) -> None:
    for split, count in SPLITS.items():
        dataset = open_dataset(GOLDEN / name, split=split, label="index")
        assert len(dataset) == count
        assert dataset.manifest.splits[0].shards > 1
        for row, (image, label) in enumerate(dataset):
            number = int(dataset.key(row))
            index = golden_label(number)
            assert np.array_equal(image.numpy().transpose(1, 2, 0), golden_image(number))
            assert np.array_equal(label.numpy(), np.where(index == 2, 255, index))


def test_the_golden_volumes_are_what_the_formula_gives() -> None:
    dataset = open_dataset(GOLDEN / VOLUMES)
    assert [dataset.key(row) for row in range(2)] == ["0", "1"]
    assert dataset.manifest.fields[0].tile == (2, 16, 16)
    assert dataset.manifest.splits[0].shards == 2
    for row, (image, label) in enumerate(dataset):
        assert np.array_equal(image[0], golden_volume(row))
        assert np.array_equal(label, golden_classes(row))


@pytest.mark.parametrize("name", [*PACKS, VOLUMES])
def test_a_golden_pack_passes_verify(name: str) -> None:
    assert run("verify", GOLDEN / name).exit_code == 0


@pytest.mark.parametrize("name", [*PACKS, VOLUMES])
def test_the_same_raw_files_give_the_golden_bytes(name: str, tmp_path: Path) -> None:
    if name == VOLUMES:
        plan = make_plan(volumes_request(tmp_path / "raw", tmp_path / "out"))
    else:
        plan = make_plan(request(GOLDEN / "raw", tmp_path / "out", *name.split("-")))
    golden = Manifest.load(GOLDEN / name)
    if list(plan.recipe.tools) != golden.recipe["tools"]:
        pytest.skip(f"made with {golden.recipe['tools']}, here are {list(plan.recipe.tools)}")
    with open_pool(1, plan.request.running.task_timeout) as pool:
        build(plan, lambda done: None, pool)
    files = [path.relative_to(GOLDEN / name) for path in (GOLDEN / name).rglob("*") if path.is_file()]
    data = [path for path in files if path.parts[0] == "shards" or path.suffix == ".npy"]
    assert len(data) >= 1 + 3 * 2
    for path in data:
        assert (tmp_path / "out" / path).read_bytes() == (GOLDEN / name / path).read_bytes(), path
