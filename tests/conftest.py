"""Fixtures that many tests use: small raw folders, packed once per format. Also the option --long and the markers."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from runpy import run_path
from typing import Any
from unittest import mock

import cv2
import numpy as np
import pytest
from click.testing import CliRunner, Result
from handmade import encoded_as
from hypothesis import settings
from numpy.typing import NDArray

os.environ["SEGPACK_FILE_AGE"] = "0"  # files of tests are believed at once, also by workers
import packer.workers.run
from packer.cli import main
from packer.workers.in_process import InProcess
from readers.contract.manifest import STORAGES

SHORT_EXAMPLES, LONG_EXAMPLES = 40, 80
# No deadline: a shared machine may pause at any moment.
settings.register_profile("short", deadline=None, max_examples=SHORT_EXAMPLES)
settings.register_profile("long", deadline=None, max_examples=LONG_EXAMPLES)
settings.load_profile("short")

REPO = Path(__file__).resolve().parent.parent
SHORT_CASES = REPO / "tests" / "short_cases.json"
"""The cases of each function that `make test` does not run whole. `tools/run checks.short_cases` chose them."""
SHARED = REPO.parent / "shared" / "data"
HANG = 120.0
"""Seconds after which a test stops waiting for a process or a thread. Long, because a loaded machine is slow."""
CASE = pytest.StashKey[int]()
"""The number of an item among the cases of its test."""
REQUIRE_SHARED = "SEGPACK_REQUIRE_SHARED"

COLOURS = np.array([[70, 130, 180], [128, 64, 128], [0, 0, 142], [220, 20, 60]], np.uint8)
NAMES = ("sky", "road", "car", "person")


@dataclass(frozen=True)
class RawFolder:
    """A raw folder with the pixels that it holds, by split and key."""

    path: Path
    images: dict[tuple[str, str], NDArray[np.uint8]]
    labels: dict[tuple[str, str], NDArray[np.uint8]]


def examples(count: int) -> int:
    """Return `count`, the examples of a slow property test in the default run, scaled up by as much as --long asks."""
    return count * settings().max_examples // SHORT_EXAMPLES


def scene(seed: int, height: int, width: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return an RGB image and the class index of each pixel."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, len(NAMES), (height // 4 + 1, width // 4 + 1), dtype=np.uint8)
    index = coarse.repeat(4, 0).repeat(4, 1)[:height, :width]
    return rng.integers(0, 256, (height, width, 3), dtype=np.uint8), np.ascontiguousarray(index)


def write_png(path: Path, pixels: NDArray[Any]) -> None:
    """Write RGB, gray or 16-bit pixels without conversion."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encoded_as(".png", pixels))


def opencv_rgb(data: bytes) -> NDArray[np.uint8]:
    """Decode with OpenCV, which also applies the EXIF orientation."""
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert pixels is not None
    return np.asarray(pixels[..., ::-1], np.uint8)


def make_raw(path: Path, splits: dict[str, int], height: int = 24, width: int = 36) -> RawFolder:
    """Write `split/images` and `split/masks` with a class_dict.csv. All files are PNG, so every pixel is known."""
    return make_varied_raw(path, {split: [(height, width)] * count for split, count in splits.items()})


def make_varied_raw(path: Path, sizes: dict[str, list[tuple[int, int]]]) -> RawFolder:
    """Write the same layout with pictures of these sizes."""
    images, labels = {}, {}
    for number, (split, shapes) in enumerate(sizes.items()):
        for row, (height, width) in enumerate(shapes):
            key = f"street_{row:03d}"
            image, index = scene(1000 * number + row, height, width)
            write_png(path / split / "images" / f"{key}.png", image)
            write_png(path / split / "masks" / f"{key}.png", COLOURS[index])
            images[split, key], labels[split, key] = image, index
    write_table(path / "class_dict.csv")
    return RawFolder(path, images, labels)


def write_table(path: Path) -> None:
    """Write a class table in the form that data sets ship."""
    rows = [f"{name},{r},{g},{b}" for name, (r, g, b) in zip(NAMES, COLOURS.tolist(), strict=True)]
    path.write_text("\n".join(["name,r,g,b", *rows]) + "\n")


def run(*arguments: object) -> Result:
    """Run the command line in this process. Our own errors end up in `exit_code` and `stderr`."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def good(*arguments: object) -> Result:
    """Run a command that must succeed."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result


