"""MetaImage and NRRD as volumes: every number and corner is what SimpleITK reads, and hostile headers are named."""

from __future__ import annotations

import gzip
import json
import random
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import errors_of, good
from drills.published import same
from numpy.typing import NDArray
from test_build_giant import counted, lower

from packer import build_pack, verify_pack
from packer.errors import BadPair, InputError
from packer.sources.container import Names
from packer.sources.reopen import reopen
from packer.sources.volumes.volume import Volume
from packer.sources.volumes.volume_slices import VolumeSlices
from readers import open_dataset, write_prediction

pytestmark = pytest.mark.usefixtures("in_process")

sitk: Any = pytest.importorskip("SimpleITK")

SIDES = (7, 9, 5)
SUFFIXES = (".mha", ".mhd", ".nrrd", ".nhdr")
OBLIQUE = (0.28, -0.96, 0.0, 0.0, 0.0, -1.0, 0.96, 0.28, 0.0)
"""Directions at right angles, whose axes are nearest to none of the world in their order."""
TILES = ("--encode", "image=tiles:2x16x16", "--encode", "label=tiles-zstd:3x16x16")


def scan(seed: int, dtype: str = "i2", most: int = 400, channels: int = 0) -> Any:
    """Return an image of SimpleITK, oblique, with the voxels (slices, rows, columns)."""
    shape = (*SIDES[::-1], channels) if channels else SIDES[::-1]
    image = sitk.GetImageFromArray(
        np.random.default_rng(seed).integers(0, most, shape).astype(dtype), isVector=bool(channels)
    )
    image.SetSpacing((1.5, 2.25, 3.0))
    image.SetOrigin((40.5, -30.25, 70.0))
    image.SetDirection(OBLIQUE)
    return image


