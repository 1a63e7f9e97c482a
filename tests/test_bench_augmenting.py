"""The bench of augmentation runs in its short form, and refuses batches that are wrong."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from bench.augmenting import check_pictures
from bench.augmenting_peers import BATCH, WINDOW, draws
from bench.augmenting_rows import CLASSES, HEIGHT, WIDTH
from bench.streams import Stream, table, take_turns
from conftest import REPO
from program import command


def test_a_stream_that_fails_or_is_wrong_stays_in_the_table() -> None:
    def endless(pixels: int) -> Iterator[Any]:
        while True:
            yield torch.zeros(2, pixels), torch.zeros(2)

    def check(images: torch.Tensor, labels: torch.Tensor) -> str:
        return "" if images.shape[1] == 3 else "is too small"

    def missing() -> Iterator[Any]:
        raise ModuleNotFoundError("No module named 'tape'")

    makers = {"one": lambda: endless(3), "two": lambda: endless(3), "small": lambda: endless(2), "tape": missing}
    streams = [Stream(name, make, "one", 0.5) for name, make in makers.items()]
    take_turns(streams, check, rounds=2, seconds=0.01)
    lines = {name: rest for name, *rest in table(streams)}
    assert [len(stream.rates) for stream in streams] == [2, 2, 0, 0]
    assert lines["one"][3] == "1.00"
    assert float(lines["two"][3]) > 0
    assert lines["small"][-1] == "is too small"
    assert lines["tape"][-1] == "ModuleNotFoundError: No module named 'tape'"


def test_wrong_batches_are_found() -> None:
    labels = torch.arange(BATCH * WINDOW[0] * WINDOW[1]).view(BATCH, *WINDOW) // 999 % CLASSES
    images = (labels[:, None] * 20).expand(-1, 3, -1, -1)
    assert check_pictures(images, labels) == ""
    assert "correlations" in check_pictures(images, labels.flip(2))
    assert "no row has: [" in check_pictures(images, labels.clone().fill_(CLASSES))
    assert "delivers (8, 3, 512, 1023)" in check_pictures(images[..., 1:], labels)


def test_draws_are_parts_of_their_rows() -> None:
    stream = draws(5)
    drawn = [next(stream) for _ in range(2000)]
    assert {draw.row for draw in drawn} == set(range(5))
    assert min(min(draw.top, draw.left) for draw in drawn) >= 0
    assert max(draw.top + draw.height for draw in drawn) <= HEIGHT
    assert max(draw.left + draw.width for draw in drawn) <= WIDTH
    scales = [WINDOW[0] / draw.height for draw in drawn]
    assert (min(scales), max(scales)) == pytest.approx((0.5, 2), abs=0.02)


@pytest.mark.long
def test_our_recipe_is_measured(tmp_path: Path) -> None:
    options = ("--rows", "2", "--rounds", "1", "--seconds", "0.01", "--keep", str(tmp_path), "--only", "OpenCV;Kornia")
    done = subprocess.run(command("bench.augmenting", *options), capture_output=True, text=True, check=False, cwd=REPO)
    assert done.returncode == 0, done.stderr
    for name in ("crop, flip", "scale, crop, flip, colour", "OpenCV by hand, 2 threads"):
        assert re.search(rf"^{name} +\d+\.\d", done.stdout, re.MULTILINE), done.stdout
    assert re.search(
        r"^Kornia, on the batch +(\d|- +ModuleNotFoundError: No module named 'kornia')", done.stdout, re.MULTILINE
    )
