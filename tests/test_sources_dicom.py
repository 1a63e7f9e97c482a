"""Folders of DICOM slices as volumes: every number and every corner is what SimpleITK's reader of series has."""

from __future__ import annotations

import json
import random
import re
import shutil
import struct
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import errors_of, good
from drills.published import same
from numpy.typing import NDArray
from test_sources_metaimage_nrrd import TILES, array, check_slabs, corners, corners_of, save

from packer import verify_pack
from packer.errors import BadPair, UsageError
from packer.sources.container import Names
from packer.sources.volumes import dicom_slice
from packer.sources.volumes.dicom_rle import unpack_rle
from packer.sources.volumes.volume import Volume
from packer.sources.volumes.volume_slices import VolumeSlices
from readers import open_dataset

pytestmark = pytest.mark.usefixtures("in_process")

pydicom: Any = pytest.importorskip("pydicom")
uid: Any = pytest.importorskip("pydicom.uid")
sitk: Any = pytest.importorskip("SimpleITK")

SIDES = (7, 6, 5)
"""Slices, rows, columns."""
OBLIQUE = (0.28, -0.96, 0.0, 0.0, 0.0, -1.0)
SERIES = "1.2.826.0.1.3680043.8.498.1"
Change = Callable[[int, Any], None]
"""Changes the header of a slice, whose number is the first argument."""


def write_slice(path: Path, pixels: NDArray[Any], position: Any, syntax: str, change: Change, number: int) -> None:
    file = pydicom.Dataset()
    file.SOPClassUID, file.SOPInstanceUID = uid.CTImageStorage, f"{SERIES}.{number + 1}"
    file.file_meta = pydicom.dataset.FileMetaDataset()
    file.file_meta.MediaStorageSOPClassUID = file.SOPClassUID
    file.file_meta.MediaStorageSOPInstanceUID = file.SOPInstanceUID
    file.file_meta.TransferSyntaxUID = syntax
    file.Modality, file.SeriesInstanceUID, file.StudyInstanceUID, file.InstanceNumber = "CT", SERIES, SERIES, number + 1
    file.Rows, file.Columns, file.SamplesPerPixel = *pixels.shape, 1
    file.PhotometricInterpretation = "MONOCHROME2"
    bits = 8 * pixels.dtype.itemsize
    file.BitsAllocated, file.BitsStored, file.HighBit = bits, bits, bits - 1
    file.PixelRepresentation = int(pixels.dtype.kind == "i")
    file.ImageOrientationPatient = list(OBLIQUE)
    file.ImagePositionPatient = [round(float(part), 6) for part in position]
    file.PixelSpacing, file.SliceThickness = [2.25, 1.5], 3.0
    is_big = syntax == uid.ExplicitVRBigEndian
    file.PixelData = pixels.astype(pixels.dtype.newbyteorder(">" if is_big else "<")).tobytes()
    file["PixelData"].VR = "OB" if bits == 8 else "OW"
    change(number, file)
    if syntax == uid.RLELossless:
        file.file_meta.TransferSyntaxUID = uid.ExplicitVRLittleEndian
        file.compress(uid.RLELossless, encoding_plugin="pydicom")
    path.parent.mkdir(parents=True, exist_ok=True)
    is_implicit = syntax == uid.ImplicitVRLittleEndian
    file.save_as(path, enforce_file_format=True, implicit_vr=is_implicit, little_endian=not is_big)


def unchanged(number: int, file: Any) -> None:
    """Change nothing."""


