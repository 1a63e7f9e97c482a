"""Windows that PyTorch makes on the device are those of the CPU, bit by bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from packer import Rows, build_pack
from readers import CenterCrop, Colour, RandomCrop, open_dataset
from readers.contract.errors import RequestError
from readers.contract.fields import picture_field
from readers.delivered import Delivered
from readers.on_device import check_fields

pytestmark = pytest.mark.usefixtures("in_process")
COLOUR = Colour(0.3, 0.3, 0.3, channels=0.1, gray=0.2)
SCALED = RandomCrop((24, 32), scale=(0.4, 2.0))
HALF: dict[str, Any] = {"normalize": True, "dtype": torch.float16}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"flip": "all"},
    {"crop": (30, 20), "flip": True},
    {"crop": CenterCrop((90, 20)), "colour": COLOUR},
    {"crop": SCALED, "flip": "all", "colour": COLOUR},
    {"crop": RandomCrop((24, 24), scale=(0.4, 2.0)), "flip": "all", "turn": True, "colour": COLOUR, **HALF},
    {"crop": SCALED, "normalize": True, "dtype": torch.bfloat16},
]


def packed(tmp: Path, dtype: str) -> Path:
    dice = np.random.default_rng(11)

    def load(key: str) -> dict[str, NDArray[Any]]:
        image = dice.integers(0, 256, (48, 40, 3)).astype(dtype)
        return {"image": image, "label": (image[..., 0] // 16).astype(np.uint8)}

    rows = Rows([f"{number:02}" for number in range(10)], load)
    build_pack(rows, tmp / dtype, classes="16", labels="index", bands="all", workers=1)
    return tmp / dtype


@pytest.fixture(scope="module", params=["u1", "u2"])
def pack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packed(tmp_path_factory.mktemp("device"), request.param)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options) or "plain")
@pytest.mark.parametrize("labels", ["index", "onehot"])
def test_the_device_makes_what_the_cpu_makes(pack: Path, options: dict[str, Any], labels: Any) -> None:
    rows = open_dataset(pack)
    given: dict[str, Any] = {"shuffle": True, "seed": 4, "labels": labels, **options}
    cpu, alone = rows.loader(4, **given), rows.loader(4, on="device", **given)
    sent = rows.loader(4, on="device", **given).to("cpu")
    for (images, masks), *others in zip(cpu, alone, sent, strict=True):
        for same, equal in others:
            assert same.dtype == images.dtype
            assert torch.allclose(same.float(), images.float(), atol=1 if same.dtype == torch.uint16 else 0)
            assert images.dtype == torch.uint16 or torch.equal(same, images)
            assert torch.equal(equal, masks)


@pytest.mark.parametrize(
    ("dtype", "bands", "facts"),
    [
        ("u1", 6, {"times": 2}),
        ("u1", 3, {"nodata": 0}),
        ("u2", 3, {"nodata": 9}),
        ("f4", 3, {"nodata": "nan"}),
    ],
)
def test_series_and_pixels_without_data_are_those_of_the_cpu(
    tmp_path: Path, dtype: str, bands: int, facts: dict[str, Any]
) -> None:
    dice = np.random.default_rng(11)

    def load(key: str) -> dict[str, NDArray[Any]]:
        image = dice.integers(1, 200, (24, 20, bands)).astype(dtype)
        image[:9, :7] = facts.get("nodata", 5)
        return {"image": image, "label": (image[..., 0] > 100).astype(np.uint8)}

    rows = Rows([f"{number:02}" for number in range(4)], load)
    build_pack(rows, tmp_path / "out", classes="2", labels="index", bands="all", workers=1, **facts)
    data, colour = open_dataset(tmp_path / "out", split="all"), Colour(0.3, (0.5, 0.9), channels=0.1)
    half: dict[str, Any] = {"dtype": torch.float16}
    for options in ({}, {"colour": colour}, {"colour": colour, **half}, {"colour": colour, "normalize": True, **half}):
        given: dict[str, Any] = {"crop": (30, 16), "flip": "all", **options}
        for (images, _), (same, _) in zip(data.loader(4, **given), data.loader(4, on="device", **given), strict=True):
            assert images.shape == same.shape
            assert images.dtype == same.dtype
            assert torch.allclose(images.double(), same.double(), atol=1e-3, equal_nan=True)
    numbers = data.loader(4, **half).to("cpu", normalize=True)
    bytes_ = data.loader(4).to("cpu", normalize=True)
    for (images, _), (same, _) in zip(numbers, bytes_, strict=True):
        assert torch.allclose(images, same, atol=0.02)


def test_what_the_device_does_not_make_is_refused(tmp_path: Path) -> None:
    rows = open_dataset(packed(tmp_path, "u1"), fields=("image", "label", "labelled"))
    with pytest.raises(RequestError, match="the field 'labelled' is made on the CPU"):
        rows.loader(4, on="device")
    field = replace(picture_field("image", "<f4", None), fill="nan", no_data=True)
    check_fields([Delivered(field, field)], scales=False)
    with pytest.raises(RequestError, match="'image' has pixels without data"):
        check_fields([Delivered(field, field)], scales=True)
    with pytest.raises(RequestError, match='expected "cpu" or "device"'):
        rows.loader(4, on="gpu")  # type: ignore[arg-type]
