"""Label codecs read the labels of public data sets in all their forms."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import errors_of, pack, run, write_png
from handmade import chunk, encoded_as, png
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from packer.errors import BadPair, UsageError
from packer.pixels.class_lookup import IGNORE
from packer.pixels.label_codec import LabelCodec
from packer.pixels.label_rules import BINARY_CLASSES, LabelRules
from readers import open_dataset
from readers.contract.classes import ClassTable, SegClass

pytestmark = pytest.mark.usefixtures("in_process")

COLOURS = np.array([[70, 130, 180], [128, 64, 128], [0, 0, 142], [220, 20, 60]], np.uint8)


def by_colour() -> ClassTable:
    return ClassTable(tuple(SegClass(f"c{n}", None, (), (tuple(rgb),)) for n, rgb in enumerate(COLOURS.tolist())))


def by_value(*values: int, ignored: tuple[int, ...] = ()) -> ClassTable:
    return ClassTable(tuple(SegClass(f"v{value}", None, (value,)) for value in values), ignored)


def by_both() -> ClassTable:
    return ClassTable(tuple(SegClass(f"c{n}", None, (n,), (tuple(rgb),)) for n, rgb in enumerate(COLOURS.tolist())))


def encode(pixels: NDArray[Any], suffix: str = ".png") -> bytes:
    return encoded_as(suffix, pixels)


def rgba(pixels: NDArray[np.uint8]) -> bytes:
    return png(pixels.reshape(len(pixels), -1), 8, 6)


def palette(index: NDArray[np.uint8], colours: NDArray[np.uint8]) -> bytes:
    return png(index, 8, 3, chunk(b"PLTE", colours.tobytes()))


def indices(top: int) -> st.SearchStrategy[NDArray[np.uint8]]:
    return arrays(np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 9)), elements=st.integers(0, top))


ENCODERS: dict[str, tuple[LabelRules, ClassTable, Callable[[NDArray[np.uint8]], bytes]]] = {
    "index, gray": (LabelRules(), by_value(0, 1, 2, 3), encode),
    "index, gray in RGB": (LabelRules(), by_value(0, 1, 2, 3), lambda index: encode(np.stack([index] * 3, -1))),
    "index, 16 bits": (LabelRules(), by_value(0, 300, 600, 900), lambda index: encode(index.astype(np.uint16) * 300)),
    "index, palette": (LabelRules(), by_value(0, 1, 2, 3), lambda index: palette(index, COLOURS[::-1])),
    "colour, RGB": (LabelRules(), by_colour(), lambda index: encode(COLOURS[index])),
    "colour, palette": (LabelRules(), by_colour(), lambda index: palette(3 - index, COLOURS[::-1])),
    "both, palette": (LabelRules(), by_both(), lambda index: palette(index, COLOURS)),
    "ade20k": (
        LabelRules("ade20k"),
        by_value(0, 255, 256, 3 * 256 + 7),
        lambda index: encode(
            np.array([[9, 0, 3], [5, 255, 0], [10, 0, 77], [39, 7, 1]], np.uint8)[index],
        ),
    ),
    "instance of cityscapes": (
        LabelRules("instance"),
        by_value(0, 7, 24, 26),
        lambda index: encode(np.array([0, 7, 24_003, 26_999], np.uint16)[index]),
    ),
    "instance of kitti": (
        LabelRules("instance", divisor=256),
        by_value(0, 7, 24, 26),
        lambda index: encode(np.array([3, 7 * 256, 24 * 256 + 1, 26 * 256 + 255], np.uint16)[index]),
    ),
}


@pytest.mark.parametrize("name", ENCODERS)
@given(index=indices(3))
def test_what_is_encoded_is_decoded(name: str, index: NDArray[np.uint8]) -> None:
    rules, table, encoder = ENCODERS[name]
    assert np.array_equal(_codec(name, rules, table).decode(encoder(index)), index)


_CODECS: dict[str, LabelCodec] = {}


def _codec(name: str, rules: LabelRules, table: ClassTable) -> LabelCodec:
    return _CODECS.setdefault(name, LabelCodec(table, rules))


def test_a_palette_whose_order_differs_per_file_is_right_by_colour_and_refused_by_index() -> None:
    truth = np.arange(16, dtype=np.uint8).reshape(4, 4) % 4
    for order in ([2, 0, 3, 1], [1, 2, 3, 0]):
        inverse = np.argsort(order).astype(np.uint8)
        data = palette(inverse[truth], COLOURS[order])
        assert np.array_equal(LabelCodec(by_colour()).decode(data), truth)
        assert np.array_equal(LabelCodec(by_both(), LabelRules("colour")).decode(data), truth)
        with pytest.raises(UsageError, match="needs values"):
            LabelCodec(by_colour(), LabelRules("index"))
        for codec in ("index", "auto"):
            with pytest.raises(BadPair, match=r"read in two ways.*--label-codec colour"):
                LabelCodec(by_both(), LabelRules(codec)).decode(data)


def test_a_palette_of_random_colours_is_right_by_index_and_refused_by_colour() -> None:
    truth = np.arange(16, dtype=np.uint8).reshape(4, 4) % 4
    for seed in range(3):
        colours = np.random.default_rng(seed).integers(0, 256, (4, 3), dtype=np.uint8)
        data = palette(truth, colours)
        assert np.array_equal(LabelCodec(by_value(0, 1, 2, 3)).decode(data), truth)
        assert np.array_equal(LabelCodec(by_both(), LabelRules("index")).decode(data), truth)
        for table, codec in ((by_colour(), "colour"), (by_both(), "colour"), (by_both(), "auto")):
            with pytest.raises(BadPair):
                LabelCodec(table, LabelRules(codec)).decode(data)


def test_the_nearest_colour_is_taken_only_when_asked() -> None:
    label = COLOURS[np.arange(12).reshape(3, 4) % 4]
    stray = label.copy()
    stray[0, 0] = (75, 128, 190)  # near c0
    stray[2, 1] = (255, 0, 0)  # nearest to c3
    with pytest.raises(BadPair, match="colours in no class"):
        LabelCodec(by_colour()).decode(encode(stray))
    index = LabelCodec(by_colour(), LabelRules(unknown="nearest")).decode(encode(stray))
    assert (index[0, 0], index[2, 1]) == (0, 3)
    index[0, 0], index[2, 1] = 0, 1
    assert np.array_equal(index, LabelCodec(by_colour()).decode(encode(label)))


@given(arrays(np.uint8, (3, 5, 3)))
def test_nearest_is_the_nearest_by_brute_force(label: NDArray[np.uint8]) -> None:
    codec = _codec("nearest", LabelRules(unknown="nearest"), by_colour())
    distances = ((label[:, :, None].astype(int) - COLOURS.astype(int)) ** 2).sum(-1)
    chosen = codec.decode(encode(label))
    taken = np.take_along_axis(distances, chosen[..., None].astype(int), -1)[..., 0]
    assert np.array_equal(taken, distances.min(-1))


def test_binary_is_two_values_or_a_threshold() -> None:
    mask = np.array([[0, 255], [255, 0]], np.uint8)
    codec = LabelCodec(BINARY_CLASSES, LabelRules("binary"))
    for foreground in (1, 255):
        assert np.array_equal(codec.decode(encode(mask // 255 * foreground)), mask // 255)
    assert np.array_equal(codec.decode(encode(np.stack([mask] * 3, -1))), mask // 255)
    soft = np.array([[0, 127], [128, 255]], np.uint8)
    with pytest.raises(BadPair, match=r"is not binary.*127.*--threshold 128"):
        codec.decode(encode(soft))
    split = LabelCodec(BINARY_CLASSES, LabelRules("binary", threshold=128))
    assert split.decode(encode(soft)).tolist() == [[0, 0], [1, 1]]


def test_a_threshold_does_not_apply_to_the_indices_of_a_coloured_palette() -> None:
    data = palette(np.array([[0, 1]], np.uint8), np.array([[0, 0, 0], [255, 0, 0]], np.uint8))
    assert LabelCodec(BINARY_CLASSES, LabelRules("binary")).decode(data).tolist() == [[0, 1]]
    with pytest.raises(BadPair, match="has colours"):
        LabelCodec(BINARY_CLASSES, LabelRules("binary", threshold=128)).decode(data)


def test_a_jpeg_label_needs_a_threshold() -> None:
    mask = np.zeros((32, 32), np.uint8)
    mask[8:24, 8:24] = 255
    data = encode(mask, ".jpg")
    with pytest.raises(BadPair, match="JPEG"):
        LabelCodec(BINARY_CLASSES, LabelRules("binary")).decode(data)
    assert np.array_equal(
        LabelCodec(BINARY_CLASSES, LabelRules("binary", threshold=128)).decode(data), (mask == 255).astype(np.uint16)
    )


def test_a_threshold_leaves_what_is_ignored() -> None:
    table = ClassTable((SegClass("no"), SegClass("yes")), (7,))
    data = encode(np.array([[0, 7], [6, 8]], np.uint8))
    assert LabelCodec(table, LabelRules("binary", threshold=7)).decode(data).tolist() == [[0, IGNORE], [0, 1]]


@pytest.mark.parametrize(
    ("rules", "table", "message"),
    [
        (LabelRules("index"), by_colour(), "--label-codec index: needs values"),
        (LabelRules("colour"), by_value(1), "--label-codec colour: needs colours"),
        (LabelRules(unknown="nearest"), by_value(1), "--unknown nearest: works with --label-codec colour only"),
        (LabelRules(threshold=3), by_value(1), "--threshold: needs --label-codec binary"),
        (LabelRules("binary", threshold=3), by_value(1, 2, 3), "needs a class table of two classes"),
        (LabelRules("binary"), by_colour(), "needs values in the class table, or --threshold"),
    ],
)
def test_rules_that_contradict_the_table_are_wrong_usage(rules: LabelRules, table: ClassTable, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        LabelCodec(table, rules)


def test_colours_under_a_table_of_values_are_refused() -> None:
    with pytest.raises(BadPair, match="only values"):
        LabelCodec(by_value(0, 1)).decode(encode(COLOURS[np.array([[0, 1]])]))


def test_a_gray_label_of_16_bits_is_refused_as_colour() -> None:
    with pytest.raises(BadPair, match="16 bits"):
        LabelCodec(by_colour()).decode(encode(np.array([[300]], np.uint16)))


def _palette_set(root: Path, orders: list[list[int]], table: bool) -> Path:
    """Write images/ and labels/ with palette labels, each with its colours in a different order."""
    truth = np.arange(64, dtype=np.uint8).reshape(8, 8) % 4
    for number, order in enumerate(orders):
        write_png(root / "images" / f"{number}.png", np.full((8, 8, 3), 40 * number, np.uint8))
        (root / "labels").mkdir(exist_ok=True)
        inverse = np.argsort(order).astype(np.uint8)
        (root / "labels" / f"{number}.png").write_bytes(palette(inverse[truth], COLOURS[order]))
    if table:
        rows = [f"c{n},{r},{g},{b}" for n, (r, g, b) in enumerate(COLOURS.tolist())]
        (root / "class_dict.csv").write_text("\n".join(["name,r,g,b", *rows]))
    return root


ORDERS = [[0, 1, 2, 3], [2, 0, 3, 1], [1, 2, 3, 0]]


def test_a_folder_of_moving_palettes_packs_by_colour_and_asks_where_only_values_are_given(tmp_path: Path) -> None:
    raw = _palette_set(tmp_path / "raw", ORDERS, table=True)
    dataset = open_dataset(pack(raw, tmp_path / "out"), label="index")
    assert all(np.array_equal(label.numpy().reshape(-1), np.arange(64) % 4) for _, label in dataset)
    (raw / "class_dict.csv").unlink()
    errors = errors_of(1, "build", "--classes", 4, raw, tmp_path / "out2")
    assert "#4682b4 is index 0 in labels/0.png, and index 1 in labels/1.png" in errors
    errors = errors_of(1, "build", "--classes", 4, "--label-codec", "index", raw, tmp_path / "out2")
    assert "--label-codec index --palettes-differ" in errors
    assert not (tmp_path / "out2").exists()
    options = ("--quiet", "--classes", 4, "--label-codec", "index", "--palettes-differ")
    assert run("build", *options, raw, tmp_path / "out2").exit_code == 0


@pytest.mark.parametrize("foreground", [(255, 0, 0), (255, 255, 255)])
@pytest.mark.parametrize("compacted", [False, True])
def test_moving_palettes_of_two_colours_are_read_by_their_grays_or_asked_about(
    tmp_path: Path, foreground: tuple[int, int, int], compacted: bool
) -> None:
    """Black and white identify the class for any index; black and red do not."""
    raw, colours = tmp_path / "raw", np.array([(0, 0, 0), foreground], np.uint8)
    mask = np.arange(64, dtype=np.uint8).reshape(8, 8) % 2
    moved = palette(np.zeros_like(mask), colours[1:]) if compacted else palette(1 - mask, colours[::-1])
    for number, data in enumerate([palette(mask, colours), moved]):
        write_png(raw / "images" / f"{number}.png", np.full((8, 8, 3), 40 * number, np.uint8))
        (raw / "labels").mkdir(exist_ok=True)
        (raw / "labels" / f"{number}.png").write_bytes(data)
    assert "the labels' palettes differ" in errors_of(1, "build", "--classes", 2, raw, tmp_path / "by_index")
    binary = run("build", "--quiet", "--label-codec", "binary", raw, tmp_path / "out")
    if foreground == (255, 0, 0):
        assert binary.exit_code == 1
        assert "the labels' palettes differ" in binary.stderr
        return
    wanted = [mask, np.ones_like(mask) if compacted else mask]
    found = [label.numpy() for _, label in open_dataset(tmp_path / "out", label="index")]
    assert np.array_equal(found, wanted)


def test_a_folder_of_random_palettes_asks_until_the_index_is_named_and_has_no_colour_of_the_table(
    tmp_path: Path,
) -> None:
    """The opposite case: the index is the class, and each palette is arbitrary."""
    raw = _palette_set(tmp_path / "raw", [[0, 1, 2, 3]] * 3, table=False)
    truth = np.arange(64, dtype=np.uint8).reshape(8, 8) % 4
    for number in range(3):
        (raw / "labels" / f"{number}.png").write_bytes(palette(truth, COLOURS // (number + 1)))
    errors = errors_of(1, "build", "--classes", 4, raw, tmp_path / "out")
    assert "index 0 is #4682b4 in labels/0.png, and #23415a in labels/1.png" in errors
    dataset = open_dataset(pack(raw, tmp_path / "out", "--classes", 4, "--label-codec", "index"), label="index")
    assert all(np.array_equal(label.numpy(), truth) for _, label in dataset)
    (raw / "class_dict.csv").write_text("\n".join(["name,r,g,b", *(f"c{n},{n},9,9" for n in range(4))]))
    assert "labels/0.png: has colours in no class" in errors_of(1, "build", raw, tmp_path / "out2")


def test_padded_palettes_with_one_colour_twice_are_not_palettes_that_differ(tmp_path: Path) -> None:
    """Index 255 is often black like 0; only an index that changes its colour counts."""
    raw = _palette_set(tmp_path / "raw", [[0, 1, 2, 3]] * 2, table=False)
    colours = np.zeros((256, 3), np.uint8)
    colours[1:4] = COLOURS[1:]
    for number, values in enumerate(([0, 1, 2, 3], [1, 2, 3, 255])):
        (raw / "labels" / f"{number}.png").write_bytes(palette(np.array(values * 16, np.uint8).reshape(8, 8), colours))
    assert run("build", "--quiet", "--classes", 4, "--ignore", 255, raw, tmp_path / "out").exit_code == 0


def test_a_wrong_label_shows_before_anything_is_packed(tmp_path: Path) -> None:
    raw = _palette_set(tmp_path / "raw", ORDERS[:1] * 3, table=True)
    write_png(raw / "labels" / "2.png", np.full((8, 8, 3), 9, np.uint8))
    assert "labels/2.png: has a colour in no class (#090909: 64 pixels" in errors_of(1, "build", raw, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("divisor", [1000, 256])
def test_instance_ids_of_8_bits_are_ids_without_instance(divisor: int) -> None:
    data = encode(np.array([[0, 7]], np.uint8))
    found = LabelCodec(by_value(0, 7), LabelRules("instance", divisor=divisor)).decode(data)
    assert found.tolist() == [[0, 1 if divisor == 1000 else 0]]


def test_the_nearest_colour_is_near_in_its_alpha_as_well() -> None:
    table = ClassTable((SegClass("solid", None, (), ((0, 0, 0),)), SegClass("glass", None, (), ((0, 0, 0, 0),))))
    pixels = np.array([[[0, 0, 0, 255], [9, 0, 0, 30], [0, 9, 0, 200]]], np.uint8)
    assert LabelCodec(table, LabelRules(unknown="nearest")).decode(rgba(pixels)).tolist() == [[0, 1, 0]]
    only_glass = ClassTable(table.classes[1:])
    solid = encode(np.zeros((1, 1, 3), np.uint8))
    assert LabelCodec(only_glass, LabelRules(unknown="nearest")).decode(solid).tolist() == [[0]]


def test_gray_with_alpha_is_named_as_such() -> None:
    """Its message was that it has colours."""
    gray = np.array([[[1, 255], [2, 0]]], np.uint8)
    with pytest.raises(
        BadPair, match="is gray with an alpha channel, and some pixels are transparent; save it as gray"
    ):
        LabelCodec(by_value(0, 1, 2)).decode(png(gray.reshape(1, -1), 8, 4))
