"""The canvas: which object is seen, what each field shows, and that no annotation is lost in silence."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from packer.annotations import paint
from packer.annotations.annotation import AnnotatedPicture, Annotation, Mask
from packer.annotations.paint import Brush, Canvas
from packer.classes.overlaps import AREA, CLASS, IGNORE
from packer.pixels.resize import Geometry
from readers.contract.tiles import Size

BRUSH = Brush({"car": 1, "sky": 2})


@pytest.fixture(params=["kernel", "numpy"], autouse=True)
def _with_or_without_kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "numpy":
        monkeypatch.setattr(paint, "KERNEL", None)
    elif paint.KERNEL is None:
        pytest.skip("the kernels are turned off or not compiled")


@dataclass(frozen=True)
class Box:
    """A shape of the tests: the pixels from (top, left) on, cut at the picture."""

    top: int
    left: int
    height: int
    width: int

    def paint(self, size: Size) -> Mask:
        inside = np.ones((self.height, self.width), np.bool_)
        return Mask(self.top, self.left, inside[: size[0] - self.top, : size[1] - self.left])


@dataclass(frozen=True)
class Painted:
    """A shape with these pixels."""

    mask: Mask

    def paint(self, size: Size) -> Mask:
        return self.mask


def _object(category: str, *boxes: Box, instance: str | None = None, is_crowd: bool = False) -> Annotation:
    return Annotation(category, boxes, instance, is_crowd)


def _canvas(*objects: Annotation, brush: Brush = BRUSH, size: Size = (4, 6)) -> Canvas:
    return Canvas(AnnotatedPicture(objects), size, brush)


SMALL, LARGE = _object("sky", Box(1, 1, 1, 2)), _object("car", Box(0, 0, 3, 4))


def test_the_later_object_lies_on_top() -> None:
    label = _canvas(LARGE, SMALL).label()
    assert label.dtype == np.uint8
    assert label.tolist() == [[1, 1, 1, 1, 0, 0], [1, 2, 2, 1, 0, 0], [1, 1, 1, 1, 0, 0], [0] * 6]
    assert 2 not in _canvas(SMALL, LARGE).label()


@pytest.mark.parametrize("order", [AREA, CLASS])
def test_other_orders_do_not_depend_on_the_file(order: str) -> None:
    brush = replace(BRUSH, order=order)
    np.testing.assert_array_equal(_canvas(SMALL, LARGE, brush=brush).label(), _canvas(LARGE, SMALL).label())


@pytest.mark.parametrize("objects", [3, 300])
def test_a_large_canvas_is_the_same_with_and_without_the_kernel(objects: int) -> None:
    """Lines of more than 255 pixels, masks with gaps between their lines and in the order of columns."""
    random = np.random.default_rng(objects)
    masks = [random.integers(0, 2, (9, 300)).astype(np.bool_)[:, 1:] for _ in range(objects)]
    masks[1], numbers = np.asfortranarray(masks[1]), {str(n): 1 + n % 200 for n in range(objects)}
    shapes = [Painted(Mask(n % 5, n % 7, mask)) for n, mask in enumerate(masks)]
    picture = AnnotatedPicture(tuple(Annotation(str(n), (shape,)) for n, shape in enumerate(shapes)))
    canvas = Canvas(picture, (20, 310), Brush(numbers))
    top = np.zeros((20, 310), np.uint16)
    for number, mask in enumerate(masks, 1):
        top[(number - 1) % 5 :, (number - 1) % 7 :][:9, :299][mask] = number
    np.testing.assert_array_equal(canvas.top, top)
    np.testing.assert_array_equal(canvas.label(), np.array([0, *numbers.values()])[top])
    assert canvas.overlap == sum(map(np.count_nonzero, masks)) - np.count_nonzero(top)
    hidden = objects - len(set(top.reshape(-1).tolist()) - {0})
    assert canvas.notes() == ((f"{hidden} objects hidden by others",) if hidden else ())


def test_a_hidden_object_is_counted() -> None:
    canvas = _canvas(SMALL, LARGE)
    assert canvas.notes() == ("1 object hidden by others",)
    assert canvas.overlap == 2


@pytest.mark.parametrize("fit", ["stretch", "letterbox", "crop-or-pad", "shorter-side"])
def test_lost_are_the_objects_that_no_stored_pixel_shows(fit: str) -> None:
    geometry, lost = Geometry((12, 15), fit), 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        height, width = random.integers(5, 40, 2).tolist()
        tops, lefts = (random.integers(0, side, 20).tolist() for side in (height, width))
        boxes = [Box(top, left, *random.permutation([1, 9]).tolist()) for top, left in zip(tops, lefts, strict=True)]
        canvas = _canvas(*(_object("car", box) for box in boxes), size=(height, width))
        kept = set(geometry.label(canvas.top.astype(np.uint16)).reshape(-1).tolist())
        expected = set(canvas.top.reshape(-1).tolist()) - kept - {0}
        rows, columns, _ = geometry.sampled((height, width))
        assert canvas.lost_at(canvas.top, rows, columns) == len(expected)
        lost += len(expected)
    assert lost


def test_what_is_not_painted_is_counted() -> None:
    picture = AnnotatedPicture(
        (_object("cat", Box(0, 0, 1, 1)), _object("car", Box(0, 0, 0, 0)), _object("car")),
        lost={"with a box and no outline": 3},
    )
    notes = Canvas(picture, (4, 6), BRUSH).notes()
    assert notes == (
        "3 objects with a box and no outline",
        "1 object of the category 'cat', which is in no class",
        "2 objects without a pixel",
    )


def test_ids_are_places_in_the_file_and_groups_share_one() -> None:
    wheel = [_object("car", Box(0, left, 1, 1), instance="7") for left in (0, 2)]
    ids = _canvas(wheel[0], _object("sky", Box(3, 0, 1, 1)), wheel[1]).ids()
    assert ids.dtype == np.uint16
    assert ids[0].tolist() == [1, 0, 1, 0, 0, 0]
    assert ids[3, 0] == 2


def test_a_crowd_is_a_class_or_ignored() -> None:
    crowd = _object("car", Box(0, 0, 1, 1), is_crowd=True)
    assert _canvas(crowd).label()[0, 0] == 1
    ignoring = _canvas(crowd, brush=replace(BRUSH, crowds=IGNORE, ignored=3))
    assert ignoring.label()[0, 0] == 3
    assert ignoring.ids()[0, 0] == 0


def test_planes_show_covered_objects_too() -> None:
    planes = _canvas(SMALL, LARGE).planes(["car", "sky"])
    assert planes[1, 1].tolist() == [1, 1]
    assert planes[0, 0].tolist() == [1, 0]


def test_shapes_of_one_object_are_painted_together() -> None:
    canvas = _canvas(_object("car", Box(0, 0, 1, 1), Box(3, 5, 1, 1)))
    assert canvas.label().sum() == 2
    assert canvas.overlap == 0


@pytest.mark.parametrize("count", [255, 256, 300])
def test_any_number_of_objects_has_the_same_pixels(count: int) -> None:
    objects = [_object("car" if number % 2 else "sky", Box(0, number, 1, 1)) for number in range(count)]
    canvas = _canvas(*objects, size=(1, count + 1))
    assert canvas.ids().tolist() == [[*range(1, count + 1), 0]]
    assert canvas.label().tolist() == [[*(1 if number % 2 else 2 for number in range(count)), 0]]
    assert canvas.notes() == ()
