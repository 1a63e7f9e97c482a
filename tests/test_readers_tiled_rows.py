"""Rows in tiles: the same rows as those of a raw pack. A part of a row is read from the tiles that it touches alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import RawFolder, errors_of, json_of, pack, run
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from page_reader import read_rows
from test_readers_encodings import is_equal, smooth_folder
from torch.nn.functional import pad as padded
from torch.utils.data import DataLoader

from packer import build_pack, verify_pack
from packer.pixels.encode import encode
from packer.pixels.jpeg_rules import JpegRules
from readers import CenterCrop, DamagedError, RandomCrop, RequestError, open_dataset, stitch
from readers import windows as windows_module
from readers.batches import Batches
from readers.contract.fields import TILED, Field, picture_field
from readers.contract.manifest import Manifest
from readers.contract.receipt import Receipt
from readers.contract.tile_grid import TileGrid, index_of
from readers.crop import CropAndFlip
from readers.epoch import BatchRows, Run
from readers.formats import shard as shard_module
from readers.formats.tiled_rows import check_tiles, unpack_row, unpack_tiles
from readers.windows import BatchWindows

OPTIONS = "--classes", "3", "--labels", "index", "--encode"
TILES = "image=tiles:16x32", "--encode", "label=tiles-zstd:17"


def field_of(encoding: str, size: tuple[int, int], tile: tuple[int, int], bands: int = 3) -> Field:
    names = tuple(f"band {number}" for number in range(bands))
    return replace(picture_field("image", "|u1", size, names), encoding=encoding, tile=tile)


def stored_row(field: Field, numbers: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the stored bytes of a row, and what is read from them."""
    row = encode(field, JpegRules(90) if field.is_jpeg else None, numbers, b"")
    return np.frombuffer(row.stored, np.uint8), numbers if row.numbers is None else row.numbers


def noise(shape: tuple[int, ...]) -> NDArray[np.uint8]:
    return np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)


sides = st.integers(1, 40)


@given(
    st.sampled_from(list(TILED)), st.tuples(sides, sides), st.tuples(sides, sides), st.sampled_from([1, 3]), st.data()
)
def test_any_part_of_a_row_is_that_of_the_whole_row(
    encoding: str, size: tuple[int, int], tile: tuple[int, int], bands: int, data: st.DataObject
) -> None:
    field = field_of(encoding, size, tile, bands)
    stored, expected = stored_row(field, noise((bands, *size)))
    starts = [data.draw(st.integers(0, side)) for side in size]
    part = tuple(slice(start, data.draw(st.integers(start, side))) for start, side in zip(starts, size, strict=True))
    window = np.empty_like(expected[index_of(part)])
    unpack_tiles(field, stored, expected.shape, part, window)
    assert np.array_equal(window, expected[index_of(part)])
    whole = np.empty_like(expected)
    check_tiles(field, stored, expected.shape)
    unpack_row(field, stored, whole)
    assert np.array_equal(whole, expected)


def test_a_grid_has_any_number_of_sides() -> None:
    grid = TileGrid((5, 4, 7), (2, 4, 3))
    assert grid.counts == (3, 1, 3)
    assert list(grid.strips) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    touched = grid.touched((slice(3, 5), slice(0, 1), slice(4, 7)))
    starts = [(number, lines.start, columns.start) for number, (lines, _, columns) in touched]
    assert starts == [(4, 2, 3), (5, 2, 6), (7, 4, 3), (8, 4, 6)]


@pytest.fixture
def both(storage: str, raw_folder: RawFolder, tmp_path: Path) -> tuple[Path, Path]:
    """The same folder as a raw pack, and in tiles."""
    options = "--format", storage, "--labels", "index", "--encode"
    return pack(raw_folder.path, tmp_path / "raw", *options, "label=raw"), pack(
        raw_folder.path, tmp_path / "tiles", *options, *TILES
    )


def test_rows_batches_and_crops_are_those_of_a_raw_pack(both: tuple[Path, Path]) -> None:
    raw, tiled = both
    assert is_equal(raw, tiled)
    assert verify_pack(tiled, deep=True) == []
    assert [(field.encoding, field.tile) for field in Manifest.load(tiled).fields] == [
        ("tiles", (16, 32)),
        ("tiles-zstd", (17, 17)),
    ]
    for label in ("index", "onehot"):
        for crop in (None, (17, 19), (30, 20)):
            batches = (
                open_dataset(out, "train", label=label).loader(batch_size=3, crop=crop, flip=True, seed=5)
                for out in both
            )
            for one, other in zip(*batches, strict=True):
                assert all(map(torch.equal, one, other))


