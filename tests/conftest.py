"""What the tests share: small raw folders, packed once per format; and the proof that the shared data was used."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import settings
from numpy.typing import NDArray

from packer.cli import main
from readers.contract.manifest import STORAGES

settings.register_profile("patient", deadline=None)  # machines are shared: a slow moment is no failure
settings.load_profile("patient")

REPO = Path(__file__).resolve().parent.parent
SHARED = REPO.parent / "shared" / "data"
REQUIRE_SHARED = "SEGPACK_REQUIRE_SHARED"

COLOURS = np.array([[70, 130, 180], [128, 64, 128], [0, 0, 142], [220, 20, 60]], np.uint8)
NAMES = ("sky", "road", "car", "person")


@dataclass(frozen=True)
class RawFolder:
    """A raw folder with the pixels that it holds, by split and key."""

    path: Path
    images: dict[tuple[str, str], NDArray[np.uint8]]
    labels: dict[tuple[str, str], NDArray[np.uint8]]


def scene(seed: int, height: int, width: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """An RGB image and the class index of each of its pixels."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, len(NAMES), (height // 4 + 1, width // 4 + 1), dtype=np.uint8)
    index = coarse.repeat(4, 0).repeat(4, 1)[:height, :width]
    return rng.integers(0, 256, (height, width, 3), dtype=np.uint8), np.ascontiguousarray(index)


def write_png(path: Path, pixels: NDArray[Any]) -> None:
    """Write RGB, gray or 16-bit pixels as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ok, data = cv2.imencode(".png", pixels if pixels.ndim == 2 else np.ascontiguousarray(pixels[..., ::-1]))
    assert ok
    path.write_bytes(data.tobytes())


def opencv_rgb(data: bytes) -> NDArray[np.uint8]:
    """What OpenCV itself decodes, with EXIF applied by it."""
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert pixels is not None
    return np.asarray(pixels[..., ::-1], np.uint8)


def make_raw(path: Path, splits: dict[str, int], height: int = 24, width: int = 36) -> RawFolder:
    """`split/images` and `split/masks` with a class_dict.csv; all PNG, so that every pixel is known."""
    return make_varied_raw(path, {split: [(height, width)] * count for split, count in splits.items()})


def make_varied_raw(path: Path, sizes: dict[str, list[tuple[int, int]]]) -> RawFolder:
    """The same with pictures of these sizes."""
    images, labels = {}, {}
    for number, (split, ones) in enumerate(sizes.items()):
        for place, (height, width) in enumerate(ones):
            key = f"street_{place:03d}"
            image, index = scene(1000 * number + place, height, width)
            write_png(path / split / "images" / f"{key}.png", image)
            write_png(path / split / "masks" / f"{key}.png", COLOURS[index])
            images[split, key], labels[split, key] = image, index
    write_table(path / "class_dict.csv")
    return RawFolder(path, images, labels)


def write_table(path: Path) -> None:
    """A class table as people ship it."""
    rows = [f"{name},{r},{g},{b}" for name, (r, g, b) in zip(NAMES, COLOURS.tolist(), strict=True)]
    path.write_text("\n".join(["name,r,g,b", *rows]) + "\n")


def run(*arguments: object) -> Result:
    """Run the command line as a user would; errors of ours end up in `exit_code` and `stderr`."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def pack(raw: Path, out: Path, *options: object) -> Path:
    """Pack and insist that it went well."""
    result = run("build", "--quiet", *options, raw, out)
    assert result.exit_code == 0, result.stderr
    return out


@pytest.fixture(scope="session")
def raw_folder(tmp_path_factory: pytest.TempPathFactory) -> RawFolder:
    """Two splits, small enough to look at, large enough for several shards."""
    return make_raw(tmp_path_factory.mktemp("raw") / "city", {"train": 23, "val": 9})


SMALL_SHARDS = ("--shard-size", "30KB")


@pytest.fixture(scope="session", params=STORAGES)
def storage(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def packed(storage: str, raw_folder: RawFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`raw_folder`, packed as one-hot planes into several shards of this format."""
    out = tmp_path_factory.mktemp("packed") / storage
    return pack(raw_folder.path, out, "--format", storage, *SMALL_SHARDS)


@pytest.fixture(scope="session")
def packed_index(storage: str, raw_folder: RawFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with `--labels index`."""
    out = tmp_path_factory.mktemp("packed_index") / storage
    return pack(raw_folder.path, out, "--format", storage, "--labels", "index", *SMALL_SHARDS)


VARIED = {
    "train": [(5, 9), (12, 7), (1, 1), (30, 20), (8, 8), (64, 33), (2, 40), (9, 5), (31, 31), (8, 8), (50, 3)],
    "val": [(16, 24), (16, 24), (16, 24), (7, 100), (100, 7)],
}
NATIVE = ("--size", "native", "--shard-size", "8KB")


@pytest.fixture(scope="session")
def varied_raw(tmp_path_factory: pytest.TempPathFactory) -> RawFolder:
    """Pictures of many sizes, in several shards; some of the same size follow each other."""
    return make_varied_raw(tmp_path_factory.mktemp("varied") / "city", VARIED)


@pytest.fixture(scope="session", params=["onehot", "index"])
def native(
    storage: str, varied_raw: RawFolder, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Path:
    """`varied_raw`, packed as it is, with either form of labels."""
    out = tmp_path_factory.mktemp("native") / storage
    return pack(varied_raw.path, out, "--format", storage, "--labels", request.param, *NATIVE)


@pytest.fixture
def shared_data() -> Path:
    """The real image/label sets beside the checkout. Only where they are missing may a test be skipped."""
    if not SHARED.is_dir():
        if os.environ.get(REQUIRE_SHARED):
            pytest.fail(f"{SHARED} is missing, and {REQUIRE_SHARED} says that it is there")
        pytest.skip("the shared data is not beside this checkout")
    return SHARED


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "shared: needs the real image/label sets beside the checkout")


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    """Say how many tests used the shared data."""
    terminalreporter.write_line(f"tests that used the shared data: {_shared_passed(terminalreporter)}")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Where the shared data must be used, a run in which no test did so has failed."""
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    whole_run = not session.config.option.keyword and session.config.args_source.name != "ARGS"
    if not os.environ.get(REQUIRE_SHARED) or not whole_run or hasattr(session.config, "workerinput"):
        return
    if exitstatus == 0 and _shared_passed(reporter) == 0:
        session.exitstatus = 1
        reporter.write_line(f"{REQUIRE_SHARED} is set, and no test used the shared data")


def _shared_passed(reporter: Any) -> int:
    return sum("shared" in report.keywords for report in reporter.stats.get("passed", []))
