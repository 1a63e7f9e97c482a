"""Pack real public data sets, and compare the label pixels of each with the counts of another decoder.

    tools/run public_sets SETS [OUT.md]      SETS: the folder that holds the sets, each as published

Pillow and a plain table look-up count every label. If there is an EXPECT.json among the sets, its counts are compared,
too. Exits 1 if any count differs.
"""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from program import parser
from tables import markdown

from packer.cli import main as packer
from readers.contract.files import blake3_of
from readers.contract.manifest import Manifest
from readers.contract.receipt import SUFFIX, Receipt
from readers.contract.statistics import class_counts

DATUMARO, TORCHGEO = "datumaro_layouts/tests/assets", "torchgeo_layouts/tests/data"
LABELME = "labelme_voc/examples"
NATIVE = "--size native --labels index"
HEAD = """# Public data sets, packed

Made by `tools/run public_sets SETS docs/measured/public_sets.md`. SETS is a folder of public data sets, unchanged.
Some are the test data that datumaro and torchgeo ship in their true layouts. Each is packed with the options shown and
`--size native --labels index`. The label pixels of every class are then compared with what Pillow decodes and a plain
look-up counts. "= EXPECT": an independent count was the same, too.

"""
PACKED = ("data set", "options", "pairs", "left out", "label pixels")
REFUSED = ("data set", "options", "why")


@dataclass(frozen=True)
class Set:
    """A data set: its folder, the options of the build, and its names in EXPECT.json."""

    name: str
    folder: str
    options: str = ""
    expect: tuple[str, ...] = ()
    pairs: int = 0
    """The expected number of pairs; 0 if the build must refuse the set."""


CAMVID = "--image 'images_prepped_{split}/{key}' --label 'annotations_prepped_{split}/{key}'"
CAMVID_32 = "--image '{split:train|val|test}/{key}' --label '{split:train|val|test}annot/{key}'"
CITYSCAPES = (
    "--image 'leftImg8bit/{split}/{city}/{key}_leftImg8bit.png' "
    "--label 'gtFine/{split}/{city}/{key}_gtFine_labelTrainIds.png'"
)
KITTI = "--image '{split}/image_2/{key}' --label '{split}/instance/{key}' --label-codec instance --divisor 256"
DEEPGLOBE = (
    "--preset deepglobe --image 'data/{split}_data/images/{key}_sat.jpg' "
    "--label 'data/{split}_data/masks/{key}_mask.png'"
)
SETS = (
    Set("CamVid, 11 classes", "camvid_keras_example/test/example_dataset", f"--preset camvid-11 {CAMVID}",
        ("camvid_keras train", "camvid_keras test"), 8),
    Set("ADE20K scene parsing", "ade20k_sample/sampleData",
        "--preset ade20k --image 'images/{key}' --label 'annotations/{key}'", ("ade20k",), 3),
    Set("ADE20K, 0 a class", "ade20k_sample/sampleData", "--classes 0-150", ("ade20k",), 3),
    Set("PASCAL VOC 2012", "voc2012_original/misc", "--preset voc --image '{key}.jpg' --label '{key}.png'", (), 1),
    Set("LabelMe, semantic", f"{LABELME}/semantic_segmentation/data_dataset_voc", "--preset voc", ("labelme sem",), 3),
    Set("LabelMe, instances", f"{LABELME}/instance_segmentation/data_dataset_voc", "--preset voc", ("labelme inst",),
        3),
    Set("LabelMe, video", f"{LABELME}/video_annotation/data_dataset_voc", "--classes 3 --ignore 255",
        ("labelme video",), 5),
    Set("MMSegmentation's pseudo data", "mmseg_pseudo/tests/data/pseudo_dataset", "--classes 7", ("mmseg_pseudo",), 5),
    Set("Membranes (U-Net)", "unet_membrane/data/membrane/train",
        "--preset binary-medical --image 'image/{key}' --label 'label/{key}'", ("unet_membrane",), 30),
    Set("Membranes, augmented", "unet_membrane/data/membrane/train/aug",
        "--image 'image_{key}' --label 'mask_{key}' --label-codec binary --threshold 128", (), 6),
    Set("CamVid, 32 classes", f"{DATUMARO}/camvid_dataset", f"--preset camvid {CAMVID_32}", (), 4),
    Set("Cityscapes, train ids", f"{DATUMARO}/cityscapes_dataset/train_dataset",
        f"{CITYSCAPES} --classes 34 --ignore 255", (), 4),
    Set("KITTI, instances of 16 bits", f"{DATUMARO}/kitti_dataset/kitti_segmentation", f"--classes 34 {KITTI}", (), 2),
    Set("Mapillary Vistas 1.2", f"{DATUMARO}/mapillary_vistas_dataset",
        "--image '{split}/images/{key}' --label '{split}/v1.2/labels/{key}' --classes '{set}/config_v1.2.json'", (), 3),
    Set("Mapillary Vistas 2.0", f"{DATUMARO}/mapillary_vistas_dataset",
        "--image '{split}/images/{key}' --label '{split}/v2.0/labels/{key}' --classes '{set}/config_v2.0.json'", (), 3),
    Set("ADE20K 2017, full", f"{DATUMARO}/ade20k2017_dataset/dataset",
        "--preset ade20k-full --image '{split}/{key}.jpg' --label '{split}/{key}_seg.png'", (), 2),
    Set("ADE20K 2020, full", f"{DATUMARO}/ade20k2020_dataset/dataset",
        "--preset ade20k-full --image '{split}/{key}.jpg' --label '{split}/{key}_seg.png'", (), 2),
    Set("VOC, one image without label", f"{DATUMARO}/voc_dataset/voc_dataset1",
        "--classes '{set}/../voc_dataset2/labelmap.txt' --missing skip", (), 1),
    Set("SYNTHIA rand", f"{DATUMARO}/synthia_dataset/rand_custom_labelmap",
        "--image 'RGB/{key}' --label 'GT/{key}' --classes '{set}/label_colors.txt'", (), 2),
    Set("Kaggle, image + mask", f"{DATUMARO}/kaggle_dataset/image_mask", "--classes 256", (), 2),
    Set("Common semantic layout", f"{DATUMARO}/common_semantic_segmentation_dataset/dataset",
        "--classes '{set}/dataset_meta.json'", (), 2),
    Set("LoveDA", f"{TORCHGEO}/loveda", "--preset loveda", (), 4),
    Set("DeepGlobe", f"{TORCHGEO}/deepglobelandcover", DEEPGLOBE, (), 6),
    Set("Potsdam, RGB and infrared", f"{TORCHGEO}/potsdam",
        "--preset potsdam --image '4_Ortho_RGBIR/top_potsdam_{key}_RGBIR.tif' "
        "--label 'top_potsdam_{key}_label.tif' --alpha drop", (), 4),
    Set("Vaihingen", f"{TORCHGEO}/vaihingen", "--preset potsdam --image 'top/{key}.tif' --label '{key}.tif'", (), 4),
    Set("GID-15", f"{TORCHGEO}/gid15", "--image 'GID/img_dir/{split:train|val}/{key}' "
        "--label 'GID/ann_dir/{split:train|val}/{key}_15label' --classes 16", (), 4),
    Set("Inria", f"{TORCHGEO}/inria", "--label-codec binary --image 'AerialImageDataset/{split:train}/images/{key}' "
        "--label 'AerialImageDataset/{split:train}/gt/{key}'", (), 7),
    Set("LEVIR-CD, first image", f"{TORCHGEO}/levircd/levircd",
        "--label-codec binary --threshold 128 --image 'A/{key}' --label 'label/{key}'", (), 6),
    Set("LandCover.ai", f"{TORCHGEO}/landcoverai",
        "--classes 5 --image 'output/{key}.jpg' --label 'output/{key}_m.png' --lists '{split:train}.txt'", (), 2),
    Set("DFC 2022", f"{TORCHGEO}/dfc2022", "--classes 256 --image 'labeled_{split}/{city}/BDORTHO/{key}' "
        "--label 'labeled_{split}/{city}/UrbanAtlas/{key}_UA2012'", (), 2),
    Set("GeoNRW", f"{TORCHGEO}/geonrw", "--classes 11", (), 0),
)  # fmt: skip


