"""The names of the ways to decode, to resize and to store pictures. Light: numpy is not needed."""

from packer.decoding.rules import ALPHAS, DECODES, EXACT, FAST, MOST_PIXELS

__all__ = [
    "ALPHAS",
    "DECODES",
    "EDGES",
    "EXACT",
    "FAST",
    "FITS",
    "IMAGE_DTYPES",
    "INTERPOLATIONS",
    "LABEL_FORMS",
    "MOST_PIXELS",
    "NATIVE",
    "TILE",
]

NATIVE, TILE = "native", "tile"
FITS = ("stretch", "letterbox", "crop-or-pad", "shorter-side", TILE, NATIVE)
EDGES = ("pad", "shift")
INTERPOLATIONS = ("area", "linear", "cubic", "nearest")
IMAGE_DTYPES = {"uint8": "|u1", "float16": "<f2", "float32": "<f4"}
LABEL_FORMS = ("onehot", "index")
