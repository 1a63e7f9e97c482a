"""The names of the ways to decode, to resize and to store pictures. Light: numpy is not needed."""

from packer.decoding.band_choice import BandChoice, band_choice, bands_text
from packer.decoding.no_data_choice import no_data_choice
from packer.decoding.rules import ALPHAS, CHECK, DECODES, EXACT, FAST, MOST_PIXELS, PLACES
from readers.contract.fields import READABLE

__all__ = [
    "ALPHAS",
    "AREA",
    "CHECK",
    "CROP_OR_PAD",
    "DECODES",
    "EDGES",
    "ENCODINGS",
    "EXACT",
    "FAST",
    "FITS",
    "FLOATS",
    "IMAGE_DTYPES",
    "INTERPOLATIONS",
    "LABEL_FORMS",
    "LINEAR",
    "MOST_PIXELS",
    "NATIVE",
    "NUMBERS",
    "PLACES",
    "TILE",
    "BandChoice",
    "band_choice",
    "bands_text",
    "no_data_choice",
]

NATIVE, TILE, CROP_OR_PAD = "native", "tile", "crop-or-pad"
FITS = ("stretch", "letterbox", CROP_OR_PAD, "shorter-side", TILE, NATIVE)
ENCODINGS = READABLE
EDGES = ("pad", "shift")
INTERPOLATIONS = AREA, LINEAR, *_ = ("area", "linear", "cubic", "nearest")
IMAGE_DTYPES = {"uint8": "|u1", "float16": "<f2", "float32": "<f4"}
NUMBERS = {**IMAGE_DTYPES, "uint16": "<u2", "uint32": "<u4", "int16": "<i2"}
"""The types of stored numbers by their names in NumPy."""
FLOATS = ("<f2", "<f4")
LABEL_FORMS = ("onehot", "index")