def main() -> None:
    options = parser(__doc__)
    options.add_argument("sets", type=Path)
    options.add_argument("out", type=Path, nargs="?")
    chosen = options.parse_args()
    folder: Path = chosen.sets
    facts = folder / "EXPECT.json"
    expected = json.loads(facts.read_text()) if facts.is_file() else {}
    packed, refused, wrong = [PACKED], [REFUSED], 0
    for data_set in SETS:
        with tempfile.TemporaryDirectory() as out:
            answer = build(folder / data_set.folder, data_set.options, Path(out) / "out")
            shown = f"`{data_set.options}`".replace("|", "\\|") if data_set.options else "none"
            if isinstance(answer, str):
                refused.append((data_set.name, shown, first_lines(answer)))
                wrong += data_set.pairs > 0
                continue
            verdict = compare(folder / data_set.folder, Path(out) / "out", data_set, expected)
        wrong += "differ" in verdict or answer["pairs"] - len(answer["rejects"]) != data_set.pairs
        left_out = [*answer["missing"], *(f"{reject['key']}: {reject['reason']}" for reject in answer["rejects"])]
        left = "; ".join(left_out[:3]) + (f"; … {len(left_out)} in all" if len(left_out) > 3 else "") or "none"
        packed.append((data_set.name, shown, str(answer["pairs"] - len(answer["rejects"])), left, verdict))
    page = (
        HEAD
        + "\n".join([*markdown(packed, padded=False), "", "## Refused", "", *markdown(refused, padded=False)])
        + "\n"
    )
    if chosen.out:
        chosen.out.write_text(page)
    sys.stdout.write(page)
    sys.exit(f"{wrong} sets differ from the expected" if wrong else 0)