def check_slabs(options: tuple[Any, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Build a pack of whole volumes, and one slab by slab: they are the same."""
    good("build", *options, tmp_path / "whole")
    with monkeypatch.context() as context:
        lower(context)
        names = counted(context)
        context.delattr(Volume, "all_bytes")
        good("build", *options, tmp_path / "slabs")
    assert len(names) == 2
    assert same(tmp_path / "whole", tmp_path / "slabs")


def save(path: Path, image: Any, is_packed: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    sitk.WriteImage(image, str(path), is_packed)
    return path


def array(image: Any) -> NDArray[Any]:
    numbers: NDArray[Any] = sitk.GetArrayFromImage(image)
    return numbers


def corners(image: Any) -> list[tuple[float, ...]]:
    """Return the centres of the voxels at the corners, with x to the right and y to the front."""
    points = [
        image.TransformIndexToPhysicalPoint([int(number) for number in index])
        for index in product(*((0, side - 1) for side in image.GetSize()))
    ]
    return [(-x, -y, z) for x, y, z in points]


def corners_of(place: Any, image: Any) -> list[tuple[float, ...]]:
    return [place.at(*index[::-1]) for index in product(*((0, side - 1) for side in image.GetSize()))]


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"])
def test_numbers_and_corners_are_those_of_simpleitk(dtype: str, suffix: str, is_packed: bool, tmp_path: Path) -> None:
    image = scan(1, dtype, 100)
    volume = Volume.open(save(tmp_path / f"a{suffix}", image, is_packed))
    assert volume.voxels.is_packed == is_packed
    for number in range(SIDES[2]):
        read = volume.values(volume.numbers(number))
        assert read.dtype == np.dtype(dtype)
        assert np.array_equal(read, array(image)[number])
    assert volume.grid is not None
    matrix = np.reshape(volume.grid.transform, (3, 4))
    for index, point in zip(product(*((0, side - 1) for side in SIDES)), corners(image), strict=True):
        assert np.allclose(matrix @ [*index, 1], point, atol=1e-9)


@pytest.mark.parametrize("volumes", [True, False])
@pytest.mark.parametrize(
    ("suffix", "other"), [(".mha", ".nrrd"), (".mhd", ".nii.gz"), (".nrrd", ".mhd"), (".nhdr", ".mha")]
)
def test_pairs_of_any_formats_are_packed_at_their_place(suffix: str, other: str, volumes: bool, tmp_path: Path) -> None:
    raw, image, label = tmp_path / "raw", scan(1), scan(2, "u1", 3)
    for key, is_packed in (("a", False), ("b", True)):
        save(raw / f"images/{key}{suffix}", image, is_packed)
        save(raw / f"labels/{key}{other}", label, is_packed)
    options: dict[str, Any] = {"volumes": True} if volumes else {"size": "native", "axis": 1}
    build_pack(raw, tmp_path / "out", classes="3", labels="index", bands="all", **options)
    rows = open_dataset(tmp_path / "out")
    assert len(rows) == (2 if volumes else 2 * SIDES[1])
    for index in range(len(rows)):
        pixels, truth, place = array(image), array(label), rows.place(index)
        assert place is not None
        if volumes:
            assert np.allclose(corners_of(place, image), corners(image), atol=1e-4)
            assert place.spacing == pytest.approx((3.0, 2.25, 1.5))
        else:
            number = int(rows.key(index)[-4:])
            pixels, truth = pixels[:, number], truth[:, number]
            x, y, z = image.TransformIndexToPhysicalPoint([6, number, 4])
            assert np.allclose(place.at(4, 6), (-x, -y, z), atol=1e-4)
        assert np.array_equal(rows[index].image.numpy()[0], pixels)
        assert np.array_equal(rows[index].label.numpy(), truth)
    assert verify_pack(tmp_path / "out", deep=True) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_prediction_is_at_the_place_of_its_image(suffix: str, tmp_path: Path) -> None:
    image = scan(1)
    save(tmp_path / f"raw/images/a{suffix}", image)
    save(tmp_path / f"raw/labels/a{suffix}", scan(2, "u1", 3))
    build_pack(tmp_path / "raw", tmp_path / "out", classes="3", volumes=True, orient="RAS")
    rows = open_dataset(tmp_path / "out", label="index")
    place = rows.place(0)
    write_prediction(tmp_path / "p.nii.gz", rows[0].label.numpy(), place)
    back = sitk.Resample(sitk.ReadImage(str(tmp_path / "p.nii.gz")), image, sitk.Transform(), sitk.sitkNearestNeighbor)
    assert np.array_equal(array(back), array(scan(2, "u1", 3)))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_data_set_of_nnu_net(suffix: str, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    for channel in range(2):
        save(raw / f"imagesTr/case_{channel:04}{suffix}", scan(channel))
    save(raw / f"labelsTr/case{suffix}", scan(2, "u1", 2))
    names = {"channel_names": {"0": "CT", "1": "PET"}, "labels": {"background": 0, "tumour": 1}}
    (raw / "dataset.json").write_text(json.dumps({**names, "file_ending": suffix}))
    assert "layout    volumes, for --from" in good("probe", raw).stdout
    good("build", "--from", raw, "--volumes", tmp_path / "out", "--labels", "index")
    (row,) = rows = open_dataset(tmp_path / "out")
    assert rows.fields[0].bands == ("CT", "PET")
    assert rows.classes.names == ("background", "tumour")
    assert np.array_equal(row.image, [array(scan(0)), array(scan(1))])
    assert np.array_equal(row.label, array(scan(2, "u1", 2)))


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("axis", ["0", "2"])
def test_components_are_bands_also_in_slabs(
    axis: str, suffix: str, is_packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The components of a voxel are next to each other in the file."""
    raw, image = tmp_path / "raw", scan(1, "f4", channels=3)
    save(raw / f"images/a{suffix}", image, is_packed)
    save(raw / f"labels/a{suffix}", scan(2, "u1", 3), is_packed)
    options = ("--from", raw, "--volumes", "--classes", 3, *TILES, "--axis", axis)
    check_slabs(options, tmp_path, monkeypatch)
    expected = np.moveaxis(array(image).transpose(2, 1, 0, 3), int(axis), 2).transpose(3, 2, 1, 0)
    assert np.array_equal(open_dataset(tmp_path / "slabs")[0].image, expected)
    source = reopen(VolumeSlices.at(raw, Names()).along(2).to_text())
    for ref in VolumeSlices.at(raw, Names()).rows():
        picture = source.load(ref).data[0].stored.numbers
        assert np.array_equal(picture, array(image)[int(ref.key[-4:])])


def test_four_dimensions_of_metaimage_are_channels(tmp_path: Path) -> None:
    """One volume follows the other. The Decathlon has such channels in NIfTI."""
    numbers = np.random.default_rng(0).integers(0, 99, (3, *SIDES[::-1])).astype(np.int16)
    image = sitk.JoinSeries([sitk.GetImageFromArray(volume) for volume in numbers])
    save(tmp_path / "raw/images/a.mha", image, True)
    save(tmp_path / "raw/labels/a.mha", sitk.GetImageFromArray(numbers[0].astype(np.uint8) % 2))
    build_pack(tmp_path / "raw", tmp_path / "out", classes="2", volumes=True)
    assert np.array_equal(open_dataset(tmp_path / "out")[0].image, numbers)


def test_a_label_in_other_axes_is_turned_to_its_image(tmp_path: Path) -> None:
    image, label = scan(1), scan(2, "u1", 3)
    save(tmp_path / "raw/images/a.mha", image)
    save(tmp_path / "raw/labels/a.nrrd", sitk.DICOMOrient(label, "LIP"))
    assert sitk.DICOMOrient(label, "LIP").GetSize() != label.GetSize()
    build_pack(tmp_path / "raw", tmp_path / "out", classes="3", labels="index", volumes=True)
    assert np.array_equal(open_dataset(tmp_path / "out")[0].label, array(label))


def test_a_suffix_in_a_template_chooses_among_files_of_one_name(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    save(raw / "scans/a.mha", scan(1))
    save(raw / "scans/a.nrrd", scan(2, "u1", 3))
    with pytest.raises(InputError, match=r"a\.mha and scans/a\.nrrd: both are"):
        VolumeSlices.at(raw, Names("scans/{key}", "masks/{key}"))
    good("build", "--from", raw, "--image", "scans/{key}.mha", "--label", "scans/{key}.nrrd", "--volumes",
         "--classes", 3, tmp_path / "out")  # fmt: skip
    assert np.array_equal(open_dataset(tmp_path / "out")[0].image[0], array(scan(1)))


def test_a_change_of_the_numbers_next_to_a_header_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("packer.sources.volumes.volume_source.is_young", lambda state: False)
    raw, out = tmp_path / "raw", tmp_path / "out"
    save(raw / "images/a.mhd", scan(1))
    save(raw / "labels/a.nhdr", scan(2, "u1", 3))
    options = ("--from", raw, "--volumes", "--classes", 3)
    good("build", *options, out)
    assert json.loads(good("build", "--json", *options, out).stdout)["reused_rows"] == 1
    (raw / "images/a.raw").write_bytes(array(scan(3)).tobytes())
    good("build", *options, out)
    assert np.array_equal(open_dataset(out)[0].image[0], array(scan(3)))
    good("build", *options, tmp_path / "fresh")
    assert same(out, tmp_path / "fresh")


MHA = """ObjectType = Image
NDims = 3
BinaryData = True
BinaryDataByteOrderMSB = False
CompressedData = False
TransformMatrix = 1 0 0 0 1 0 0 0 1
Offset = 0 0 0
ElementSpacing = 1 1 1
DimSize = 7 9 5
ElementType = MET_SHORT
ElementDataFile = LOCAL
"""
NRRD = """NRRD0004
# a remark
type: short
dimension: 3
space: left-posterior-superior
sizes: 7 9 5
space directions: (1.5,0,0) (0,2,0) (0,0,3)
kinds: domain domain domain
endian: little
encoding: raw
space origin: (10,20,30)
a key:=a text: of it

"""
NUMBERS = np.random.default_rng(5).integers(0, 400, SIDES[::-1]).astype("<i2")
FOUR = NRRD.replace("dimension: 3", "dimension: 4").replace("7 9 5", "7 9 5 2")
COMPARED = {
    "spacing alone.mha": MHA.replace("TransformMatrix = 1 0 0 0 1 0 0 0 1\nOffset = 0 0 0\n", ""),
    "size of a voxel.mha": MHA.replace("ElementSpacing = 1 1 1", "ElementSize = 2 3 4"),
    "backwards.mha": MHA.replace("ElementSpacing = 1 1 1", "ElementSpacing = -2 3 4"),
    "other names.mha": MHA.replace("Offset", "Position").replace("TransformMatrix", "Rotation"),
    "big.mha": MHA.replace("OrderMSB = False", "OrderMSB = True"),
    "big, other name.mha": MHA.replace("BinaryDataByteOrderMSB = False", "ElementByteOrderMSB = True"),
    "returns.mha": MHA.replace("\n", "\r\n"),
    "short.mha": "NDims=3\nDimSize=7 9 5\nElementType=MET_USHORT\nElementDataFile=LOCAL\n",
    "long.mha": MHA.replace("MET_SHORT", "MET_LONG"),
    "as it is.nrrd": NRRD,
    "RAS.nrrd": NRRD.replace("left-posterior-superior", "right-anterior-superior"),
    "short RAS.nrrd": NRRD.replace("left-posterior-superior", "RAS"),
    "LAS.nrrd": NRRD.replace("left-posterior-superior", "left-anterior-superior"),
    "no body.nrrd": NRRD.replace("left-posterior-superior", "scanner-xyz"),
    "dimension of space.nrrd": NRRD.replace("space: left-posterior-superior", "space dimension: 3"),
    "no origin.nrrd": NRRD.replace("space origin: (10,20,30)\n", ""),
    "distances.nrrd": NRRD[: NRRD.index("space:")] + "sizes: 7 9 5\nspacings: 2 nan 4\nendian: big\nencoding: raw\n\n",
    "nothing.nrrd": NRRD[: NRRD.index("space:")] + "sizes: 7 9 5\nendian: little\nencoding: raw\n\n",
    "returns.nrrd": NRRD.replace("\n", "\r\n"),
    "skipped.nrrd": NRRD.replace("encoding: raw", "encoding: raw\nbyte skip: 6"),
    "at the end.nrrd": NRRD.replace("encoding: raw", "encoding: raw\nbyteskip: -1"),
    "packed and skipped.nrrd": NRRD.replace("encoding: raw", "encoding: gz\nbyte skip: 6"),
    "one after the other.nrrd": FOUR.replace("(0,0,3)", "(0,0,3) none").replace("domain\n", "domain list\n"),
}


@pytest.mark.parametrize("name", COMPARED)
def test_headers_are_read_as_simpleitk_reads_them(name: str, tmp_path: Path) -> None:
    text, path = COMPARED[name], tmp_path / name
    numbers = NUMBERS.astype("<i4") if "MET_LONG" in text else NUMBERS
    data = (b"before" if "skip" in text else b"") + numbers.tobytes() * (2 if "none" in text else 1)
    path.write_bytes(text.encode() + (gzip.compress(data) if "gz" in text else data))
    image, volume = sitk.ReadImage(str(path)), Volume.open(path)
    expected = array(image).reshape(*SIDES[::-1], -1)
    assert volume.header.channels == expected.shape[-1]
    for number, channel in product(range(SIDES[2]), range(volume.header.channels)):
        assert np.array_equal(volume.values(volume.numbers(number, channel=channel)), expected[number, ..., channel])
    assert volume.grid is not None
    matrix = np.reshape(volume.grid.transform, (3, 4))
    for index, point in zip(product(*((0, side - 1) for side in SIDES)), corners(image), strict=True):
        assert np.allclose(matrix @ [*index, 1], point)


HOSTILE: dict[str, tuple[bytes | tuple[str, str], str]] = {
    "no text.mha": (b"\x89PNG\r\n\x1a\n" * 9, "is not a MetaImage with a header of text"),
    "no end.mha": (b"A = 1\n" * 2, "has the header A twice"),
    "endless.mha": (b"A = " + b"1" * (1 << 21), "is not a MetaImage with a header of text that ends with"),
    "negative.mha": (("7 9 5", "-7 9 5"), "'DimSize: -7 9 5'; every side has at least one voxel"),
    "zero.mha": (("7 9 5", "7 0 5"), "every side has at least one voxel"),
    "two sides.mha": (("7 9 5", "7 9"), "'DimSize: 7 9'; expected 3 whole numbers"),
    "huge.mha": (("7 9 5", "700000000 900000000 5"), "its header demands 6300000000000000"),
    "many digits.mha": (("7 9 5", "7" * 30 + " 9 5"), "expected 3 whole numbers"),
    "no sides.mha": (("DimSize = 7 9 5\n", ""), "lacks the header DimSize"),
    "no type.mha": (("ElementType = MET_SHORT\n", ""), "lacks the header ElementType"),
    "colours.mha": (("MET_SHORT", "MET_UCHAR_ARRAY"), "'ElementType: MET_UCHAR_ARRAY'; read is MET_CHAR or"),
    "five.mha": (("NDims = 3", "NDims = 5"), "has 5 dimensions; 2 to 4 are read"),
    "nan.mha": (("1 0 0 0 1 0 0 0 1", "nan 0 0 0 1 0 0 0 1"), "expected 9 finite numbers"),
    "infinite.mha": (("Offset = 0 0 0", "Offset = 0 1e999 0"), "'Offset: 0 1e999 0'; expected 3 finite numbers"),
    "flat.mha": (("1 0 0 0 1 0 0 0 1", "1 0 0 0 0 0 0 0 1"), "along which all voxels are at one point"),
    "no spacing.mha": (("ElementSpacing = 1 1 1", "ElementSpacing = 1 0 1"), "all voxels are at one point"),
    "words.mha": (("Offset = 0 0 0", "Offset = 0x1 0_0 0"), "expected 3 finite numbers"),
    "text.mha": (("BinaryData = True", "BinaryData = False"), "'BinaryData: False'; read is True"),
    "scaled.mha": (("Offset", "ElementToIntensityFunctionSlope = 2\nOffset"), "read is 1"),
    "flag.mha": (("CompressedData = False", "CompressedData = perhaps"), "read is True or False"),
    "not packed.mha": (("CompressedData = False", "CompressedData = True"), "is damaged"),
    "packed size.mha": (
        ("CompressedData = False", "CompressedData = True\nCompressedDataSize = 3"),
        "demands 3 behind",
    ),
    "channels.mha": (("ElementType", "ElementNumberOfChannels = 513\nElementType"), "up to 512 become bands"),
    "no channels.mha": (("ElementType", "ElementNumberOfChannels = 0\nElementType"), "up to 512 become bands"),
    "head.mha": (("ElementType", "HeaderSize = 40\nElementType"), "has HeaderSize = 40"),
    "short.mha": (("7 9 5", "7 9 6"), "its header demands"),
    "long.mha": (("7 9 5", "7 9 4"), "its header demands"),
    "elsewhere.mha": (("LOCAL", "a.raw"), "a header without numbers is named .mhd"),
    "outside.mhd": (("LOCAL", "../a.raw"), "'../a.raw', which is not in the folder of the header"),
    "absolute.mhd": (("LOCAL", "/etc/passwd"), "'/etc/passwd', which is not in the folder of the header"),
    "nul.mhd": (("LOCAL", "a\0b"), "which is not in the folder of the header"),
    "empty.mhd": (("LOCAL", ""), "which is not in the folder of the header"),
    "missing.mhd": (("LOCAL", "a.raw"), "has its numbers in 'a.raw', which is not there"),
    "many.mhd": (("LOCAL", "LIST"), "has its numbers in many files"),
    "pattern.mhd": (("LOCAL", "a%03d.raw 1 5 1"), "has its numbers in many files"),
    "other.nrrd": (b"NRRD0009\n", "is not a NRRD file"),
    "no field.nrrd": (("a key:=a text: of it", "a key"), "has the header line 'a key'"),
    "no colon.nrrd": (("kinds: domain", "kinds domain"), "expected a field with a colon and a space"),
    "twice.nrrd": (("endian: little", "endian: little\nendian: big"), "has the header endian twice"),
    "negative.nrrd": (("7 9 5", "7 -9 5"), "every side has at least one voxel"),
    "huge.nrrd": (("7 9 5", "70000000000 9 5"), "its header demands 6300000000"),
    "three.nrrd": (("dimension: 3", "dimension: 4"), "expected 4 whole numbers"),
    "two.nrrd": (("dimension: 3", "dimension: 2"), "has 2 dimensions"),
    "no sizes.nrrd": (("sizes: 7 9 5\n", ""), "lacks the header sizes"),
    "no endian.nrrd": (("endian: little\n", ""), "lacks the header endian"),
    "no encoding.nrrd": (("encoding: raw\n", ""), "lacks the header encoding"),
    "bzip2.nrrd": (("encoding: raw", "encoding: bzip2"), "'bzip2'; raw and gzip are read"),
    "text.nrrd": (("encoding: raw", "encoding: text"), "'text'; raw and gzip are read"),
    "block.nrrd": (("type: short", "type: block"), "has numbers of the type 'block'"),
    "nan.nrrd": (("(1.5,0,0)", "(nan,0,0)"), "expected 3 finite numbers"),
    "flat.nrrd": (("(1.5,0,0)", "(0,0,0)"), "all voxels are at one point"),
    "vectors.nrrd": (("(0,0,3)", ""), "expected 3 vectors such as (1,0,0)"),
    "vector.nrrd": (("(0,0,3)", "(0,3)"), "expected 3 finite numbers"),
    "origin.nrrd": (("(10,20,30)", "10,20,30"), "expected vectors such as (1,0,0)"),
    "none.nrrd": (("(0,0,3)", "none"), "has 2 axes in space"),
    "time.nrrd": (("space: left-posterior-superior", "space dimension: 4"), "'space dimension: 4'; read is 3"),
    "lines.nrrd": (("encoding: raw", "encoding: raw\nline skip: 2"), "has lines before its numbers"),
    "bytes.nrrd": (("encoding: raw", "encoding: raw\nbyte skip: -5"), "'byte skip: -5'"),
    "not packed.nrrd": (("encoding: raw", "encoding: gzip"), "is damaged"),
    "long.nrrd": (("7 9 5", "7 9 4"), "its header demands"),
    "kinds.nrrd": (("domain domain domain", "domain domain"), "has 2 kinds of 3 axes"),
    "elsewhere.nrrd": (("encoding: raw", "encoding: raw\ndata file: a.raw"), "is named .nhdr"),
    "outside.nhdr": (("encoding: raw", "encoding: raw\ndata file: b/../../a.raw"), "not in the folder of the header"),
    "missing.nhdr": (("encoding: raw", "encoding: raw\ndata file: a.raw"), "'a.raw', which is not there"),
    "many.nhdr": (("encoding: raw", "encoding: raw\ndatafile: LIST"), "has its numbers in many files"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_headers_are_named(name: str, tmp_path: Path) -> None:
    change, reason = HOSTILE[name]
    text = NRRD if name.endswith((".nrrd", ".nhdr")) else MHA
    hostile = change if isinstance(change, bytes) else text.replace(*change).encode() + NUMBERS.tobytes()
    assert not hostile.startswith(text.encode())
    raw = tmp_path / "raw"
    for path, content in ((f"images/{name}", hostile), ("images/good.mha", MHA.encode() + NUMBERS.tobytes())):
        (raw / path).parent.mkdir(parents=True, exist_ok=True)
        (raw / path).write_bytes(content)
    for key in (Path(name).stem, "good"):
        save(raw / f"labels/{key}.nii.gz", sitk.GetImageFromArray((NUMBERS % 3).astype(np.uint8)))
    options = ("--from", raw, "--volumes", "--classes", 3, "--place", "ignore")
    errors = errors_of(1, "build", *options, tmp_path / "out")
    assert f"images/{name}: " in errors
    assert reason in errors
    good("build", *options, "--on-bad", "skip", tmp_path / "out")
    assert [open_dataset(tmp_path / "out").key(0)] == ["good"]


def test_the_kinds_of_channels_are_checked(tmp_path: Path) -> None:
    cases = {
        "complex domain domain domain": "has an axis of the kind 'complex', which has no channels",
        "domain vector domain domain": "has its channels along axis 1",
        "domain domain domain domain": "has 4 axes in space",
        "vector domain domain list": "has 2 axes in space",
    }
    plain = FOUR.replace("space directions: (1.5,0,0) (0,2,0) (0,0,3)\nkinds: domain domain domain", "kinds: KINDS")
    path = tmp_path / "a.nrrd"
    for kinds, reason in cases.items():
        path.write_bytes(plain.replace("KINDS", kinds).encode() + NUMBERS.tobytes() * 2)
        with pytest.raises(BadPair, match=reason):
            Volume.open(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_byte_of_a_file_is_trusted(suffix: str, tmp_path: Path) -> None:
    """Any changed byte gives other numbers, or a reason."""
    path, dice = save(tmp_path / f"a{suffix}", scan(1), True), random.Random(0)
    honest, refused = path.read_bytes(), 0
    for _ in range(400):
        data = bytearray(honest)
        for _ in range(dice.randint(1, 3)):
            data[dice.randrange(min(len(data), 500))] = dice.choice([0, 10, 32, 45, 48, 57, 61, 255])
        path.write_bytes(data)
        try:
            volume = Volume.open(path)
            assert len(volume.all_bytes()) == volume.voxels.offset + volume.header.size
        except BadPair:
            refused += 1
    assert refused > 100