def errors_of(code: int, *arguments: object) -> str:
    """Return the stderr of a command that must end with this exit code."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    return result.stderr


def json_of(*arguments: object) -> Any:
    """Return the document that a command prints."""
    return json.loads(run(*arguments).stdout)


def python(*arguments: object, code: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    """Return what another interpreter printed, which must end with this exit code."""
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == code, done.stderr
    return done


def ended() -> int:
    """Return the id of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def end_workers(batches: Any) -> None:
    """End the workers of a DataLoader's iterator after a batch raised an error. PyTorch waits 5 s for them."""
    for worker in getattr(batches, "_workers", ()):
        worker.terminate()


def pack(raw: Path, out: Path, *options: object) -> Path:
    """Pack without worker processes, which takes less time, and check that it succeeded."""
    return pack_from(None, out, *options, raw)


def pack_from(source: Path | None, out: Path, *options: object) -> Path:
    """Pack the rows of a container in the same way."""
    given = () if source is None else ("--from", source)
    with without_workers():
        good("build", "--quiet", *given, *options, out)
    return out


def run_script(code: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run code as a script in a folder. In this process, because another one would import PyTorch once more."""
    (folder / "script.py").write_text(code)
    monkeypatch.chdir(folder)
    run_path("script.py", run_name="__main__")


@contextmanager
def without_workers() -> Iterator[None]:
    """Build in this process. A worker process takes longer to start than to build a tiny pack."""
    with mock.patch.object(packer.workers.run, "POOL", InProcess):
        yield


@pytest.fixture(scope="module")
def in_process() -> Iterator[None]:
    """For modules that build often and are not about processes. `test_workers_in_process.py` shows equal packs."""
    with without_workers():
        yield


@pytest.fixture(scope="session")
def raw_folder(tmp_path_factory: pytest.TempPathFactory) -> RawFolder:
    """Two splits, small enough to look at, large enough for several shards."""
    return make_raw(tmp_path_factory.mktemp("raw") / "city", {"train": 23, "val": 9})


SMALL_SHARDS = ("--shard-size", "30KB")


@pytest.fixture(scope="session")
def two_nights(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A pack after the first night and after the second one, in which a row changed."""
    folder = tmp_path_factory.mktemp("nights")
    raw = make_raw(folder / "raw", {"train": 12})
    out = pack(raw.path, folder / "out", *SMALL_SHARDS)
    first = folder / "first"
    shutil.copytree(out, first)
    key = next(key for _, key in raw.images)
    write_png(raw.path / "train" / "images" / f"{key}.png", raw.images["train", key] ^ 255)
    return first, pack(raw.path, out, *SMALL_SHARDS)


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
    """`raw_folder` packed with `--labels index`."""
    out = tmp_path_factory.mktemp("packed_index") / storage
    return pack(raw_folder.path, out, "--format", storage, "--labels", "index", *SMALL_SHARDS)


VARIED = {
    "train": [(5, 9), (12, 7), (1, 1), (30, 20), (8, 8), (64, 33), (2, 40), (9, 5), (31, 31), (8, 8), (50, 3)],
    "val": [(16, 24), (16, 24), (16, 24), (7, 100), (100, 7)],
}
NATIVE = ("--size", "native", "--shard-size", "8KB")


@pytest.fixture(scope="session")
def varied_raw(tmp_path_factory: pytest.TempPathFactory) -> RawFolder:
    """Pictures of many sizes, in several shards. Some neighbours have the same size."""
    return make_varied_raw(tmp_path_factory.mktemp("varied") / "city", VARIED)


@pytest.fixture(scope="session", params=["onehot", "index"])
def native(
    storage: str, varied_raw: RawFolder, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Path:
    """`varied_raw`, packed at native sizes, with either form of labels."""
    out = tmp_path_factory.mktemp("native") / storage
    return pack(varied_raw.path, out, "--format", storage, "--labels", request.param, *NATIVE)


@pytest.fixture
def shared_data() -> Path:
    """The folder of real image/label sets next to the checkout. A test is skipped only if the folder is missing."""
    if not SHARED.is_dir():
        if os.environ.get(REQUIRE_SHARED):
            pytest.fail(f"{SHARED} is missing, but {REQUIRE_SHARED} is set")
        pytest.skip("the shared data is not next to this checkout")
    return SHARED


@pytest.fixture
def default_signals() -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt in this test, even if pytest runs under nohup or in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def calls_of(function: Callable[[], object]) -> int:
    """Return the number of calls of functions that a function makes: the same on every machine, other than its time."""
    count = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


@contextmanager
def ends_in_time() -> Iterator[None]:
    """Fail with TimeoutError if this takes as long as what hangs. It may take seconds on a slow machine."""

    def late(*arguments: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, HANG)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--long",
        action="store_true",
        help=f"also run the tests marked long, and property tests with {LONG_EXAMPLES} examples",
    )
    parser.addoption("--all-cases", action="store_true", help=f"also run the cases that {SHORT_CASES.name} leaves out")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "shared: needs the real image/label sets next to the checkout")
    config.addinivalue_line(
        "markers",
        "long(short=None, every=None): runs only with --long. `short` is a function of the test's parameters (a "
        "dictionary); cases for which it returns True also run without --long. With `every`, each n-th case does: "
        "of a product all values occur, if n does not divide the number of values that change fastest",
    )
    config.addinivalue_line("markers", "short: a long test checks the same and more; does not run with --long")
    if config.getoption("--long"):
        settings.load_profile("long")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect long tests, or with --long those that a long one repeats."""
    cases: Counter[str] = Counter()
    for item in items:
        name = item.nodeid.partition("[")[0]
        item.stash[CASE] = cases[name]
        cases[name] += 1
    if config.getoption("--long"):
        is_left_out = _is_short
    elif config.getoption("--all-cases"):
        is_left_out = _is_long
    else:
        others = _left_out(items)
        is_left_out = lambda item: _is_long(item) or item.nodeid in others  # noqa: E731
    config.hook.pytest_deselected(items=[item for item in items if is_left_out(item)])
    items[:] = [item for item in items if not is_left_out(item)]


def _left_out(items: Iterable[pytest.Item]) -> set[str]:
    """Return the names of the cases that `make test` leaves out. A function runs whole if the file does not name it, or
    names a case that is not there: the test has changed, or a case is asked for by its name."""
    kept: dict[str, dict[str, list[str]]] = json.loads(SHORT_CASES.read_text(encoding="ascii"))
    functions: dict[tuple[str, str], dict[str, str]] = {}
    for item in items:
        function, _, case = item.name.partition("[")
        functions.setdefault((item.path.name, function), {})[case.removesuffix("]")] = item.nodeid
    left_out: set[str] = set()
    for (file, function), cases in functions.items():
        chosen = kept.get(file, {}).get(function)
        if chosen is not None and set(chosen) <= set(cases):
            left_out.update(name for case, name in cases.items() if case not in chosen)
    return left_out


def _is_short(item: pytest.Item) -> bool:
    return item.get_closest_marker("short") is not None


def _is_long(item: pytest.Item) -> bool:
    return any(not _has_short_form(item, **mark.kwargs) for mark in item.iter_markers("long"))


def _has_short_form(item: pytest.Item, short: Any = None, every: int | None = None) -> bool:
    if every is not None:
        return item.stash[CASE] % every == 0
    return short is not None and bool(short(item.callspec.params))  # type: ignore[attr-defined]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Hide from the garbage collector what lives as long as the process: the modules, and thousands of tests."""
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let go of it: some libraries report what is alive when the process ends."""
    gc.unfreeze()


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    """Print how many tests used the shared data, and how many did not run, with the reasons."""
    terminalreporter.write_line(f"tests that used the shared data: {_shared_passed(terminalreporter)}")
    reasons = Counter(str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", []))
    if reasons:
        words = (f"{count}: {reason.removeprefix('Skipped: ')}" for reason, count in reasons.most_common())
        terminalreporter.write_line(f"{reasons.total()} tests did not run here. {'. '.join(words)}.")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a whole run in which no test used the shared data, if SEGPACK_REQUIRE_SHARED is set."""
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    whole_run = not session.config.option.keyword and session.config.args_source.name != "ARGS"
    if not os.environ.get(REQUIRE_SHARED) or not whole_run or hasattr(session.config, "workerinput"):
        return
    if exitstatus == 0 and _shared_passed(reporter) == 0:
        session.exitstatus = 1
        reporter.write_line(f"{REQUIRE_SHARED} is set, but no test used the shared data")


def _shared_passed(reporter: Any) -> int:
    return sum("shared" in report.keywords for report in reporter.stats.get("passed", []))