def build(raw: Path, options: str, out: Path) -> Any:
    """Return the summary of `packer build` as JSON, or the text of its error."""
    words = [word.replace("{set}", str(raw)) for word in shlex.split(f"{NATIVE} {options}")]
    summary, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(summary), contextlib.redirect_stderr(errors):
        code = packer.main(["build", "--quiet", "--json", *words, str(raw), str(out)], standalone_mode=False)
    return json.loads(summary.getvalue()) if not code else errors.getvalue().replace(str(raw), ".")


def first_lines(words: str) -> str:
    """Return the first lines of an error for a cell of a table."""
    lines = [line.strip().removeprefix("packer: ") for line in words.splitlines() if not line.startswith("finding")]
    return " ".join(lines[:3]).replace("|", "\\|")[:300]


def compare(raw: Path, out: Path, data_set: Set, expected: dict[str, Any]) -> str:
    """Compare the pixels of each class with the counts of Pillow and of EXPECT.json, in words."""
    manifest = Manifest.load(out)
    counted: Counter[str] = Counter()
    for path in labels_packed(raw, out):
        counted += count(path, manifest)
    counts = class_counts(manifest.statistics)
    packed = dict(zip(manifest.classes.names, counts.classes, strict=True))
    packed[""] = counts.ignored
    words = "= Pillow" if counted == +Counter(packed) else f"differ: {counted} by Pillow, {packed} packed"
    if data_set.expect:
        sums: Counter[int] = Counter()
        for name in data_set.expect:
            sums.update({int(value): pixels for value, pixels in expected[name]["index_hist"].items()})
        wanted: Counter[str] = Counter()
        for value, pixels in sums.items():
            wanted[class_of_value(manifest, value)] += pixels
        words += ", = EXPECT" if wanted == +Counter(packed) else f", differ from EXPECT: {wanted}"
    return f"{sum(packed.values()):,} {words}"


def labels_packed(raw: Path, out: Path) -> Iterator[Path]:
    """Yield the label file of every row, found by its BLAKE3 in the receipts."""
    files = {blake3_of(path): path for path in raw.rglob("*") if path.is_file()}
    for path in (out / "shards").glob(f"*{SUFFIX}"):
        receipt = Receipt.load(path)
        kept = set(receipt.keys)
        yield from (files[source.identities[1]] for source in receipt.sources if source.key in kept)


def count(path: Path, manifest: Manifest) -> Counter[str]:
    """Count the pixels of each class in a label with Pillow and a dictionary. The name of ignored pixels is ""."""
    rules, counts = manifest.recipe["fields"][1]["read"], Counter[str]()
    with Image.open(path) as picture:
        for source, pixels in read_sources(picture, rules):
            counts[class_of(manifest, source, rules)] += pixels
    return counts


def read_sources(picture: Image.Image, rules: dict[str, Any]) -> Iterator[tuple[int | tuple[int, ...], int]]:
    """Yield every value or colour of a label with its number of pixels, as the codec of the label reads it."""
    sources = sources_in(picture, rules)
    if sources.ndim == 3:
        yield from Counter(map(tuple, sources.reshape(-1, 3).tolist())).items()
    else:
        yield from Counter(sources.reshape(-1).tolist()).items()


def sources_in(picture: Image.Image, rules: dict[str, Any]) -> NDArray[np.int64]:
    """Return the value (H,W) or the colour (H,W,3) of each pixel of a label, as the codec of the label reads it."""
    codec, divisor = rules["codec"], rules["divisor"]
    if codec in ("colour", "ade20k") or (codec == "auto" and picture.mode == "RGB"):
        colours = np.asarray(picture.convert("RGB")).astype(np.int64)
        return np.asarray(colours[..., 0] // 10 * 256 + colours[..., 1] if codec == "ade20k" else colours)
    plain = picture if picture.mode in ("P", "L", "1") or "I" in picture.mode else picture.convert("L")
    numbers = np.asarray(plain).astype(np.int64)
    if codec == "binary" and rules["threshold"] is not None:
        return np.asarray(numbers >= rules["threshold"], np.int64)
    return np.asarray(numbers // divisor if codec == "instance" else numbers)


def class_of(manifest: Manifest, source: int | tuple[int, ...], rules: dict[str, Any]) -> str:
    if isinstance(source, int) and rules["codec"] == "binary" and rules["threshold"] is not None:
        return manifest.classes.names[source]
    if isinstance(source, int):
        return class_of_value(manifest, source)
    for known in manifest.classes.classes:
        if source in known.colours:
            return known.name
    if source in manifest.classes.ignored_colours or rules["unknown"] == "ignore":
        return ""
    assert rules["unknown"] == "nearest", f"{source} is in no class"
    colours = [(colour, known.name) for known in manifest.classes.classes for colour in known.colours]
    return min(colours, key=lambda entry: sum((a - b) ** 2 for a, b in zip(entry[0], source, strict=False)))[1]


def class_of_value(manifest: Manifest, value: int) -> str:
    owners = [known.name for known in manifest.classes.classes if value in known.values]
    if owners or value in manifest.classes.ignored_values:
        return owners[0] if owners else ""
    return f"{value}, which is in no class"