WAYS = "raw", "zstd", "jpeg:90", "tiles:16", "tiles-zstd:16", "tiles-jpeg:16:90"


@pytest.fixture(params=WAYS)
def varied(request: pytest.FixtureRequest, varied_raw: RawFolder, tmp_path: Path) -> Path:
    """A pack of pictures that differ in size, in each encoding."""
    way = request.param
    label = way if "jpeg" not in way else "zstd"
    options = "--size", "native", "--labels", "index", "--encode", f"image={way}", "--encode", f"label={label}"
    return pack(varied_raw.path, tmp_path / "out", *options)


def test_a_window_is_that_part_of_a_sample(varied: Path) -> None:
    data = open_dataset(varied, "train")
    for start, size in (((3, 5), (9, 12)), ((-4, -3), (50, 60)), ((200, 3), (4, 4)), ((-9, 0), (9, 9))):
        image, label = data.window(1, start, size)
        whole = [padded(part, (99, 99, 99, 99), value=fill) for part, fill in zip(data[1], (0, 255), strict=True)]
        lines, columns = (slice(99 + at, 99 + at + side) for at, side in zip(start, size, strict=True))
        if start[0] < 200:
            assert torch.equal(image, whole[0][..., lines, columns])
            assert torch.equal(label, whole[1][..., lines, columns])
        else:
            assert not image.any()
            assert (label == 255).all()
    with pytest.raises(RequestError, match=r"expected \(top, left\), \(H, W\)"):
        data.window(0, (0, 0, 0), (3, 3, 3))


def test_a_crop_as_a_transform_is_the_same_as_of_a_whole_sample(varied: Path) -> None:
    plain = open_dataset(varied, "train")
    for crop in (RandomCrop((20, 30), pad=7), CenterCrop((31, 17))):
        torch.manual_seed(3)
        found = list(DataLoader(open_dataset(varied, "train", transform=crop), batch_size=1))
        torch.manual_seed(3)
        torch.empty((), dtype=torch.int64).random_()  # the seed that a DataLoader draws for its workers
        for (image, label), sample in zip(found, plain, strict=True):
            expected = crop(*sample, fills=[None, 255])
            assert torch.equal(image[0], expected[0])
            assert torch.equal(label[0], expected[1])


def test_windows_of_a_sample_are_stitched_to_it(varied: Path) -> None:
    data = open_dataset(varied, "train")
    for size, overlap in (((16, 16), 0), ((20, 33), 7)):
        image, label = data[2]
        windows = list(data.windows(2, size, overlap))
        assert {tuple(each.image.shape[1:]) for _, each in windows} == {size}
        assert np.array_equal(stitch((key, each.image) for key, each in windows), image)
        assert np.array_equal(stitch((key, each.label) for key, each in windows), label)
    refused: list[tuple[Any, Any]] = [((16, 16), 16), ((16, 16), 1.5), ((16, 16), (4, 4)), (16, 0), ((16.5, 16), 0)]
    for wrong, shared in refused:
        with pytest.raises(RequestError, match="smaller than each side of the window"):
            next(data.windows(0, wrong, shared))


def test_a_window_larger_than_any_memory_says_so(varied: Path) -> None:
    data = open_dataset(varied, "train")
    for side in (10**7, 10**10):
        with pytest.raises(MemoryError, match="bytes at once are more than this system gives"):
            data.window(0, (0, 0), (side, side))


def test_a_window_of_other_things_than_whole_numbers_is_refused(varied: Path) -> None:
    data = open_dataset(varied, "train")
    refused: list[tuple[Any, Any]] = [(0, (4, 4)), ((0, 0), 4), ((0.5, 0), (4, 4)), ((0, 0), "44")]
    for start, size in refused:
        with pytest.raises(RequestError, match=r"expected \(top, left\), \(H, W\)"):
            data.window(0, start, size)


