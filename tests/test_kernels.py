"""The kernels are compiled, give the same bytes as the Python code that stands in for them, and refuse bad buffers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from conftest import HANG, REPO, examples, python
from drills.kernel_cases import CASES
from drills.kernels import compile_kernels, environment
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from program import command

from packer.cli.version import KERNELS
from readers import windows as windows_module
from readers.contract import onehot
from readers.contract.kernels import VARIABLE, kernel, kernels_in_use
from readers.contract.onehot import Labels, expand
from readers.contract.tile_grid import Area, index_of
from readers.formats import shard as shard_module
from readers.formats import unpack as unpack_module
from readers.formats.column import Column
from readers.formats.shard import Shard, gather
from readers.formats.unpack import split
from readers.windows import BatchWindows, HowToCopy, copy_pixels

onehot_kernel, gather_kernel, planes_kernel, window_kernel = (
    kernel(f"readers.{name}_kernel") for name in ("contract.onehot", "formats.gather", "formats.planes", "window")
)
compiles_itself = pytest.mark.skipif(VARIABLE in os.environ, reason=f"is the same for every {VARIABLE}")
needs_kernels = pytest.mark.skipif(onehot_kernel is None, reason="the kernels are turned off or not compiled")


def test_every_c_file_is_a_known_kernel() -> None:
    sources = [path for room in ("packer", "readers") for path in (REPO / room).rglob("*.c")]
    names = {path.relative_to(REPO).with_suffix("").as_posix().replace("/", ".") for path in sources}
    assert names == set(KERNELS)
    page = (REPO / "docs" / "guide" / "python.md").read_text()
    assert [path.name for path in sources if path.name not in page] == []
    assert all(len(path.read_text().splitlines()) <= 170 for path in sources)


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_every_kernel_is_compiled() -> None:
    if os.environ.get(VARIABLE) == "0":
        assert kernels_in_use(KERNELS).startswith("none")
    else:
        assert kernels_in_use(KERNELS) in ("AVX2", "plain C")


@pytest.mark.long
@compiles_itself
@pytest.mark.parametrize("compiler", ["gcc", "clang", "aarch64-linux-gnu-gcc"])
def test_compilers_do_not_warn(compiler: str) -> None:
    headers = Path(sysconfig.get_path("include"))
    if not shutil.which(compiler) or not (headers / "Python.h").exists():
        pytest.skip(f"needs {compiler} and the headers of Python")
    sources = [REPO / f"{name.replace('.', '/')}.c" for name in KERNELS]
    flags = [
        "-fsyntax-only",
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-Wno-unused-parameter",
    ]
    if sys.version_info >= (3, 11):
        flags.append("-DPy_LIMITED_API=0x030B0000")
    include = [f"-isystem{headers}", f"-I{REPO / 'readers/contract'}"]
    done = subprocess.run([compiler, *flags, *include, *sources], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("chosen", "shown"), [("0", "none"), pytest.param("plain", "plain C", marks=needs_kernels)])
def test_the_environment_turns_kernels_off(chosen: str, shown: str) -> None:
    done = python("-m", "packer", "--version", env={**os.environ, VARIABLE: chosen})
    assert f"kernels: {shown}" in done.stdout


def padded(shape: tuple[int, ...], gap: int, dtype: str) -> NDArray[np.uint8]:
    """Return an array whose lines have a gap behind them, full of a value that must stay."""
    whole = np.full((*shape[:-1], shape[-1] + gap), 77, dtype)
    return whole[..., : shape[-1]]


@needs_kernels
@given(st.data())
def test_planes_are_equal_with_and_without_the_kernel(data: st.DataObject) -> None:
    height, width = data.draw(st.integers(0, 9)), data.draw(st.integers(0, 100))
    dtype = data.draw(st.sampled_from(["uint8", "uint16"]))
    classes = data.draw(st.integers(1, 40) | st.integers(250, 255 if dtype == "uint8" else 300))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    index: Labels = padded((height, width), data.draw(st.integers(0, 3)), dtype)
    index[...] = rng.integers(0, min(classes + 2, np.iinfo(dtype).max), (height, width))
    ours = padded((classes, height, width), data.draw(st.integers(0, 3)), "uint8")
    expand(index, classes, ours)
    with mock.patch.object(onehot, "KERNEL", None):
        assert np.array_equal(ours, expand(index, classes))
    assert ours.base is None or (ours.base[..., width:] == 77).all()


def test_numbers_in_another_byte_order_are_converted() -> None:
    numbers = np.array([[1, 2], [0, 258]], np.uint16)
    assert np.array_equal(expand(numbers.astype(">u2"), 3), expand(numbers, 3))
    for other in (">u2", "float16"):
        out = np.zeros((2, 2), other)
        copy_pixels(out, numbers, True)
        assert np.array_equal(out, numbers[:, ::-1])


ROWS, TABLE, COUNTS = np.zeros(1, np.int64), np.zeros(256, np.uint8), np.zeros(256, np.int64)
MEMORY = np.zeros((1, 64), np.uint8)


@needs_kernels
@pytest.mark.parametrize(
    ("rows", "out"),
    [
        (ROWS.astype(">i8"), MEMORY.copy()),
        (ROWS.astype(np.float64), MEMORY.copy()),
        (np.frombuffer(bytes(16), np.int64, 1, 3), MEMORY.copy()),
        (ROWS, MEMORY),
        (ROWS, ROWS.view(np.uint8)[None]),
        (np.zeros(3, np.int64), np.lib.stride_tricks.as_strided(MEMORY.copy(), (3, 20), (19, 1))),
    ],
    ids=["byte order", "floats", "unaligned", "into itself", "into its rows", "overlapping lines"],
)
def test_arrays_that_would_mislead_a_kernel_are_refused(rows: NDArray[Any], out: NDArray[np.uint8]) -> None:
    sample_kernel = kernel("packer.pixels.sample_kernel")
    assert sample_kernel is not None
    columns = np.zeros(out.shape[1], np.int64)
    with pytest.raises(ValueError, match=r"expected . axes of native numbers|shares memory"):
        sample_kernel.sample(MEMORY, TABLE, rows, columns, out, COUNTS)


@needs_kernels
def test_empty_arrays_of_enormous_length_take_no_time() -> None:
    distinct_kernel = kernel("packer.pixels.distinct_kernel")
    assert distinct_kernel is not None
    distinct_kernel.numbers(np.zeros((2**40, 0), np.uint8), np.zeros(256, np.uint8))


@given(st.data())
def test_rows_are_equal_with_and_without_the_kernel(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 300) | st.integers(16_000, 70_000) | st.integers(300_000, 300_100))
    count = data.draw(st.integers(1, 5))
    targets = sorted(data.draw(st.permutations(range(count + 1)))[:count])
    first = data.draw(st.integers(0, count))
    groups: list[Any] = []
    for part in filter(None, (targets[:first], targets[first:])):
        file = np.random.default_rng(size + len(part)).integers(0, 256, 5 * size + 70, dtype=np.uint8)
        column = Column(Path("shard"), np.dtype("u1"), (size,), np.array([data.draw(st.integers(0, 70))]), 5)
        shard = Shard.__new__(Shard)
        shard._columns, shard._maps = {"image": column}, {column.path: file}
        rows = data.draw(st.lists(st.integers(0, 4), min_size=len(part), max_size=len(part)))
        groups.append((shard, part, rows))
    results = []
    for used in (gather_kernel, None):
        out = np.full((count + 1, size), 77, np.uint8)
        with mock.patch.object(shard_module, "KERNEL", used):
            gather("image", groups, out)
        results.append(out)
    assert np.array_equal(results[0], results[1])
    assert (results[0][list(set(range(count + 1)) - set(targets))] == 77).all()


@pytest.mark.skipif(gather_kernel is None or window_kernel is None, reason="needs the kernels")
@pytest.mark.parametrize("target", [0, 33])
@pytest.mark.parametrize("offset", [0, 16, 63, 2047, 2048, 4080, 4095])
def test_copies_past_the_caches_do_not_depend_on_addresses(offset: int, target: int) -> None:
    assert gather_kernel is not None
    assert window_kernel is not None
    dice = np.random.default_rng(offset + target)
    source = dice.integers(0, 256, (4 << 20) + 4096, np.uint8)[offset:]
    memory = np.zeros((3 << 20) + 64, np.uint8)[target:]
    for rows, size in ((3, 1 << 20), (40, 30_001)):
        out = memory[: rows * size].reshape(rows, size)
        starts = [number * size for number in range(rows)]
        gather_kernel.gather([(source, starts, list(range(rows)))], out)
        assert (out == source[: rows * size].reshape(rows, size)).all()
    picture = source[: 3 * 1024 * 1024].reshape(3, 1024, 1024)
    for width in (31, 300, 500, 512):
        window = picture[:, 100:612, 77 : 77 + width]
        copied = memory[: window.size].reshape(window.shape)
        for flip in (False, True):
            window_kernel.copy(window, copied, flip)
            assert (copied == (window[..., ::-1] if flip else window)).all()


@pytest.mark.skipif(window_kernel is None, reason="needs the kernel")
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
@pytest.mark.parametrize("width", [1, 15, 16, 17, 31, 32, 33, 47, 64, 128, 200])
def test_lines_of_large_windows_are_mirrored(width: int, dtype: str) -> None:
    assert window_kernel is not None
    source = np.random.default_rng(width).integers(0, 1 << 15, (2, 1200, 260)).astype(dtype)
    for height in (1, 1000):
        window = source[:, 100 : 100 + height, 30 : 30 + width]
        copied = np.zeros(window.shape, dtype)
        for flip in range(8):
            window_kernel.copy(window, copied, flip)
            assert np.array_equal(copied, windows_module.flipped(window, flip))


@needs_kernels
@pytest.mark.parametrize("size", [8, 1 << 20])
@pytest.mark.parametrize(("start", "target"), [(-1, 0), (1, 0), (0, -1), (0, 1), (2**62, 0), (0, 2**62)])
def test_rows_outside_of_the_file_or_the_batch_are_refused(start: int, target: int, size: int) -> None:
    assert gather_kernel is not None
    data, out = np.zeros(size, np.uint8), np.zeros((1, size), np.uint8)
    gather_kernel.gather([(data, [0], [0])], out)
    with pytest.raises(ValueError, match="lies outside"):
        gather_kernel.gather([(data, [start], [target])], out)


@needs_kernels
@pytest.mark.parametrize(
    ("starts", "targets", "error"),
    [
        ([0], [], ValueError),
        ([0, 0], [0, 0], ValueError),  # more rows than the batch has
        ([0.0], [0], TypeError),
        (["0"], [0], TypeError),
        ([2**63], [0], OverflowError),
        ((0,), [0], TypeError),
    ],
)
def test_bad_lists_of_rows_are_refused(starts: Any, targets: Any, error: type[Exception]) -> None:
    assert gather_kernel is not None
    with pytest.raises(error):
        gather_kernel.gather([(np.zeros(8, np.uint8), starts, targets)], np.zeros((1, 8), np.uint8))


@given(st.data())
def test_pixels_are_split_into_the_same_planes_with_and_without_the_kernel(data: st.DataObject) -> None:
    height, width = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 200) | st.sampled_from([33_600, 33_601]))
    start, gap = data.draw(st.integers(0, 65)), data.draw(st.integers(0, 3))
    stored = np.random.default_rng(width).integers(0, 256, start + height * (3 * width + gap), dtype=np.uint8)
    pixels = stored[start:].reshape(height, 3 * width + gap)[:, : 3 * width].reshape(height, width, 3)
    memory = np.full(start + 3 * height * (width + gap), 77, np.uint8)
    ours = memory[start:].reshape(3, height, width + gap)[..., :width]
    split(pixels, ours)
    with mock.patch.object(unpack_module, "KERNEL", None):
        split(pixels, theirs := np.empty_like(ours))
    assert np.array_equal(ours, theirs)
    ours[...] = 77
    assert (memory == 77).all()


PIXELS, PLANES = np.zeros((4, 5, 3), np.uint8), np.zeros((3, 4, 5), np.uint8)
LABEL, ONEHOT = np.zeros((2, 2), np.uint8), np.zeros((2, 2, 2), np.uint8)
REFUSED: list[tuple[Any, str, tuple[Any, ...], str]] = [
    (onehot_kernel, "expand", (np.zeros(4, np.uint8), ONEHOT), "index: expected 2 axes"),
    (onehot_kernel, "expand", (LABEL.astype(np.int64), ONEHOT), "index: expected 2 axes"),
    (onehot_kernel, "expand", (np.zeros((2, 4), np.uint8)[:, ::2], ONEHOT), "without gaps"),
    (onehot_kernel, "expand", (LABEL[::-1], ONEHOT), "without gaps"),
    (onehot_kernel, "expand", (LABEL, np.zeros((2, 2, 3), np.uint8)), "not as large"),
    (onehot_kernel, "expand", (LABEL, ONEHOT.astype(np.float32)), "out: expected 3 axes"),
    (onehot_kernel, "expand", (LABEL, memoryview(bytes(8)).cast("B", (2, 2, 2))), "read-only|not writable"),
    (planes_kernel, "split", (PIXELS[0], PLANES), "pixels: expected 3 axes"),
    (planes_kernel, "split", (PIXELS.astype(np.uint16), PLANES), "pixels: expected 3 axes"),
    (planes_kernel, "split", (PIXELS[..., ::-1], PLANES), "without gaps"),
    (planes_kernel, "split", (PIXELS[::-1], PLANES), "without gaps"),
    (planes_kernel, "split", (np.zeros((4, 5, 4), np.uint8), np.zeros((4, 4, 5), np.uint8)), "expected 3 planes"),
    (planes_kernel, "split", (np.zeros((4, 5, 4), np.uint8)[..., :3], PLANES), "no gaps between them"),
    (planes_kernel, "split", (PIXELS, PLANES[:, :3]), "as large"),
    (planes_kernel, "split", (PIXELS, PLANES[..., :4]), "as large"),
    (planes_kernel, "split", (PIXELS, PLANES[:2]), "expected 3 planes"),
    (planes_kernel, "split", (PIXELS, np.zeros((4, 5, 3), np.uint8).transpose(2, 0, 1)), "without gaps"),
    (planes_kernel, "split", (PLANES.reshape(4, 5, 3), PLANES), "shares memory"),
    (window_kernel, "copy", (ONEHOT, np.zeros((2, 2, 3), np.uint8), False), "not as large"),
    (window_kernel, "copy", (ONEHOT, ONEHOT.astype(np.uint16), False), "not as large"),
]


@needs_kernels
@pytest.mark.parametrize("case", range(len(REFUSED)), ids=[f"{name}: {words}" for _, name, _, words in REFUSED])
def test_buffers_that_do_not_fit_a_kernel_are_refused(case: int) -> None:
    loaded, name, arguments, words = REFUSED[case]
    with pytest.raises((ValueError, BufferError), match=words):
        getattr(loaded, name)(*arguments)


@given(st.data())
def test_windows_are_equal_with_and_without_the_kernel(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(["uint8", "uint16", "float16", "float32"]))
    large = data.draw(st.booleans())
    height, width = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9)) + 130 * large
    planes = data.draw(st.sampled_from([(), (1,), (3,), (300,)]))
    pixels = np.random.default_rng(height).integers(0, 256, (*planes, height + 4, width + 4))
    window = pixels.astype(dtype)[..., 2 : 2 + height, 3 : 3 + width]
    flip = data.draw(st.booleans())
    gap = data.draw(st.integers(0, 3))
    out = padded((*planes, height, width), gap, dtype)
    copy_pixels(out, window, flip)
    assert np.array_equal(out, window[..., ::-1] if flip else window)
    assert out.base is not None
    assert (out.base[..., width:] == 77).all()


def part_of(pixels: NDArray[Any], part: Area) -> NDArray[Any]:
    window: NDArray[Any] = pixels[index_of(part)]
    return window


@given(st.data())
def test_a_batch_of_windows_is_equal_with_and_without_the_kernel(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(["uint8", "uint16", "float32"]))
    lines, columns = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 40) | st.integers(60_000, 60_010))
    planes = data.draw(st.sampled_from([(), (1,), (3,)]))
    count = data.draw(st.integers(1, 5))
    flips = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    pictures, views = [], []
    for target in range(count):
        size = (lines + data.draw(st.integers(-1, 3)) or 1, columns + data.draw(st.integers(-1, 3)) or 1)
        start = data.draw(st.integers(0, 3))
        stored = np.random.default_rng(target).integers(0, 256, (*planes, *size)).astype(dtype)
        file = np.concatenate([np.zeros(start, np.uint8), stored.reshape(-1).view(np.uint8)])
        pictures.append((target, file, start, size))
        views.append(stored)
    starts = [
        [data.draw(st.integers(0, max(0, picture[3][axis] - side))) for axis, side in enumerate((lines, columns))]
        for picture in pictures
    ]
    windows = BatchWindows((lines, columns), 0, starts, flips)
    ours, theirs = (np.full((count, *planes, lines, columns), 77, dtype) for _ in range(2))
    copied = windows.copy_all(pictures, ours, HowToCopy())
    fits = all(size >= (lines, columns) and size[1] >= columns for _, _, _, size in pictures)
    assert copied == (window_kernel is not None and fits and dtype != "float32")
    with mock.patch.object(windows_module, "KERNEL", None):
        for target, view in enumerate(views):
            read = partial(part_of, view)
            windows.copy(target, view.shape[-2:], read, theirs[target], HowToCopy(fill=0))
    assert np.array_equal(ours, theirs if copied else np.full_like(ours, 77))


@needs_kernels
@pytest.mark.parametrize("wrong", range(6))
def test_windows_outside_of_the_picture_or_the_file_are_refused(wrong: int) -> None:
    assert window_kernel is not None
    data, out = np.zeros(12, np.uint8), np.full((1, 1, 2, 2), 77, np.uint8)
    numbers = [0, 3, 4, 0, 1, 2, False]  # a picture of 3x4 that ends with the file, and its last corner
    for value in (-1, 9, 2**62):
        changed = (*numbers[:wrong], value, *numbers[wrong + 1 :])
        with pytest.raises(ValueError, match="lies outside"):
            window_kernel.copy_all([(data, changed)], out)
    assert (out == 77).all()
    window_kernel.copy_all([(data, tuple(numbers))], out)
    assert not out.any()


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the kernels, compiled with the sanitizers."""
    folder = tmp_path_factory.mktemp("sanitized")
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    if not Path(environment(folder, "plain")["LD_PRELOAD"]).is_absolute():
        pytest.skip("needs libasan")
    compile_kernels(folder)
    return folder


@compiles_itself
@needs_kernels
@pytest.mark.long
@pytest.mark.parametrize("form", ["AVX2", "plain"])
def test_the_sanitizers_find_nothing(sanitized: Path, form: str) -> None:
    line = command("drills.kernel_cases", 0, examples(400), HANG, *CASES)
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=environment(sanitized, form))
    assert done.returncode == 0, done.stderr


def test_the_package_works_where_nothing_is_compiled(tmp_path: Path) -> None:
    """A copy of the Python files alone is what an installation without a compiler has."""
    for room in ("packer", "readers"):
        for path in (REPO / room).rglob("*.py"):
            copy = tmp_path / path.relative_to(REPO)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    # An editable installation would find the kernels of the checkout.
    code = (
        "import sys; sys.meta_path = [finder for finder in sys.meta_path if 'editable' not in repr(finder)]\n"
        "sys.argv = ['packer', '--version']\n"
        "from packer.__main__ import main; main()"
    )
    done = python("-c", code, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert "kernels: none" in done.stdout
