"""The options of `packer build`: one table for the command line, configuration files, the environment and Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from packer.classes.overlaps import AS_CLASS, CROWDS, ORDERS
from packer.config.field_tables import FIELD
from packer.config.values import (
    ACCEPTED,
    BANDS,
    BLOCKS,
    BYTES,
    CLASSES,
    ENCODING,
    FILE,
    FINDING_KINDS,
    FLAG,
    FOLDS,
    LIMIT,
    NO_DATA,
    NONE,
    NUMBER,
    ORIENT,
    PATH,
    RANGE,
    RESOLUTION,
    SHARES,
    SIZE,
    SPACING,
    Kind,
    choice,
    number,
    text,
    whole,
)
from packer.data_checks.findings import KINDS
from packer.errors import did_you_mean
from packer.pixels.choices import (
    ALPHAS,
    CHECK,
    DECODES,
    EDGES,
    FITS,
    IMAGE_DTYPES,
    INTERPOLATIONS,
    LABEL_FORMS,
    MOST_PIXELS,
    PLACES,
)
from packer.pixels.field_options import ClassesField, PictureField
from packer.pixels.label_rules import CODECS, DIVISORS, NO_DATA_LABELS, UNKNOWNS
from readers.contract.kinds import MOST_BANDS
from readers.contract.manifest import STORAGES

TRUSTS = MTIME, DIGEST = ("mtime", "digest")
LOG_FORMATS = ("text", "json")
TASK_TIMEOUT = 300
"""Seconds that one pair may take. The largest picture takes a few; a decoder that takes more is in an endless loop."""


@dataclass(frozen=True)
class Option:
    """An option by its long name without the dashes, which is also its key in a configuration."""

    name: str
    fills: str
    """The attribute of the request that it fills, such as `shape.size`; empty if a build is the same without it."""
    kind: Kind
    help: str
    default: str | None = None
    several: bool = False

    @property
    def is_flag(self) -> bool:
        return self.kind is FLAG

    @property
    def unset(self) -> str | bool | tuple[str, ...] | None:
        """The setting that stands for the option if nothing sets it."""
        if self.several:
            return ()
        return False if self.is_flag else self.default

    @property
    def variable(self) -> str:
        """The environment variable that sets the option."""
        return "PACKER_" + self.name.upper().replace("-", "_")


CONFIGURATION = (
    Option(
        "config",
        "",
        FILE,
        "TOML file with these options and [[class]] tables. Other options win. See docs/guide/config.md.",
    ),
    Option(
        "preset",
        "",
        text("NAME"),
        "Settings of a public data set, such as voc: `packer presets` lists them. --config wins.",
    ),
)
"""Options that name further options, so they are not part of the result."""

ARGUMENTS = (
    Option("raw", "rows.raw", PATH, "The folder of images and labels."),
    Option("out", "store.out", PATH, "The folder of the pack."),
)

FROM = Option(
    "from",
    "rows.source",
    PATH,
    "A pack, or a folder, file or URL of a container with the rows, instead of RAW. See docs/guide/sources.md.",
)

PAIRS = (
    Option("only", "rows.only", text("SPLIT"), "Pack only this split. Repeatable.", several=True),
    Option(
        "image",
        "fields.image.files",
        text("TEMPLATE"),
        "Template of image paths: 'left/{split}/{key}.png'; {channel} is a band. With --from: the array or column.",
    ),
    Option(
        "label",
        "fields.label.files",
        text("TEMPLATE"),
        "Template of label paths: 'gt/{split}/{key}.png'. With --from: the name of the array or column.",
    ),
    Option(
        "field",
        "fields.named",
        FIELD,
        "A further field: 'depth=values:depth/{key}.png', or a JSON table. Repeatable. See docs/guide/fields.md.",
        several=True,
    ),
    Option("key", "rows.key", text("NAME"), "With --from: the name of the keys. Default: the numbers of the rows."),
    Option(
        "axis", "rows.axis", number(0, 1, 2), "With scans: the axis across which slices are cut. Default: 2, the third."
    ),
    Option(
        "orient",
        "rows.orient",
        ORIENT,
        "With scans: turn volumes to the nearest axes. RAS: columns to the right, rows to the front, slices up.",
        NONE,
    ),
    Option(
        "spacing",
        "rows.spacing",
        SPACING,
        "With scans: scale volumes to these mm from slice to slice, row to row, column to column.",
    ),
    Option("volumes", "rows.volumes", FLAG, "Make one row of each scan, or of each TIFF with many pages."),
    Option(
        "lists",
        "rows.lists",
        text("PATH"),
        "Split lists in RAW: a folder of <split>.txt, or 'splits/{split}.txt'. See docs/guide/pairs.md.",
    ),
    Option(
        "pairs",
        "rows.pairs",
        FILE,
        "CSV or TSV of all pairs: image,label[,split][,key]. Paths are relative to RAW or to FILE.",
    ),
    Option(
        "split",
        "rows.split",
        SHARES,
        "Draw splits by a hash of each key: 80/10/10 or train=90,val=10. A pair never changes its split.",
    ),
    Option(
        "folds",
        "rows.folds",
        FOLDS,
        "Draw this number of folds as --split draws splits, or take the folds of nnU-Net's splits_final.json.",
    ),
    Option(
        "split-blocks",
        "rows.blocks",
        BLOCKS,
        "With --fit tile: draw splits by blocks of pictures: their side and a margin. No tile touches two splits.",
    ),
    Option(
        "split-by",
        "rows.split_by",
        text("CAPTURE"),
        "With --split or --folds: keep pairs with the same capture of --image, such as {patient}, in one split.",
    ),
    Option(
        "split-exact",
        "rows.split_exact",
        FLAG,
        "With --split or --folds: exact sizes, every class in each. Reads all labels; new pairs may move others.",
    ),
    Option(
        "missing",
        "rows.missing",
        choice(("error", "skip", "keep")),
        "Files without a partner: stop, skip them, or keep images without labels and skip the rest.",
        "error",
    ),
)

LABELS = (
    Option(
        "annotations",
        "rows.annotations",
        text("TEMPLATE"),
        "Paint labels from files of a labelling tool, such as 'labels/{key}.json'. See docs/guide/annotations.md.",
    ),
    Option(
        "paint",
        "fields.paint",
        choice(ORDERS),
        "With annotations: the object on top is the later one in the file, the smaller one, or the later class.",
        ORDERS[0],
    ),
    Option(
        "crowd",
        "fields.crowd",
        choice(CROWDS),
        "With annotations: paint crowds as their class, or ignore their pixels.",
        AS_CLASS,
    ),
    Option(
        "reproject",
        "fields.reproject",
        FLAG,
        "With GeoJSON, shapefiles and GeoPackages: bring polygons to the coordinate system of their GeoTIFF.",
    ),
    Option(
        "classes",
        "fields.label.classes",
        CLASSES,
        "Class table (CSV, TOML, JSON), or values: 12 is 0-11; 1-150; 0,255. Default: class_dict.csv in RAW.",
    ),
    Option(
        "ignore",
        "fields.ignore",
        text("VALUE|COLOUR|NAME"),
        "Value, colour or class to ignore: 255, 0-6, #000000, or a class name. Repeatable.",
        several=True,
    ),
    Option(
        "label-codec",
        "fields.label.codec",
        choice(CODECS),
        "How to read label files. auto: by value or by colour, whichever the class table has.",
        ClassesField.codec,
    ),
    Option(
        "threshold",
        "fields.label.threshold",
        whole(1, 65535),
        "With --label-codec binary: gray values from this one on are foreground.",
    ),
    Option(
        "divisor",
        "fields.label.divisor",
        number(*DIVISORS),
        "With --label-codec instance: class = id // divisor (1000: Cityscapes; 256: KITTI, Mapillary).",
        str(ClassesField.divisor),
    ),
    Option(
        "palettes-differ",
        "fields.palettes_differ",
        FLAG,
        "With --label-codec index: use the index even if palettes differ between files.",
    ),
    Option(
        "unknown",
        "fields.label.unknown",
        choice(UNKNOWNS),
        "A value or colour that is in no class: stop, ignore it, or take the class with the nearest colour.",
        ClassesField.unknown,
    ),
    Option(
        "nodata-label",
        "fields.label.nodata",
        choice(NO_DATA_LABELS),
        "Labels of pixels without data: keep or ignore them.",
        ClassesField.nodata,
    ),
)

PICTURES = (
    Option(
        "size",
        "shape.size",
        SIZE,
        "Stored height x width, or native to keep each size. Default: the size of all pictures.",
    ),
    Option(
        "fit",
        "shape.fit",
        choice(FITS),
        "Fit pictures of other shapes to --size (default: stretch). See docs/guide/sizes.md.",
    ),
    Option(
        "overlap", "shape.overlap", whole(0, 1 << 30, "PIXELS"), "With --fit tile: overlap of neighbouring tiles.", "0"
    ),
    Option(
        "edge",
        "shape.edge",
        choice(EDGES),
        "With --fit tile: pad the last tile of a side, or shift it back into the picture.",
        "pad",
    ),
    Option(
        "resolution",
        "shape.resolution",
        RESOLUTION,
        "Scale maps until pixels have this side, such as 10 metres, in the units of their coordinates.",
    ),
    Option(
        "pad",
        "fields.image.pad",
        NUMBER,
        "The number around images, as stored.",
        str(PictureField.pad),
    ),
    Option(
        "interpolation",
        "shape.interpolation",
        choice(INTERPOLATIONS),
        "How to resize images. area and cubic average when they shrink. Labels always use nearest.",
        "area",
    ),
    Option(
        "image-range",
        "fields.image.range",
        RANGE,
        "Numbers in image files that become 0 and 1. Needed for images of 16 bits or floats.",
    ),
    Option(
        "alpha",
        "fields.image.alpha",
        choice(ALPHAS),
        "Images with transparent pixels: refuse them, or drop alpha and keep the stored colours.",
        PictureField.alpha,
    ),
    Option(
        "decode",
        "fields.image.decode",
        choice(DECODES),
        "fast: decode JPEGs at reduced size (1/2, 1/4, 1/8). Faster, but pixels differ slightly.",
        PictureField.decode,
    ),
    Option(
        "bands",
        "fields.image.bands",
        BANDS,
        "Store these bands with the numbers of the file: all, gray, rgb, 4,3,2 or B04,B03. Default: RGB of 8 bits.",
    ),
    Option(
        "nodata",
        "fields.image.nodata",
        NO_DATA,
        "Pixels without data: with --bands those with the number that a file names, or none, or a number, such as nan.",
        PictureField.nodata,
    ),
    Option(
        "times",
        "fields.image.times",
        whole(1, MOST_BANDS, "DATES"),
        "Dates of a time series, whose bands come date by date.",
        str(PictureField.times),
    ),
    Option("max-pixels", "rows.files.max_pixels", whole(1, 1 << 36), "Reject larger pictures.", str(MOST_PIXELS)),
    Option(
        "slide-level",
        "rows.files.slide_level",
        whole(0, 63, "N"),
        "With slides, such as .svs: the level to pack; 0 is the finest.",
        "0",
    ),
)

STORAGE = (
    Option("format", "store.format", choice(STORAGES), "How shards are stored.", "npy"),
    Option(
        "labels",
        "fields.label.form",
        choice(LABEL_FORMS),
        "Store labels as planes (C,H,W) or as index (H,W). Readers return either from either.",
        ClassesField.form,
    ),
    Option(
        "image-dtype",
        "fields.image.dtype",
        choice(tuple(IMAGE_DTYPES)),
        "Type of stored images; floats are scaled to 0..1. Default: uint8; with --bands, the type of the files.",
    ),
    Option(
        "encode",
        "fields.encode",
        ENCODING,
        "label=zstd, image=jpeg:95, image=tiles:256, … Repeatable. See docs/guide/encodings.md.",
        several=True,
    ),
    Option("shard-size", "store.shard_bytes", BYTES, "Approximate size of a shard. The limit is twice that.", "128MiB"),
)

BAD_PAIRS = (
    Option(
        "place",
        "rows.files.place",
        choice(PLACES),
        "Fields at different places in the world, by their headers: a bad pair, or packed nevertheless.",
        CHECK,
    ),
    Option(
        "on-bad", "judgement.on_bad", choice(("fail", "skip")), "What to do with a pair that cannot be packed.", "fail"
    ),
    Option(
        "max-bad",
        "judgement.max_bad",
        LIMIT,
        "With --on-bad skip: publish nothing if more pairs are bad (exit 3). Default: no limit.",
    ),
    Option(
        "near-duplicates",
        "judgement.near_duplicates",
        FLAG,
        "Also search for images that are nearly the same in different splits.",
    ),
    Option(
        "fail-on",
        "judgement.fail_on",
        FINDING_KINDS,
        "Publish nothing if there are findings of these kinds (exit 6): " + ", ".join(KINDS) + ".",
    ),
    Option(
        "accept",
        "judgement.accept",
        ACCEPTED,
        "Finding to accept: a kind, or one finding as --json and --fail-on print it. Repeatable.",
        several=True,
    ),
)

REFUSE, LOCK = "refuse", "lock"
RUNNING = (
    Option("workers", "running.workers", whole(1), "Number of cores to use. Default: all."),
    Option(
        "engine",
        "running.engine",
        text("URL"),
        "Build the shards on a cluster: dask://HOST:PORT, ray://HOST:PORT or ray://auto.",
    ),
    Option(
        "task-timeout",
        "running.task_timeout",
        whole(1, metavar="SECONDS"),
        "Reject a pair that takes longer than this.",
        str(TASK_TIMEOUT),
    ),
    Option(
        "trust",
        "judgement.trust",
        choice(TRUSTS),
        "What shows that a raw file is unchanged: size and time, or its content.",
        MTIME,
    ),
    Option("retry-bad", "judgement.retry_bad", FLAG, "Build shards with bad pairs again, even if no raw file changed."),
    Option("scratch", "store.scratch", PATH, "With a URL as OUT: the folder for shards on their way. Default: TMPDIR."),
    Option(
        "no-conditions",
        "store.no_conditions",
        choice((REFUSE, LOCK)),
        "With a URL as OUT: stop if the store ignores conditional writes, or take a lock.",
        REFUSE,
    ),
)

OUTPUT = (
    Option("dry-run", "", FLAG, "Print the plan and stop."),
    Option("json", "", FLAG, "Print the plan or the summary as JSON."),
    Option("quiet", "", FLAG, "Show no progress."),
    Option(
        "log-format", "", choice(LOG_FORMATS), "Format of stderr: text for people, or JSON lines with a run id.", "text"
    ),
    Option(
        "follow",
        "",
        FLAG,
        "Stay, and build what is added to RAW. Files without a partner wait for it. See docs/guide/nights.md.",
    ),
    Option(
        "publish-every",
        "",
        whole(0, metavar="MINUTES"),
        "With --follow: the time from one generation to the next; 0 publishes each change.",
        "60",
    ),
    Option("metrics-file", "", FILE, "Write metrics for Prometheus' textfile collector here, also after a failure."),
)
"""Options of the command alone; a build from Python has none of them."""

GROUPS = {
    "Configuration": CONFIGURATION,
    "Pairs": (FROM, *PAIRS),
    "Labels and classes": LABELS,
    "Pictures": PICTURES,
    "Storage": STORAGE,
    "Bad pairs": BAD_PAIRS,
    "Running": RUNNING,
    "Output": OUTPUT,
}
BUILD = {option.name: option for group in (PAIRS, LABELS, PICTURES, STORAGE, BAD_PAIRS, RUNNING) for option in group}
"""The options that decide what a build does."""
OPTIONS = {option.name: option for option in (*ARGUMENTS, FROM, *BUILD.values(), *OUTPUT)}
"""Every key of a configuration."""


def values_of(settings: Mapping[str, Any], part: str) -> dict[str, Any]:
    """Return the typed values of all options that fill a part of the request, by its attributes: `shape`, for example.

    An option that is not set has its default.
    """
    return {
        option.fills.removeprefix(f"{part}."): value_of(option, settings.get(name, option.unset))
        for name, option in BUILD.items()
        if option.fills.rpartition(".")[0] == part
    }


def option_of(fills: str) -> Option:
    """Return the option that fills this attribute of the request."""
    return next(option for option in BUILD.values() if option.fills == fills)


def value_of(option: Option, setting: Any) -> Any:
    """The typed value of a setting, None for none; ValueError if it is not valid."""
    if setting is None:
        return None
    try:
        return tuple(map(option.kind.parse, setting)) if option.several else option.kind.parse(setting)
    except ValueError as error:
        raise ValueError(f"{error}{_other_option(option, setting)}") from error


def _other_option(option: Option, setting: Any) -> str:
    """The end of a message about an unknown choice that is near to none of its own: another option that has it."""
    if not option.kind.choices or did_you_mean(str(setting), option.kind.choices):
        return ""
    values = {value: other for other in OPTIONS.values() for value in other.kind.choices}
    near = did_you_mean(str(setting), values)
    return near.replace("mean ", f"mean --{values[near[len('; did you mean ') : -1]].name} ") if near else ""