def make_series(
    folder: Path,
    dtype: str = "i2",
    syntax: str = "1.2.840.10008.1.2.1",
    change: Change = unchanged,
    name: str = "IM{}.dcm",
    seed: int = 0,
) -> NDArray[Any]:
    """Write a series whose files are not in the order of their slices. Return its numbers (slices, rows, columns)."""
    most = min(np.iinfo(dtype).max, 4000)
    numbers = np.random.default_rng(seed).integers(0, most, SIDES).astype(dtype)
    if np.dtype(dtype).kind == "i":
        numbers -= np.dtype(dtype).type(most // 2)
    normal = np.cross(OBLIQUE[:3], OBLIQUE[3:])
    for number, pixels in enumerate(numbers):
        position = np.array([40.5, -30.25, 70]) + 3.0 * number * normal
        write_slice(folder / name.format((number * 3) % SIDES[0]), pixels, position, syntax, change, number)
    return numbers


def truth(folder: Path) -> Any:
    reader = sitk.ImageSeriesReader()
    reader.SetFileNames(reader.GetGDCMSeriesFileNames(str(folder)))
    return reader.Execute()


def label_of(image: Any, path: Path, code: str = "") -> NDArray[Any]:
    """Write a label of the same grid, perhaps with axes in other directions. Return its numbers."""
    numbers = np.random.default_rng(9).integers(0, 3, SIDES).astype(np.uint8)
    label = sitk.GetImageFromArray(numbers)
    label.CopyInformation(image)
    save(path, sitk.DICOMOrient(label, code) if code else label)
    return numbers


@pytest.mark.parametrize(
    ("syntax", "dtype"),
    [
        *product((uid.ImplicitVRLittleEndian, uid.ExplicitVRLittleEndian), ("u1", "u2", "i2", "u4", "i4")),
        *product((uid.ExplicitVRBigEndian,), ("u2", "i2")),  # GDCM reads only these words in this order
        *product((uid.RLELossless,), ("u1", "u2", "i2")),
    ],
)
def test_numbers_and_corners_are_those_of_simpleitk(
    syntax: str, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if syntax == uid.RLELossless:
        monkeypatch.setattr(sys.modules[__name__], "SIDES", (7, 64, 80))  # GDCM reads no smaller ones of RLE
    numbers = make_series(tmp_path / "a", dtype, syntax)
    image, volume = truth(tmp_path / "a"), Volume.open(tmp_path / "a")
    assert np.array_equal(array(image), numbers)
    for number in range(SIDES[0]):
        read = volume.values(volume.numbers(number))
        assert read.dtype == np.dtype(dtype)
        assert np.array_equal(read, array(image)[number])
    assert volume.grid is not None
    matrix = np.reshape(volume.grid.transform, (3, 4))
    index = np.array([[x, y, z, 1] for x in (0, SIDES[2] - 1) for y in (0, SIDES[1] - 1) for z in (0, 6)])
    assert np.allclose(index @ matrix.T, corners(image), atol=1e-4)


@pytest.mark.parametrize("volumes", [True, False])
@pytest.mark.parametrize("suffix", [".nii.gz", ".nrrd", ".mha"])
def test_folders_are_paired_with_labels_of_other_formats(suffix: str, volumes: bool, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    numbers = {key: make_series(raw / f"cases/{key}", seed=seed) for seed, key in enumerate(("a", "b"))}
    images = {key: truth(raw / f"cases/{key}") for key in numbers}
    labels = {key: label_of(image, raw / f"masks/{key}{suffix}") for key, image in images.items()}
    (raw / "cases/a/LICENSE").write_text("a file without a suffix that is not one of DICOM")
    (raw / "cases/a/notes.txt").write_text("nor is this")
    (raw / "cases/DICOMDIR").write_bytes(b"\0" * 128 + b"DICM")
    form = ("--volumes",) if volumes else ("--size", "native", "--axis", 0, "--bands", "all")
    templates = ("--image", "cases/{key}/", "--label", f"masks/{{key}}{suffix}")
    good("build", "--from", raw, *templates, "--classes", 3, "--labels", "index", *form, tmp_path / "out")
    rows = open_dataset(tmp_path / "out")
    assert len(rows) == (2 if volumes else 2 * SIDES[2])
    for index in range(len(rows)):
        key, _, number = rows.key(index).partition("/")
        pixels, label = numbers[key], labels[key]
        place = rows.place(index)
        assert place is not None
        if volumes:
            assert np.allclose(corners_of(place, images[key]), corners(images[key]), atol=1e-4)
            assert place.spacing == pytest.approx((3.0, 2.25, 1.5))
        else:
            pixels, label = pixels[..., int(number)], label[..., int(number)]
        assert np.array_equal(rows[index].image.numpy()[0], pixels)
        assert np.array_equal(rows[index].label.numpy(), label)
    assert verify_pack(tmp_path / "out", deep=True) == []


def test_files_without_a_suffix_and_a_label_in_the_folder(tmp_path: Path) -> None:
    """PACS export files with the names of their identifiers. The label is in the axes that an annotator wrote."""
    raw = tmp_path / "raw"
    numbers = make_series(raw / "p1/scan", name="1.2.840.113{}")
    label = label_of(truth(raw / "p1/scan"), raw / "p1/seg.nii.gz", "LIP")
    good("build", "--from", raw, "--image", "{key}/scan", "--label", "{key}/seg", "--volumes", "--classes", 3,
         "--labels", "index", tmp_path / "out")  # fmt: skip
    (row,) = open_dataset(tmp_path / "out")
    assert np.array_equal(row.image[0], numbers)
    assert np.array_equal(row.label, label)


def test_usual_folders_need_no_templates(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    numbers = make_series(raw / "images/a", name="IM{}")
    label_of(truth(raw / "images/a"), raw / "labels/a.nii.gz")
    assert "layout    volumes, for --from" in good("probe", raw).stdout
    built = json.loads(good("build", "--json", "--from", raw, "--volumes", "--classes", 3, tmp_path / "out").stdout)
    assert np.array_equal(open_dataset(tmp_path / "out")[0].image[0], numbers)
    assert f"pydicom {pydicom.__version__}" in (tmp_path / "out/manifest.json").read_text()
    assert built["rows"] == 1


@pytest.mark.parametrize("axis", ["0", "2"])
def test_series_are_the_same_in_slabs(axis: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = tmp_path / "raw"
    make_series(raw / "images/a", change=rescaled)
    label_of(truth(raw / "images/a"), raw / "labels/a.mha")
    options = ("--from", raw, "--volumes", "--classes", 3, *TILES, "--axis", axis)
    check_slabs(options, tmp_path, monkeypatch)


def rescaled(number: int, file: Any) -> None:
    file.RescaleSlope, file.RescaleIntercept = "0.5", "-1024"


def rescaled_apart(number: int, file: Any) -> None:
    file.RescaleSlope, file.RescaleIntercept = str(0.5 + number / 8), str(-number)


def of_twelve_bits(number: int, file: Any) -> None:
    """Have other facts in the upper bits, which do not count."""
    file.BitsStored, file.HighBit = 12, 11
    numbers = np.frombuffer(file.PixelData, np.uint16)
    file.PixelData = ((numbers & 0x0FFF) | (0xA000 if number % 2 else 0x5000)).astype(np.uint16).tobytes()


def inverted(number: int, file: Any) -> None:
    file.PhotometricInterpretation = "MONOCHROME1"


def with_much_before_the_pixels(number: int, file: Any) -> None:
    block = file.private_block(0x0029, "SOMEBODY", create=True)
    block.add_new(0x10, "OB", bytes(1 << 17))


def inverted_of_twelve_bits(number: int, file: Any) -> None:
    of_twelve_bits(number, file)
    inverted(number, file)
    rescaled(number, file)


CHANGES = (rescaled, rescaled_apart, of_twelve_bits, inverted, inverted_of_twelve_bits, with_much_before_the_pixels)


PAIRS = [pair for pair in product(CHANGES, ("i2", "u2")) if pair != (inverted_of_twelve_bits, "i2")]
"""The one that is left out is in no file: GDCM refuses it."""


@pytest.mark.parametrize(("change", "dtype"), PAIRS, ids=lambda part: getattr(part, "__name__", part))
def test_values_are_those_of_simpleitk(dtype: str, change: Change, tmp_path: Path) -> None:
    make_series(tmp_path / "a", dtype, change=change)
    volume = Volume.open(tmp_path / "a")
    for number, file in enumerate(volume.voxels.files):
        expected = array(sitk.ReadImage(str(file)))[0]
        assert np.allclose(volume.values(volume.numbers(number)), expected, atol=1e-4), number
    every = np.concatenate([np.frombuffer(piece, np.uint8) for piece in volume.pieces()])
    assert every.tobytes() == bytes(volume.all_bytes())


def test_one_slice_is_a_volume_of_its_thickness(tmp_path: Path) -> None:
    make_series(tmp_path / "a")
    for number in range(1, SIDES[0]):
        (tmp_path / f"a/IM{number}.dcm").unlink()
    volume, image = Volume.open(tmp_path / "a"), truth(tmp_path / "a")
    assert volume.upright == (1, *SIDES[1:])
    assert volume.grid is not None
    index = np.array([[x, y, z, 1] for x in (0, 4) for y in (0, 5) for z in (0, 0)])
    assert np.allclose(index @ np.reshape(volume.grid.transform, (3, 4)).T, corners(image), atol=1e-4)


def only(number: int, **values: Any) -> Change:
    """Return a change of one slice."""

    def change(other: int, file: Any) -> None:
        for name, value in values.items() if other == number else ():
            if value is None:
                delattr(file, name)
            else:
                setattr(file, name, value)

    return change


def in_all(**values: Any) -> Change:
    def change(number: int, file: Any) -> None:
        only(number, **values)(number, file)

    return change


def off_the_line(number: int, file: Any) -> None:
    """Move a slice within its plane."""
    if number == 3:
        x, y, z = file.ImagePositionPatient
        file.ImagePositionPatient = [x, y, z + 1]


HOSTILE: dict[str, tuple[Change, str]] = {
    "two series": (only(2, SeriesInstanceUID="1.2.3"), "IM0.dcm and IM6.dcm: are of two series"),
    "two sizes": (only(2, Rows=5, Columns=6), "IM0.dcm and IM6.dcm: have 6x5 and 5x6 pixels"),
    "two kinds": (only(2, PixelRepresentation=0), "IM6.dcm: have numbers of two kinds"),
    "two colours": (only(2, PhotometricInterpretation="MONOCHROME1"), "IM6.dcm: have numbers of two kinds"),
    "turned": (only(2, ImageOrientationPatient=[1, 0, 0, 0, 1, 0]), "IM6.dcm: have pixels in other directions"),
    "other spacing": (only(2, PixelSpacing=[2.5, 1.5]), "IM6.dcm: have pixels in other directions"),
    "doubled": (only(3, ImagePositionPatient=[40.5, -30.25, 70]), "IM0.dcm and IM2.dcm: are at one place"),
    "no place": (only(3, ImagePositionPatient=None), "IM2.dcm: lacks ImagePositionPatient in its header"),
    "two numbers": (
        only(3, PixelSpacing=[1, 2, 3]),
        "IM2.dcm: has PixelSpacing [1.0, 2.0, 3.0] in its header; expected 2",
    ),
    "huge": (only(3, ImagePositionPatient=[1e30, 0, 0]), "IM2.dcm: has ImagePositionPatient"),
    "no spacing": (in_all(PixelSpacing=[0, 1]), "no distances above 0"),
    "crooked": (in_all(ImageOrientationPatient=[1, 0, 0, 1, 0, 0]), "has axes that are not at right angles"),
    "colours": (only(1, SamplesPerPixel=3, PhotometricInterpretation="RGB"), "IM3.dcm: has the pixels RGB"),
    "palette": (only(1, PhotometricInterpretation="PALETTE COLOR"), "IM3.dcm: has the pixels PALETTE COLOR"),
    "frames": (only(1, NumberOfFrames=2), "IM3.dcm: has 2 frames"),
    "bits": (only(1, BitsStored=20), "IM3.dcm: has 20 of 16 bits"),
    "high bit": (only(1, HighBit=10), "IM3.dcm: has 16 of 16 bits"),
    "rows": (only(1, Rows=60), "IM3.dcm: has 60 bytes of pixels; its header demands 600"),
    "no rows": (only(1, Rows=0), "IM3.dcm: has the sides 0x5"),
    "slope": (only(1, RescaleSlope="0"), "IM3.dcm: has the RescaleSlope 0"),
    "no pixels": (only(1, PixelData=None), "IM3.dcm: has no pixels"),
    "off the line": (off_the_line, "IM2.dcm: is not on a line with the others"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_slices_that_do_not_fit_are_named(name: str, tmp_path: Path) -> None:
    change, reason = HOSTILE[name]
    raw = tmp_path / "raw"
    make_series(raw / "images/good")
    label_of(truth(raw / "images/good"), raw / "labels/good.nii.gz")
    shutil.copy(raw / "labels/good.nii.gz", raw / "labels/bad.nii.gz")
    make_series(raw / "images/bad", change=change)
    options = ("--from", raw, "--volumes", "--classes", 3)
    errors = errors_of(1, "build", *options, tmp_path / "out")
    assert "images/bad/: " in errors
    assert reason in errors
    good("build", *options, "--on-bad", "skip", tmp_path / "out")
    assert [open_dataset(tmp_path / "out").key(0)] == ["good"]


def test_a_missing_slice_is_named_by_its_neighbours(tmp_path: Path) -> None:
    make_series(tmp_path / "a")
    (tmp_path / "a/IM2.dcm").unlink()  # the fourth one in space
    with pytest.raises(BadPair, match=r"IM6\.dcm and IM5\.dcm: are 6 mm apart, others 3 mm; is a slice missing\?"):
        Volume.open(tmp_path / "a")


@pytest.mark.parametrize("syntax", [uid.JPEG2000Lossless, uid.JPEGLSLossless, uid.DeflatedExplicitVRLittleEndian])
def test_other_transfer_syntaxes_are_refused_by_name(syntax: Any, tmp_path: Path) -> None:
    make_series(tmp_path / "a")
    path = tmp_path / "a/IM0.dcm"
    file = pydicom.dcmread(path)
    honest = path.read_bytes()
    old, new = (str(name).encode() for name in (file.file_meta.TransferSyntaxUID, syntax))
    new += b"\0" * (len(new) % 2)
    padded = old + b"\0" * (len(old) % 2)
    at = honest.index(padded)
    head = bytearray(honest[:at - 2] + len(new).to_bytes(2, "little") + new)  # fmt: skip
    path.write_bytes(bytes(head) + honest[at + len(padded) :])
    with pytest.raises(BadPair, match=rf"IM0\.dcm: has the transfer syntax {syntax.name[:8]}.*plain pixels and RLE"):
        Volume.open(tmp_path / "a")


def test_a_pack_follows_the_files_of_a_series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("packer.sources.volumes.volume_source.is_young", lambda state: False)
    raw, out = tmp_path / "raw", tmp_path / "out"
    make_series(raw / "images/a")
    label_of(truth(raw / "images/a"), raw / "labels/a.nii.gz")
    options = ("--from", raw, "--volumes", "--classes", 3)
    good("build", *options, out)
    assert json.loads(good("build", "--json", *options, out).stdout)["reused_rows"] == 1
    numbers = make_series(raw / "images/a", seed=5)
    good("build", *options, out)
    assert np.array_equal(open_dataset(out)[0].image[0], numbers)
    good("build", *options, tmp_path / "fresh")
    assert same(out, tmp_path / "fresh")
    (raw / "images/a/IM2.dcm").unlink()
    assert "is a slice missing?" in errors_of(1, "build", *options, out)


@pytest.mark.parametrize("syntax", [uid.ImplicitVRLittleEndian, uid.ExplicitVRLittleEndian, uid.RLELossless])
def test_no_byte_of_a_file_is_trusted(syntax: str, tmp_path: Path) -> None:
    make_series(tmp_path / "a", syntax=syntax)
    path, dice = tmp_path / "a/IM3.dcm", random.Random(0)
    honest, refused = path.read_bytes(), 0
    for _ in range(400):
        data = bytearray(honest)
        for _ in range(dice.randint(1, 3)):
            data[dice.randrange(128, len(data))] = dice.choice([0, 1, 2, 45, 48, 57, 127, 255])
        path.write_bytes(data[: dice.choice([len(data), dice.randrange(len(data))])])
        try:
            assert len(Volume.open(tmp_path / "a").all_bytes()) == 2 * np.prod(SIDES)
        except BadPair:
            refused += 1
    assert refused > 100


def test_hostile_rle_is_refused_before_memory_is_taken() -> None:
    item, end = b"\xfe\xff\x00\xe0", b"\xfe\xff\xdd\xe0\0\0\0\0"

    def framed(frame: bytes) -> bytes:
        return item + bytes(4) + item + struct.pack("<I", len(frame)) + frame + end

    head = struct.pack("<16I", 1, 64, *[0] * 14)
    assert unpack_rle(framed(head + bytes([255, 7, 1, 8, 9])), 4, 1) == bytes([7, 7, 8, 9])
    hostile = {
        "cut short": framed(head)[:-6],
        "demands 4294836225 numbers": framed(head + bytes(99)),
        "unpacks to 2 bytes; expected 4": framed(head + bytes([255, 7])),
        "unpacks to 128 bytes; expected 4": framed(head + bytes([129, 7])),
        "has 2 parts": framed(struct.pack("<16I", 2, 64, 70, *[0] * 13) + bytes(9)),
        "at [70]": framed(struct.pack("<16I", 1, 70, *[0] * 14) + bytes(9)),
        "has 0 bytes": item + bytes(4) + end,
    }
    for reason, data in hostile.items():
        with pytest.raises(BadPair, match=re.escape(reason)):
            unpack_rle(data, 65535**2 if "demands" in reason else 4, 1)


def test_without_pydicom_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = tmp_path / "raw"
    make_series(raw / "images/a")
    label_of(truth(raw / "images/a"), raw / "labels/a.nii.gz")
    dicom_slice.library.cache_clear()
    monkeypatch.setitem(sys.modules, "pydicom", None)
    with pytest.raises(UsageError, match=r"pip install 'segpack\[dicom\]'"):
        VolumeSlices.at(raw, Names())
