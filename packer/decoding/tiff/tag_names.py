"""The names of the tags of a TIFF that decide its pixels, as the standard has them."""

from __future__ import annotations

DISPUTED = {32995: "Matteing", 32996: "DataType", 32997: "ImageDepth", 32998: "TileDepth"}
"""Older names for alpha and for the type of the numbers, and the depth of volumes: only libtiff obeys them."""
NAMES = {
    **DISPUTED,
    256: "ImageWidth",
    257: "ImageLength",
    258: "BitsPerSample",
    259: "Compression",
    262: "PhotometricInterpretation",
    266: "FillOrder",
    273: "StripOffsets",
    274: "Orientation",
    277: "SamplesPerPixel",
    278: "RowsPerStrip",
    279: "StripByteCounts",
    284: "PlanarConfiguration",
    292: "T4Options",
    293: "T6Options",
    317: "Predictor",
    320: "ColorMap",
    322: "TileWidth",
    323: "TileLength",
    324: "TileOffsets",
    325: "TileByteCounts",
    338: "ExtraSamples",
    339: "SampleFormat",
    347: "JPEGTables",
    700: "XMP",
}


def named(tag: int) -> str:
    """Return the name and the number of a tag."""
    return f"{NAMES[tag]} ({tag})"
