"""Check the headers of an image and its label, without decoding a pixel."""

from __future__ import annotations

from pathlib import Path

from packer.decoding.decode import check_image, check_label
from packer.decoding.file_types import read_header
from packer.decoding.header import Header
from packer.decoding.raw_file import naming
from packer.decoding.rules import MOST_PIXELS, ImageRules
from packer.errors import BadPair
from readers.contract.regular_files import open_raw
from readers.contract.tiles import Size


def check_pair(raw: Path, image: str, label: str, rules: ImageRules, lossy_label: bool = False) -> Size:
    """Return the upright (height, width) of a pair, or raise BadPair if a shard would certainly reject it."""
    image_header, label_header = read_pair_headers(raw, image, label, rules.max_pixels)
    with naming(image):
        check_image(image_header, rules)
    with naming(label):
        check_label(label_header, lossy_label)
    check_same_size(image, image_header.size, label, label_header.size)
    return image_header.size


def read_pair_headers(raw: Path, image: str, label: str, max_pixels: int = MOST_PIXELS) -> tuple[Header, Header]:
    """Read both headers. A BadPair names the file."""
    headers = []
    for path in (image, label):
        with naming(path), open_raw(raw / path) as file:
            headers.append(read_header(file, max_pixels))
    return headers[0], headers[1]


def check_same_size(image: str, image_size: tuple[int, ...], label: str, label_size: tuple[int, ...]) -> None:
    """Refuse an image and a label of different sizes. Scaling one to the other would move the labels."""
    if image_size != label_size:
        raise BadPair(
            f"{image} is {image_size[0]}x{image_size[1]}, its label {label} is {label_size[0]}x{label_size[1]} "
            "(height x width); they must have the same size"
        )
