"""The options of `packer build`: one table for the command line, configuration files, the environment and Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from packer.annotations.choices import AS_CLASS, CROWDS, ORDERS
from packer.config.field_tables import FIELD
from packer.config.values import (
    ACCEPTED,
    BANDS,
    BYTES,
    CLASSES,
    ENCODING,
    FILE,
    FINDING_KINDS,
    FLAG,
    LIMIT,
    PATH,
    RANGE,
    SHARES,
    SIZE,
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
    DECODES,
    EDGES,
    FITS,
    IMAGE_DTYPES,
    INTERPOLATIONS,
    LABEL_FORMS,
    MOST_PIXELS,
)
from packer.pixels.field_options import ClassesField, PictureField
from packer.pixels.label_rules import CODECS, DIVISORS, UNKNOWNS
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
        "A TOML file with these options by their long names and [[class]] tables. Other options win.",
    ),
    Option(
        "preset",
        "",
        text("NAME"),
        "How a public data set is paired and read, such as voc. `packer presets` lists them. --config wins.",
    ),
)
"""Options that name further options, so they are not part of the result."""

ARGUMENTS = (
    Option("raw", "rows.raw", PATH, "The folder of images and labels."),
    Option("out", "store.out", PATH, "The folder of the pack."),
)

FROM = Option(
    "from",
    "rows.given",
    PATH,
    "Where the rows come from, instead of RAW: another pack, to convert, resize or take a part of it; a folder; or a "
    "container of arrays or pictures, such as WebDataset tars or Parquet.",
)

PAIRS = (
    Option("only", "rows.only", text("SPLIT"), "Pack only this split. Repeatable.", several=True),
    Option(
        "image",
        "fields.image.files",
        text("TEMPLATE"),
        "Where images are, such as 'left/{split}/{key}_img.png'. Default: by layout. Of a container: their name.",
    ),
    Option(
        "label",
        "fields.label.files",
        text("TEMPLATE"),
        "Where labels are, such as 'gt/{split}/{key}_gt.png'; or their name.",
    ),
    Option(
        "field",
        "fields.named",
        FIELD,
        "A further field of each row, such as 'depth=values:depth/{key}.png'. Kinds: picture, classes, ids, values, "
        "multilabel. A table in JSON has more options. Repeatable.",
        several=True,
    ),
    Option(
        "key",
        "rows.key",
        text("NAME"),
        "With a container: the name of the keys in it. Default: the numbers of the rows.",
    ),
    Option(
        "axis",
        "rows.axis",
        number(0, 1, 2),
        "With NIfTI: the axis across which slices are cut. Default: 2, the third.",
    ),
    Option(
        "volumes",
        "rows.volumes",
        FLAG,
        "Make one row of each volume: of a NIfTI file, or of a TIFF, whose pages are the slices.",
    ),
    Option(
        "lists",
        "rows.lists",
        text("PATH"),
        "Split lists in RAW: a folder of <split>.txt, or a path such as 'splits/{split}.txt'. A line is a key, an "
        "image path, or the paths of an image and its label.",
    ),
    Option(
        "pairs",
        "rows.pairs",
        FILE,
        "A CSV or TSV with all pairs: image,label[,split][,key]. Paths are relative to RAW or to FILE.",
    ),
    Option(
        "split",
        "rows.split",
        SHARES,
        "Draw splits by a hash of each key, such as 80/10/10 or train=90,val=10. Shares hold on average. A pair never "
        "changes its split.",
    ),
    Option(
        "split-by",
        "rows.split_by",
        text("CAPTURE"),
        "With --split: keep all pairs with the same capture of --image, such as {patient}, in one split.",
    ),
    Option(
        "split-exact",
        "rows.split_exact",
        FLAG,
        "With --split: draw splits of exact sizes, with every class in its share. Reads all labels first. Another pair "
        "may move others to another split.",
    ),
    Option(
        "missing",
        "rows.missing",
        choice(("error", "skip", "keep")),
        "What to do with images without labels, labels without images, and listed names without files. keep packs "
        "images without labels, too, and leaves out the others.",
        "error",
    ),
)

LABELS = (
    Option(
        "annotations",
        "rows.annotations",
        text("TEMPLATE"),
        "Paint the labels from the files of a tool: one for each picture, such as 'labels/{key}.json', or for "
        "many, such as instances_train2017.json. Default: files next to the pictures, if there are no label pictures.",
    ),
    Option(
        "paint",
        "fields.paint",
        choice(ORDERS),
        "With annotations: the object on top is the later one of the file, the smaller one, or one of the later class.",
        ORDERS[0],
    ),
    Option(
        "crowd",
        "fields.crowd",
        choice(CROWDS),
        "With annotations: what a crowd of objects without outlines of their own becomes: pixels of its class, or "
        "ignored ones.",
        AS_CLASS,
    ),
    Option(
        "classes",
        "fields.label.classes",
        CLASSES,
        "Class table (CSV, TOML, JSON, label map), or the values of the classes: 12 is 0-11; 1-150; 0,255. "
        "Default: class_dict.csv in RAW.",
    ),
    Option(
        "ignore",
        "fields.ignore",
        text("VALUE|COLOUR|NAME"),
        "Values, colours or classes to ignore: 255, 0-6, #000000, or a class name. Repeatable.",
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
        "With --label-codec index: use the index even if a colour has different indices in different files.",
    ),
    Option(
        "unknown",
        "fields.label.unknown",
        choice(UNKNOWNS),
        "How to treat a value or colour that is in no class. nearest: take the class with the nearest colour.",
        ClassesField.unknown,
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
        "How to fit pictures of other shapes to --size (default: stretch). tile cuts them up. Labels ignore padding.",
    ),
    Option(
        "overlap",
        "shape.overlap",
        whole(0, 1 << 30, "PIXELS"),
        "With --fit tile: overlap of neighbouring tiles, in pixels.",
        "0",
    ),
    Option(
        "edge",
        "shape.edge",
        choice(EDGES),
        "With --fit tile: pad the last tile of a side, or shift it back into the picture.",
        "pad",
    ),
    Option(
        "interpolation",
        "shape.interpolation",
        choice(INTERPOLATIONS),
        "How to resize images. area and cubic average exactly when they shrink. Labels always use nearest.",
        "area",
    ),
    Option(
        "image-range",
        "fields.image.range",
        RANGE,
        "The numbers in image files that become 0 and 1. Needed for images of 16 bits or floats.",
    ),
    Option(
        "alpha",
        "fields.image.alpha",
        choice(ALPHAS),
        "How to treat images with transparent pixels. drop keeps the stored colours.",
        PictureField.alpha,
    ),
    Option(
        "decode",
        "fields.image.decode",
        choice(DECODES),
        "fast: decode JPEGs at a half, a quarter or an eighth of their size, not below the stored size. Other pixels.",
        PictureField.decode,
    ),
    Option(
        "bands",
        "fields.image.bands",
        BANDS,
        "Store these bands of images as they are in the files: all, gray, rgb, or numbers from 1 on, such as 4,3,2. "
        "Default: red, green and blue of 8 bits.",
    ),
    Option("max-pixels", "rows.files.max_pixels", whole(1, 1 << 36), "Reject larger pictures.", str(MOST_PIXELS)),
    Option(
        "slide-level",
        "rows.files.slide_level",
        whole(0, 63, "N"),
        "With slides, such as .svs: the level that is packed; 0 is the finest.",
        "0",
    ),
)

STORAGE = (
    Option("format", "store.format", choice(STORAGES), "How shards are stored.", "npy"),
    Option(
        "labels",
        "fields.label.form",
        choice(LABEL_FORMS),
        "Store labels as planes (C,H,W) or as the compact index (H,W). Readers return either from either.",
        ClassesField.form,
    ),
    Option(
        "image-dtype",
        "fields.image.dtype",
        choice(tuple(IMAGE_DTYPES)),
        "Type of stored images; floats are scaled to 0..1. Default: uint8; with --bands, that of the files.",
    ),
    Option(
        "encode",
        "fields.encode",
        ENCODING,
        "Store a field smaller: label=zstd loses nothing; image=jpeg:95 does. image=jpeg:keep takes JPEG files as they "
        "are, if their pixels are stored as they are. image=tiles:256, label=tiles-zstd:256 and image=tiles-jpeg:256 "
        "store large rows in tiles, for crops. Repeatable.",
        several=True,
    ),
    Option("shard-size", "store.shard_bytes", BYTES, "Approximate size of a shard. The limit is twice that.", "128MiB"),
)

BAD_PAIRS = (
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
        "Findings to accept: a kind, or one finding as --json and --fail-on print it. Repeatable.",
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
        "Build the shards on a cluster: dask://HOST:PORT, ray://HOST:PORT or ray://auto. Default: on this machine.",
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
        "How to decide that a raw file is unchanged: by size and time, or by its content.",
        MTIME,
    ),
    Option("retry-bad", "judgement.retry_bad", FLAG, "Build shards with bad pairs again, even if no raw file changed."),
    Option("scratch", "store.scratch", PATH, "With a URL as OUT: the folder for shards on their way. Default: TMPDIR."),
    Option(
        "no-conditions",
        "store.no_conditions",
        choice((REFUSE, LOCK)),
        "With a URL as OUT: what to do if the store does not keep conditional writes.",
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