def test_a_crop_reads_and_prefetches_only_the_tiles_that_it_touches(
    storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = pack(smooth_folder(tmp_path / "in"), tmp_path / "out", "--format", storage, *OPTIONS, "image=tiles-jpeg:16")
    data = open_dataset(out, "all", fields=("image",))
    field, shard = data._pack.manifest.fields[0], data._pack.shard(0)
    path, begin, end = shard.position("image", 0)
    ends = [int(each) for each in shard.stored(field, 0)[: 8 * 12].view("<u8")]
    middle = CropAndFlip.of(CenterCrop((8, 8)), flip=True)
    assert middle is not None
    batches = Batches(data._reader, data._rows, 5, middle, None, False, lambda: None)
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(shard_module, "absent", lambda path, data, starts: list(range(len(starts))))
    monkeypatch.setattr(shard_module, "prefetch", lambda data, spans: asked.extend(spans))
    monkeypatch.setattr(shard_module, "drop", lambda path, data, spans: asked.extend(spans))
    batch = BatchRows(np.arange(5), [Run(0, 0, 5)], (5,))
    first = begin + -(-ends[4] // 64) * 64, begin + ends[5]  # lines 16 to 24 and columns 24 to 32 are in one tile
    batches.prefetch([batch])
    assert asked[0] == first
    assert len(asked) == 5
    asked.clear()
    batches.drop(batch)
    assert asked[0] == first
    assert batches.bytes() == 5 * 3 * 32 * 32
    wanted = batches.read(batch, np.empty)[0].copy()
    whole = path.read_bytes()
    zeros = bytes(first[0] - begin - 96), bytes(end - first[1])
    path.write_bytes(whole[: begin + 96] + zeros[0] + whole[first[0] : first[1]] + zeros[1] + whole[end:])
    assert np.array_equal(batches.read(batch, np.empty)[0], wanted)
    with pytest.raises(
        DamagedError, match=f"the row '{data.key(0)}': tile 1 of 12 of its 'image' is not stored as jpeg"
    ):
        open_dataset(out, "all")[0]


def test_native_rows_in_tiles_are_those_of_a_raw_pack(storage: str, varied_raw: RawFolder, tmp_path: Path) -> None:
    options = "--format", storage, "--size", "native", "--labels", "index", "--encode"
    raw = pack(varied_raw.path, tmp_path / "raw", *options, "label=raw")
    tiled = pack(varied_raw.path, tmp_path / "tiles", *options, *TILES)
    assert is_equal(raw, tiled)
    assert verify_pack(tiled, deep=True) == []


def test_tiles_as_jpeg_have_the_loss_and_the_statistics_of_what_is_read(storage: str, tmp_path: Path) -> None:
    raw, out = smooth_folder(tmp_path / "in"), tmp_path / "out"
    before = pack(raw, tmp_path / "before", *OPTIONS, "label=raw")
    built = run("build", "--format", storage, *OPTIONS, "image=tiles-jpeg:16:90", raw, out)
    assert "loss      image as JPEG: PSNR of at least" in built.stdout
    assert verify_pack(out, deep=True) == []
    (receipt,) = [Receipt.load(path) for path in (out / "shards").glob("*.receipt.json")]
    pairs = zip(open_dataset(before, "all"), open_dataset(out, "all"), strict=True)
    errors = [((image.double() - found.double()) ** 2).mean().item() for (image, _), (found, _) in pairs]
    expected = [10_000 if error == 0 else round(1000 * np.log10(255**2 / error)) for error in errors]
    assert receipt.psnr == {"image": tuple(expected)}
    images = torch.stack([image for image, _ in open_dataset(out, "all")]).double() / 255
    assert open_dataset(out, "all").mean == pytest.approx(images.mean((0, 2, 3)).tolist())
    for (_, _, row), (image, _) in zip(read_rows(out), open_dataset(out, "all"), strict=True):
        assert np.array_equal(row["image"], image)


def test_a_pack_made_of_a_pack_in_tiles_keeps_them_byte_for_byte(tmp_path: Path) -> None:
    options = *OPTIONS, "image=tiles-jpeg:32x16:80", "--encode", "label=tiles-zstd:16"
    out = pack(smooth_folder(tmp_path / "in"), tmp_path / "out", *options)
    again, other = tmp_path / "again", tmp_path / "other"
    build_pack(out, again)
    build_pack(out, other, encode=["image=tiles-jpeg:16:keep"])
    shards = [[Receipt.load(path).crc32 for path in (each / "shards").glob("*.receipt.json")] for each in (out, again)]
    assert shards[0] == shards[1]
    assert [field.tile for field in Manifest.load(again).fields] == [(32, 16), (16, 16)]
    assert [field.tile for field in Manifest.load(other).fields] == [(16, 16), (16, 16)]


CHANGES: dict[str, Callable[[NDArray[np.uint8]], NDArray[np.uint8]]] = {
    "nothing": lambda stored: stored[:0],
    "a table alone": lambda stored: stored[:48],
    "cut": lambda stored: stored[:-1],
    "followed by a byte": lambda stored: np.append(stored, np.uint8(0)),
    "a tile that ends behind the row": lambda stored: with_end(stored, 0, 1 << 63),
    "a tile that ends before it begins": lambda stored: with_end(stored, 2, 100),
    "a tile that ends in the table": lambda stored: with_end(stored, 0, 5),
    "a tile that ends where the one before it ends": lambda stored: with_end(stored, 1, int(stored[:8].view("<u8")[0])),
    "ends of 2^64 - 1": lambda stored: with_end(stored, 3, (1 << 64) - 1),
}


def with_end(stored: NDArray[np.uint8], tile: int, end: int) -> NDArray[np.uint8]:
    changed = stored.copy()
    changed[8 * tile : 8 * tile + 8] = np.frombuffer(end.to_bytes(8, "little"), np.uint8)
    return changed


@pytest.mark.parametrize("encoding", TILED)
@pytest.mark.parametrize("change", CHANGES)
def test_a_damaged_table_is_refused(encoding: str, change: str) -> None:
    field = field_of(encoding, (40, 56), (16, 32))
    stored, expected = stored_row(field, noise((3, 40, 56)))
    damaged = CHANGES[change](stored)
    out = np.empty_like(expected)
    with pytest.raises(DamagedError, match=r"the ends of the tiles of its 'image' do not fit to its \d+ bytes"):
        check_tiles(field, damaged, expected.shape)
    with pytest.raises(DamagedError, match="of its 'image'"):
        unpack_row(field, damaged, out)


@pytest.mark.parametrize("encoding", ["tiles-zstd", "tiles-jpeg"])
def test_damage_is_named_with_its_tile_and_the_other_tiles_are_read(encoding: str) -> None:
    field = field_of(encoding, (40, 56), (16, 32))
    stored, expected = stored_row(field, noise((3, 40, 56)))
    damaged = stored.copy()
    start = -(-int(stored[:48].view("<u8")[2]) // 64) * 64
    damaged[start : start + 40] = 0
    unit = field.unit_encoding
    with pytest.raises(DamagedError, match=f"tile 4 of 6 of its 'image' is not stored as {unit} of 3x16x24 numbers"):
        unpack_row(field, damaged, np.empty_like(expected))
    part = slice(10, 32), slice(3, 32)
    window = np.empty_like(expected[index_of(part)])
    unpack_tiles(field, damaged, expected.shape, part, window)
    assert np.array_equal(window, expected[index_of(part)])


def test_a_row_that_would_need_a_table_larger_than_itself_takes_no_memory() -> None:
    field = field_of("tiles", (1 << 19, 1 << 19), (16, 16))
    with pytest.raises(DamagedError, match="do not fit to its 4096 bytes"):
        check_tiles(field, np.zeros(4096, np.uint8), (3, 1 << 19, 1 << 19))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("label", "'label': expected a field and raw, zstd, jpeg:1 to jpeg:100, jpeg:keep, tiles:256, "),
        ("label=zst", "such as label=zstd; did you mean zstd?"),
        ("image=jpeg:0", "'image=jpeg:0': expected a field and raw, zstd, jpeg:1 to jpeg:100, jpeg:keep, "),
        ("image=jpeg:101", "'image=jpeg:101': expected a field and raw, zstd, jpeg:1 to jpeg:100, jpeg:keep, "),
        ("label=jpeg", "--encode label=jpeg: JPEG stores pictures of 8 bits with 1 or 3 bands, not classes; "),
        ("depth=zstd", "--encode depth: there is no field 'depth'; the fields are image, label"),
        ("image=tiles", "expected a field and raw, zstd, jpeg:1 to jpeg:100, jpeg:keep, tiles:256, tiles-zstd:256 or"),
        ("image=tile:256", "such as label=zstd; did you mean tiles?"),
        ("image=tiles-jpeg:256:101", "'image=tiles-jpeg:256:101': expected a field and"),
        ("image=tiles:8", "--encode image=tiles:8: a tile is 16 to 4096 pixels high and wide, such as 256"),
        ("image=tiles:256x5000", "a tile is 16 to 4096 pixels high and wide"),
        ("image=tiles:64x64x64", "--encode image=tiles:64x64x64: a tile has as many sides as a row, here 2"),
        ("label=tiles-jpeg:256", "JPEG stores pictures of 8 bits with 1 or 3 bands, not classes; "),
    ],
)
def test_wrong_encodings_are_refused(raw_folder: RawFolder, tmp_path: Path, value: str, message: str) -> None:
    errors = errors_of(2, "build", "--encode", value, raw_folder.path, tmp_path / "out")
    assert message in " ".join(errors.split())
    assert f"did you mean {value.partition('=')[2].partition(':')[0]}?" not in errors
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["uint8", "uint16"])
def test_windows_of_raw_tiles_are_equal_with_and_without_the_kernel(kind: str) -> None:
    dice = np.random.default_rng(5)
    field = field_of("tiles", (40, 56), (16, 9))
    field = replace(field, dtype=np.dtype(kind).str)
    rows = [dice.integers(0, 256, (3, 40, 56)).astype(kind) for _ in range(4)]
    starts = [[0, 0], [28, 20], [3, 5], [16, 9]]
    windows = BatchWindows((12, 36), 0, starts, [True, False] * 2)
    stored = [np.frombuffer(encode(field, None, row, b"").stored, np.uint8) for row in rows]
    out = np.zeros((4, 3, 12, 36), kind)
    pictures = [(number, each, (40, 56)) for number, each in enumerate(stored)]
    assert windows.copy_tiles(pictures, (16, 9), out) == (windows_module.TILE_KERNEL is not None)
    for number, (row, (top, left)) in enumerate(zip(rows, starts, strict=True)):
        window = row[:, top : top + 12, left : left + 36]
        window = window[..., ::-1] if windows.flips[number] else window
        assert np.array_equal(out[number], window) or windows_module.TILE_KERNEL is None
    whole, out = BatchWindows((40, 56), 0, [[0, 0]], [False]), np.zeros((1, 3, 40, 56), kind)
    for change in CHANGES.values():
        assert not whole.copy_tiles([(0, change(stored[0]), (40, 56))], (16, 9), out)
    assert not whole.copy_tiles([(0, stored[0], (40, 56))], (1 << 70, 16), out)
    assert not out.any()


