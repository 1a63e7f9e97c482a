"""The objects of a row, and the pictures that trainers of other libraries take."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from packer import Rows, build_pack
from readers import RequestError
from readers.contract.classes import ClassTable, SegClass
from readers.labelled_pictures import ids_field, open_pictures
from readers.objects import MOST_COUNTED, Objects, things_of

IDS = np.array([[0, 7, 7, 0], [9, 7, 7, 0], [9, 9, 0, 4]], np.uint32)
LABEL = np.array([[0, 2, 2, 0], [1, 2, 1, 0], [1, 1, 0, 255]], np.uint8)


@pytest.mark.parametrize("more", [0, MOST_COUNTED])
def test_objects_have_the_class_of_most_of_their_pixels_and_lack_what_is_ignored(more: int) -> None:
    """Large numbers are found in another way, with the same result."""
    objects = Objects.of(np.where(IDS > 0, IDS + np.uint32(more), IDS), LABEL, things=(1, 2))
    assert objects.numbers.tolist() == [7 + more, 9 + more]
    assert objects.classes.tolist() == [1, 0]
    assert objects.areas.tolist() == [4, 3]
    assert objects.boxes().tolist() == [[1, 0, 3, 2], [0, 1, 2, 3]]
    assert objects.place.tolist() == [[0, 1, 1, 0], [2, 1, 1, 0], [2, 2, 0, 0]]
    assert objects.masks().tolist() == [(IDS == 7).tolist(), (IDS == 9).tolist()]


def test_a_row_without_objects_has_no_boxes_and_no_masks() -> None:
    objects = Objects.of(np.zeros((3, 4), np.uint16), LABEL, things=(1, 2))
    assert (len(objects), objects.boxes().shape, objects.masks().shape) == (0, (0, 4), (0, 3, 4))


def test_objects_are_never_in_a_first_class_called_background() -> None:
    table = ClassTable((SegClass("Background"), SegClass("cell"), SegClass("wall")))
    assert things_of(table) == (1, 2)
    assert things_of(table, ["wall"]) == (2,)
    assert things_of(ClassTable((SegClass("cell"),))) == (0,)
    with pytest.raises(RequestError, match="no class of that name: Background, cell, wall"):
        things_of(table, ["dog"])


def load(key: str) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.uint8]]]:
    return {"image": np.zeros((4, 6, 3), np.uint8), "label": np.zeros((4, 6), np.uint8)}


def test_a_pack_that_a_trainer_of_pictures_cannot_take_is_refused_with_the_next_step(tmp_path: Path) -> None:
    build_pack(Rows(["a", "b"], load), tmp_path / "many", classes=str(256))
    build_pack(Rows(["a", "b"], load), tmp_path / "two", classes=["x", "y"])
    with pytest.raises(RequestError, match=r"many: 256 classes, .* build it with fewer classes"):
        open_pictures(tmp_path / "many", None)
    rows = open_pictures(tmp_path / "two", None)
    assert (rows.label, len(rows)) == ("index", 2)
    with pytest.raises(RequestError, match=r"label \(classes\): build the pack with --field instance=ids"):
        ids_field("two", rows.manifest)
    with pytest.raises(RequestError, match="there is no split 'train'"):
        open_pictures(tmp_path / "two", "train")
