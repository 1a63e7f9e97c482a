"""A live pack: a training begins at once, and the pack that it reads is the one of `packer build`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import HANG, RawFolder, good, make_raw, pack

from packer.cli.live import GROUP, LOWER
from packer.plan.sample import SAMPLE_SIZE, spread_indices
from readers import ReadError, RequestError, Window, open_dataset
from readers.contract.live import BUILDER
from readers.contract.manifest import GENERATIONS, LIVE, STORAGES, Manifest
from readers.live_pack import LivePack, builds

OPTIONS: dict[str, Any] = {"size": (24, 36), "shard_size": "8KiB", "workers": 2}
FLAGS = ("--size", "24x36", "--shard-size", "8KiB")


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> RawFolder:
    return make_raw(tmp_path_factory.mktemp("live") / "raw", {"train": 40, "val": 9})


def tree(out: Path) -> dict[str, bytes]:
    """The bytes of all files that readers of a pack read."""
    paths = [*out.glob("shards/*"), *out.glob("cells/*"), *(out / GENERATIONS).glob("shards-*")]
    return {str(path.relative_to(out)): path.read_bytes() for path in paths}


def wait_until_published(out: Path, generation: int = 1) -> Manifest:
    until = time.monotonic() + HANG
    while time.monotonic() < until:
        if (out / "manifest.json").exists() and not builds(out / LIVE):
            manifest = Manifest.load(out)
            if manifest.generation == generation and (out / "packer.toml").exists():
                return manifest
        time.sleep(0.05)
    raise AssertionError("the pack was not published")


def rows_of(batches: Any) -> list[bytes]:
    return sorted(image.tobytes() + label.tobytes() for batch in batches for image, label in zip(*batch, strict=True))


@pytest.mark.parametrize("storage", STORAGES)
def test_the_first_epoch_has_every_row_and_leaves_the_pack_of_a_build(
    storage: str, raw: RawFolder, tmp_path: Path
) -> None:
    train = open_dataset(raw.path, "train", pack=tmp_path / "live", options={"format": storage}, **OPTIONS)
    loader = train.loader(4, shuffle=Window(3, 2), output="numpy")
    first = rows_of(loader)
    published = wait_until_published(tmp_path / "live")
    built = pack(raw.path, tmp_path / "built", "--format", storage, *FLAGS)
    again = open_dataset(built, "train").loader(4, shuffle=Window(3, 2), output="numpy")
    assert first == rows_of(again)
    assert rows_of(loader) == first, "the second epoch of the same data set"
    assert published.same_data(Manifest.load(built))
    assert tree(tmp_path / "live") == tree(built)
    good("verify", tmp_path / "live")
    later = open_dataset(raw.path, "train", pack=tmp_path / "live", options={"format": storage}, **OPTIONS)
    assert not isinstance(later._pack, LivePack), "nothing was left to do"
    loader.order.set_epoch(0)
    later_loader = later.loader(4, shuffle=Window(3, 2), output="numpy")
    later_loader.load_state_dict(loader.state_dict())


@pytest.mark.parametrize("shard_size", ["64KiB", pytest.param("1B", id="a shard without rows")])
def test_a_bad_pair_is_named_and_another_row_stands_for_it(shard_size: str, tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 40})
    number = min(set(range(40)) - set(spread_indices(40, SAMPLE_SIZE)))  # the plan does not decode it
    broken = raw.path / "train" / "images" / f"street_{number:03}.png"
    intact = broken.read_bytes()
    broken.write_bytes(intact[: len(intact) // 2] + bytes(50) + intact[len(intact) // 2 + 50 :])
    options = {**OPTIONS, "on_bad": "skip", "shard_size": shard_size}
    train = open_dataset(raw.path, pack=tmp_path / "out", **options)
    with pytest.warns(RuntimeWarning, match=f"{broken.stem}: .*another row stands for it"):
        images = [image.tobytes() for image, _ in train.loader(4, output="numpy") for image in image]
    assert (len(train), len(images), len(set(images))) == (40, 40, 39)
    assert wait_until_published(tmp_path / "out").rows == 39
    assert len(open_dataset(raw.path, pack=tmp_path / "out", **options)) == 39


def test_a_builder_that_was_killed_is_replaced(raw: RawFolder, tmp_path: Path) -> None:
    out = tmp_path / "out"
    train = open_dataset(raw.path, "train", pack=out, **{**OPTIONS, "workers": 1})
    batches = iter(train.loader(1, output="numpy"))
    next(batches)
    kill_builder(out)
    assert 1 + sum(1 for _ in batches) == 40
    wait_until_published(out)
    assert tree(out) == tree(pack(raw.path, tmp_path / "built", *FLAGS))


def test_a_reader_that_did_not_wait_goes_on_with_the_next_builder(raw: RawFolder, tmp_path: Path) -> None:
    """Another reader has started it: the first one saw no builder missing."""
    out, options = tmp_path / "out", {**OPTIONS, "workers": 1}
    first = open_dataset(raw.path, "train", pack=out, **options)
    next(iter(first.loader(1, output="numpy")))
    kill_builder(out)
    second = open_dataset(raw.path, "train", pack=out, **options)
    rows = rows_of(second.loader(1, output="numpy"))
    assert rows_of(first.loader(1, output="numpy")) == rows


def kill_builder(out: Path) -> None:
    """Kill the process that builds, and its workers."""
    mine = [path for path in Path("/proc").glob("[0-9]*") if asks_for(path, str(out))]
    for path in mine:
        os.kill(int(path.name), signal.SIGKILL)


def asks_for(process: Path, out: str) -> bool:
    """Return whether a process has the lock file of the builder open."""
    try:
        opened = [str(file.readlink()) for file in (process / "fd").iterdir()]
        command = (process / "cmdline").read_bytes()
    except OSError:
        return False
    return f"{out}/{LIVE}/{BUILDER}" in opened and b"packer.cli.live" in command


def test_two_programs_share_a_builder_and_it_ends_after_them(raw: RawFolder, tmp_path: Path) -> None:
    out, code = tmp_path / "out", "import sys; from readers import open_dataset, Window\n"
    code += "d = open_dataset(sys.argv[1], 'train', pack=sys.argv[2], size=(24, 36), shard_size='8KiB')\n"
    code += "loader = d.loader(2, rank=int(sys.argv[3]), world_size=2, shuffle=Window(3, 2))\n"
    code += "print(sum(len(images) for images, _ in loader))"
    commands = [[sys.executable, "-c", code, str(raw.path), str(out), rank] for rank in "01"]
    ranks = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    assert [rank.communicate(timeout=HANG)[0] for rank in ranks] == ["20\n", "20\n"]
    until = time.monotonic() + HANG
    while builds(out / LIVE) and time.monotonic() < until:
        time.sleep(0.05)
    assert not builds(out / LIVE)


def test_a_build_with_other_options_is_not_joined(raw: RawFolder, tmp_path: Path) -> None:
    first = open_dataset(raw.path, "train", pack=tmp_path / "out", **{**OPTIONS, "workers": 1})
    with pytest.raises(ReadError, match="with other options"):
        open_dataset(raw.path, "train", pack=tmp_path / "out", **{**OPTIONS, "size": (12, 18)})
    assert len(first) == 40


def test_options_that_are_wrong_are_named(raw: RawFolder, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="--size"):
        open_dataset(raw.path, pack=tmp_path / "out", size="large")
    with pytest.raises(ReadError, match="cannot be built: build options: 'shapes' is not known"):
        open_dataset(raw.path, pack=tmp_path / "out", shapes="large")
    with pytest.raises(TypeError, match="options of a build need pack="):
        open_dataset(raw.path, size="24x36")
    with pytest.raises(RequestError, match="generation= is for packs that are built"):
        open_dataset(raw.path, pack=tmp_path / "out", generation=2)
    with pytest.raises(RequestError, match="a folder of this machine"):
        open_dataset(raw.path, pack="s3://bucket/out", cache=tmp_path)
    with pytest.raises(RequestError, match="is not a text"):
        open_dataset(raw.path, pack=tmp_path / "out", size={1, 2})


def test_statistics_come_from_what_is_built(raw: RawFolder, tmp_path: Path) -> None:
    train = open_dataset(raw.path, "train", pack=tmp_path / "out", **OPTIONS)
    with pytest.warns(RuntimeWarning, match="is being built; mean, deviation and weights count"):
        means = train.mean
    wait_until_published(tmp_path / "out")
    exact = open_dataset(tmp_path / "out", "train").mean
    np.testing.assert_allclose(means, exact, atol=0.05)


def test_workers_of_a_dataloader_open_it_again(raw: RawFolder, tmp_path: Path) -> None:
    from torch.utils.data import DataLoader

    train = open_dataset(raw.path, "train", pack=tmp_path / "out", label="index", **OPTIONS)
    for context in ("fork", "spawn"):
        loader = DataLoader(train, 8, num_workers=1, multiprocessing_context=context)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # PyTorch forks a process with threads
            assert sum(len(images) for images, _ in loader) == 40


@pytest.mark.skipif(not GROUP.exists(), reason="sessions do not share cores here")
def test_the_session_of_a_builder_leaves_cores_to_the_training() -> None:
    code = "from packer.cli.live import GROUP, lower_priority; lower_priority(); print(GROUP.read_text())"
    lower = [sys.executable, "-c", code]
    done = subprocess.run(lower, capture_output=True, text=True, check=True, start_new_session=True)
    assert done.stdout.split()[-1] == str(min(19, os.nice(0) + LOWER))
    before = GROUP.read_text()
    subprocess.run(lower, capture_output=True, check=True)
    assert GROUP.read_text() == before, "the session of another program stays as it is"