def test_a_window_that_does_not_fit_into_memory_names_its_row(tmp_path: Path) -> None:
    out = pack(smooth_folder(tmp_path / "in"), tmp_path / "out", *OPTIONS, "image=tiles:16")
    data = open_dataset(out, "all", fields=("image",))
    with pytest.raises(DamagedError, match=f"the row '{data.key(0)}' has more numbers than fit in memory"):
        data._pack.shard(0).window(data.fields[0], 0, (slice(0, 1 << 50), slice(0, 1 << 10)))


def test_a_crop_of_a_damaged_row_of_raw_tiles_names_it(tmp_path: Path) -> None:
    out = pack(smooth_folder(tmp_path / "in"), tmp_path / "out", *OPTIONS, "image=tiles:16")
    data = open_dataset(out, "all", fields=("image",))
    path, begin, _ = data._pack.shard(0).position("image", 0)
    whole = path.read_bytes()
    path.write_bytes(whole[:begin] + b"\xff" * 8 + whole[begin + 8 :])
    with pytest.raises(DamagedError, match=f"the row '{data.key(0)}': the ends of the tiles of its 'image'"):
        list(data.loader(batch_size=5, crop=CenterCrop((40, 56))))


def test_a_plan_names_the_tiles_and_knows_their_size(tmp_path: Path) -> None:
    raw, out = smooth_folder(tmp_path / "in"), tmp_path / "out"
    options = *OPTIONS, "image=tiles-jpeg:16x32:90", "--encode", "label=tiles-zstd:16", raw, out
    text = run("build", "--dry-run", *options).stdout
    assert "image=tiles-jpeg:16x32:90, label=tiles-zstd:16x16" in text
    plan = json_of("build", "--dry-run", "--json", *options)
    run("build", *options)
    files = [(out / "shards").glob(f"*.{name}.npy") for name in ("image", "label")]
    stored = sum(np.load(path).nbytes for paths in files for path in paths)
    assert plan["stored_bytes"] == stored
    for lines in (text, run("info", out).stdout, run("inspect", out, open_dataset(out, "all").key(0)).stdout):
        assert "tiles-jpeg:16x32" in lines
        assert "tiles-zstd:16x16" in lines


def test_another_tile_is_another_recipe_and_is_named(tmp_path: Path) -> None:
    raw, out = smooth_folder(tmp_path / "in"), tmp_path / "out"
    for before, now, key in (
        ("tiles:16", "tiles:32", "image.tile"),
        ("tiles-jpeg:16:90", "tiles-jpeg:16:80", "image.encoding"),
    ):
        pack(raw, out, *OPTIONS, f"image={before}")
        changed = run("build", "--dry-run", *OPTIONS, f"image={now}", raw, out).stdout
        assert f"which is kept: {key} changed\n" in changed
