"""NIfTI volumes as a source: every pixel of every slice, in the types and orders that the format has."""

from __future__ import annotations

import gzip
import os
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import errors_of, good, make_raw, run
from drills.published import same
from drills.volumes import nifti
from numpy.typing import NDArray

from packer import build_pack
from packer.errors import InputError, RejectedError, UsageError
from packer.pairs.split_by_hash import Shares
from packer.recipe.row_ref import RowRef
from packer.sources.container import Names
from packer.sources.reopen import reopen
from packer.sources.volumes.volume import Volume
from packer.sources.volumes.volume_slices import VolumeSlices
from readers import open_dataset
from readers.contract.tiles import picture_of

pytestmark = pytest.mark.usefixtures("in_process")

SHAPE = (9, 7, 5)
"""The sides of a volume in its own order: columns, rows, slices."""


def volume(seed: int, dtype: str = "<i2", most: int = 400) -> NDArray[Any]:
    return np.random.default_rng(seed).integers(0, most, SHAPE).astype(dtype)


def write(raw: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = raw / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(data, 1) if name.endswith(".gz") else data)
    return raw


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Three pairs of volumes as the Medical Segmentation Decathlon names them, one of them not compressed."""
    return write(
        tmp_path / "raw",
        {
            f"{folder}/case {number}.nii{'.gz' if number else ''}": nifti(volume(number, most=most), 1 + number % 2)
            for number in range(3)
            for folder, most in (("imagesTr", 400), ("labelsTr", 4))
        },
    )


def packed(raw: Path, out: Path, **options: Any) -> Any:
    options = {"classes": "4", "image_range": (0, 400), "labels": "index", **options}
    return build_pack(VolumeSlices.at(raw, Names()), out, **options)


def slices(seed: int, most: int = 400) -> NDArray[Any]:
    """Return the slices of a volume as pictures."""
    return volume(seed, most=most).transpose(2, 1, 0)


@pytest.mark.parametrize("storage", ["npy", "hdf5", "arrow", "lmdb"])
def test_slices_of_bytes_are_exact_in_every_format(tmp_path: Path, storage: str) -> None:
    files = {"images/a.nii.gz": nifti(volume(1, "|u1", 255)), "labels/a.nii": nifti(volume(2, "<i4", 4))}
    build_pack(VolumeSlices.at(write(tmp_path / "raw", files), Names()), tmp_path / "out", classes="4", format=storage)
    data = open_dataset(tmp_path / "out", label="index")
    for number in range(SHAPE[2]):
        image, label = data[number]
        assert np.array_equal(np.asarray(image[2]), volume(1, "|u1", 255)[..., number].T)
        assert np.array_equal(np.asarray(label), volume(2, "<i4", 4)[..., number].T)


@pytest.mark.parametrize("dtype", ["|u1", "|i1", "<i2", ">i2", "<u2", "<i4", ">u4", "<i8", "<f4", ">f4", "<f8"])
@pytest.mark.parametrize("version", [1, 2])
def test_numbers_of_every_type_are_exact(tmp_path: Path, dtype: str, version: int) -> None:
    numbers = volume(3, dtype, 4)
    data = nifti(numbers, version)
    source = VolumeSlices.at(write(tmp_path, {"images/a.nii.gz": data, "labels/a.nii": data}), Names())
    for ref in source.rows():
        image, label = reopen(source.to_text()).load(ref).data
        expected = numbers[..., int(ref.key[-4:])].T
        assert image.dtype == np.dtype(dtype).newbyteorder("=")
        assert label.dtype in (np.uint8, np.uint16)
        assert np.array_equal(image, expected)
        assert np.array_equal(label, expected)


def test_scaled_numbers_become_their_values(tmp_path: Path) -> None:
    files = {"images/a.nii": nifti(volume(1), slope=0.5, intercept=-1024.0), "labels/a.nii": nifti(volume(2, most=4))}
    source = VolumeSlices.at(write(tmp_path, files), Names())
    ref = next(iter(source.rows()))
    image = source.load(ref).data[0]
    assert image.dtype == np.float32
    assert np.array_equal(image, volume(1)[..., 0].T * 0.5 - 1024)
    unscaled = {"images/a.nii": nifti(volume(1), slope=0.0, intercept=7.0)}
    assert np.array_equal(VolumeSlices.at(write(tmp_path, unscaled), Names()).load(ref).data[0], volume(1)[..., 0].T)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("suffix", ["nii", "nii.gz"])
def test_slices_along_every_axis_are_exact(tmp_path: Path, axis: int, suffix: str) -> None:
    """Numbers and scaled numbers, in both versions and byte orders; also from the source's text, as in a worker."""
    numbers, labels = volume(3, ">i2"), volume(4, "<u2", 4)
    files = {f"images/a.{suffix}": nifti(numbers, 2, 0.5, -3.0), f"labels/a.{suffix}": nifti(labels)}
    source = VolumeSlices.at(write(tmp_path, files), Names()).along(axis)
    worker, refs = reopen(source.to_text()), list(source.rows())
    assert [ref.key for ref in refs] == [f"a/{number:04}" for number in range(SHAPE[axis])]
    for ref, heads in zip(refs, source.heads(refs), strict=True):
        image, label = worker.load(ref).data
        number = int(ref.key[-4:])
        assert np.array_equal(image, numbers.take(number, axis).T * np.float32(0.5) - 3)
        assert np.array_equal(label, labels.take(number, axis).T)
        assert not isinstance(heads, str)
        assert heads[0].size == heads[1].size == image.shape
        assert image.flags.c_contiguous


@pytest.mark.parametrize("storage", ["npy", pytest.param("lmdb", marks=pytest.mark.long)])
def test_every_slice_along_any_axis_is_a_row(raw: Path, tmp_path: Path, storage: str) -> None:
    for axis in range(3):
        source = VolumeSlices.at(raw, Names()).along(axis)
        out = tmp_path / f"out{axis}"
        options: dict[str, Any] = {"classes": "4", "image_range": (0, 400), "labels": "index"}
        build_pack(source, out, image_dtype="float32", format=storage, **options)
        data = open_dataset(out)
        keys = [f"case {case}/{number:04}" for case in range(3) for number in range(SHAPE[axis])]
        assert [data.key(row) for row in range(len(data))] == keys
        for row in range(len(data)):
            case, number = divmod(row, SHAPE[axis])
            image, label = data[row]
            assert np.array_equal(np.asarray(label), volume(case, most=4).take(number, axis).T)
            assert np.array_equal(
                np.asarray(image[1]), volume(case).take(number, axis).T.astype("f4") / np.float32(400)
            )


def test_another_axis_packs_everything_again(raw: Path, tmp_path: Path) -> None:
    """Sizes and slices of an axis are never taken for those of another one, although the files are the same."""
    for path in raw.rglob("*.nii*"):
        os.utime(path, (1_600_000_000, 1_600_000_000))
    given = ("--from", raw, "--classes", "4", "--image-range", "0,400")
    for axis in ("1", "0", "2", None, "1"):
        options = given if axis is None else (*given, "--axis", axis)
        assert run("build", *options, tmp_path / "out").exit_code == 0
        assert run("build", *options, tmp_path / f"fresh {axis}").exit_code == 0
        assert same(tmp_path / "out", tmp_path / f"fresh {axis}")
        assert run("diff", raw, tmp_path / "out").exit_code == 0
    assert len(open_dataset(tmp_path / "out")) == 3 * SHAPE[1]


def test_a_volume_is_read_once_for_all_of_its_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"images/a.nii.gz": GOOD, "labels/a.nii": nifti(volume(2, most=4))}
    read, all_bytes = list[str](), Volume.all_bytes

    def watched(volume: Volume) -> memoryview:
        read.append(volume.path.name)
        return all_bytes(volume)

    monkeypatch.setattr(Volume, "all_bytes", watched)
    raw = write(tmp_path, files)
    for axis, wanted in ((0, ["a.nii.gz", "a.nii"]), (1, ["a.nii.gz", "a.nii"]), (2, ["a.nii.gz"])):
        source = VolumeSlices.at(raw, Names()).along(axis)
        assert all(source.load(ref).bad is None for ref in source.rows())
        assert read == wanted
        read.clear()


def test_an_axis_is_one_of_volumes(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 2}).path
    np.save(tmp_path / "a.npy", np.zeros((2, 8, 8), np.uint8))
    for given in ((raw,), ("--from", raw), ("--from", tmp_path / "a.npy", "--image", "a", "--label", "a")):
        errors = errors_of(2, "build", *given, tmp_path / "out", "--axis", "0", "--classes", "4")
        assert "--axis 0: is for scans such as NIfTI; the slices of a TIFF are its pages" in errors
    assert "expected" in run("build", "--from", raw, tmp_path / "out", "--axis", "3").stderr


def test_the_error_of_a_folder_of_volumes_given_as_raw_names_from(raw: Path, tmp_path: Path) -> None:
    errors = errors_of(1, "build", raw, tmp_path / "out", "--classes", "4")
    assert "6 files are volumes: give this folder with --from" in errors


def test_a_second_build_reads_nothing_and_a_changed_volume_alone(raw: Path, tmp_path: Path) -> None:
    out, fresh = tmp_path / "out", tmp_path / "fresh"
    for path in raw.rglob("*.nii*"):
        os.utime(path, (1_600_000_000, 1_600_000_000))
    options = {"shard_size": "400"}
    packed(raw, out, **options)
    assert packed(raw, out, **options).reused == 15
    write(raw, {"imagesTr/case 2.nii.gz": nifti(volume(99))})
    summary = packed(raw, out, **options)
    assert 0 < summary.reused < 15
    packed(raw, fresh, **options)
    assert same(out, fresh)


def test_templates_name_the_pairs(tmp_path: Path) -> None:
    files = {
        "train/a/ct.nii.gz": nifti(volume(1, "|u1", 200)),
        "train/a/seg.nii.gz": nifti(volume(2, "|u1", 4)),
        "val/b/ct.nii.gz": nifti(volume(3, "|u1", 200)),
        "val/b/seg.nii.gz": nifti(volume(4, "|u1", 4)),
    }
    source = VolumeSlices.at(write(tmp_path / "raw", files), Names("{split}/{key}/ct", "{split}/{key}/seg.nii.gz"))
    build_pack(source, tmp_path / "out", classes="4")
    assert [len(open_dataset(tmp_path / "out", split)) for split in ("train", "val")] == [5, 5]


def test_nnu_net_names_its_channel(tmp_path: Path) -> None:
    files = {"imagesTr/a_0000.nii.gz": nifti(volume(1)), "labelsTr/a.nii.gz": nifti(volume(2, most=4))}
    assert next(ref.parts for ref in VolumeSlices.at(write(tmp_path, files), Names()).rows()) == (
        "imagesTr/a_0000.nii.gz[0]",
        "labelsTr/a.nii.gz[0]",
    )


GOOD = nifti(volume(5))


def changed(at: int, layout: str, *numbers: float) -> bytes:
    data = bytearray(GOOD)
    struct.pack_into(layout, data, at, *numbers)
    return bytes(data)


BAD = {
    "not a volume": (b"hello world", "is not a NIfTI file of one part"),
    "two parts": (changed(344, "4s", b"ni1\0"), "is not a NIfTI file of one part"),  # type: ignore[arg-type]
    "cut short": (GOOD[:-1], "bytes; its header demands"),
    "longer": (GOOD + b"\0", "bytes; its header demands"),
    "short header": (GOOD[:100], "is not a NIfTI file of one part"),
    "four sides": (changed(40, "<5h", 4, 9, 7, 1, 5), r"is one of 1 slices, its label labels/bad"),
    "no side": (changed(40, "<4h", 3, 9, 0, 5), r"has the sides \[9, 0, 5\]; expected three"),
    "negative": (changed(40, "<4h", 3, 9, -7, 5), r"has the sides \[9, -7, 5\]; expected three"),
    "many sides": (changed(40, "<h", 99), "expected three"),
    "colours": (changed(70, "<2h", 128, 24), "the NIfTI type 128 with 24 bits"),
    "lying bits": (changed(70, "<2h", 4, 8), "the NIfTI type 4 with 8 bits"),
    "huge": (changed(42, "<3h", 32767, 32767, 9999), "bytes; its header demands 21471378427774"),
    "many slices": (nifti(np.zeros((1, 1, 20_000), "<i2")), "claims 20000 slices; 9999 are read at most"),
    "a bomb": (changed(42, "<3h", 1000, 1000, 500), "bytes; its header demands 1000000352"),
    "offset": (changed(108, "<f", 7.0), "has its numbers at 7.0; expected 352 or more"),
    "no offset": (changed(108, "<f", float("nan")), "has its numbers at nan; expected 352 or more"),
    "more slices": (nifti(np.zeros((9, 7, 6), "<i2")), "is one of 6 slices, its label labels/bad.* of 5"),
    "another size": (nifti(np.zeros((9, 8, 5), "<i2")), "they must have the same size"),
}


@pytest.mark.parametrize("suffix", ["nii", "nii.gz"])
@pytest.mark.parametrize("case", BAD)
def test_bad_volumes_are_named_and_the_others_are_packed(tmp_path: Path, case: str, suffix: str) -> None:
    data, message = BAD[case]
    if suffix == "nii.gz":
        message = message.replace(
            "bytes; its header demands", "(bytes; its header demands|is cut short|another length)"
        )
    label = nifti(volume(2, most=4))
    files = {f"images/bad.{suffix}": data, "images/good.nii": GOOD, "labels/bad.nii": label, "labels/good.nii": label}
    source = VolumeSlices.at(write(tmp_path / "raw", files), Names())
    options: dict[str, Any] = {"classes": "4", "image_range": (0, 400)}
    with pytest.raises((RejectedError, InputError), match=r"images/bad"):
        build_pack(source, tmp_path / "none", **options)
    summary = build_pack(source, tmp_path / "out", on_bad="skip", **options)
    assert summary.rows == 5
    assert summary.rejects
    assert len(summary.rejects) <= 6
    for _, key, reason in summary.rejects:
        assert key.startswith("bad/")
        assert re.search(message, reason), reason


def test_damage_in_a_compressed_volume_is_found(tmp_path: Path) -> None:
    label = nifti(volume(2, most=4))
    raw = write(tmp_path / "raw", {"images/a.nii.gz": GOOD, "labels/a.nii.gz": label})
    path = raw / "images/a.nii.gz"
    whole = path.read_bytes()
    for data in (whole[:-1], whole[:-12], whole[:-6] + b"\1" + whole[-5:], whole[:200] + b"\0" * 20 + whole[220:]):
        path.write_bytes(data)
        source = VolumeSlices.at(raw, Names())
        assert all(source.load(ref).bad for ref in source.rows())
    path.write_bytes(gzip.compress(GOOD[:300]) + gzip.compress(GOOD[300:]))
    assert (
        VolumeSlices.at(raw, Names()).load(RowRef("all", "", ("images/a.nii.gz[1]", "labels/a.nii.gz[1]"))).bad is None
    )


def test_labels_of_other_numbers_are_refused(tmp_path: Path) -> None:
    for numbers, message in (
        (volume(2, "<f4", 4) + np.float32(0.5), r"has the number .*\.5 at \(0, 0\); a label has whole numbers"),
        (volume(2, "<f4", 4) * np.float32(np.nan), "has the number nan"),
        (volume(2, "<i2", 4) - np.int16(9), "has the number -"),
        (volume(2, "<i4", 4) + (1 << 20), "class numbers are 0 to 65535"),
    ):
        source = VolumeSlices.at(write(tmp_path, {"images/a.nii": GOOD, "labels/a.nii": nifti(numbers)}), Names())
        bad = source.load(next(iter(source.rows()))).bad
        assert bad is not None
        assert re.search(message, bad), bad
    source = VolumeSlices.at(write(tmp_path, {"labels/a.nii": nifti(volume(2, most=4), slope=2.0)}), Names())
    assert "scaled by 2" in str(source.load(next(iter(source.rows()))).bad)


def test_numbers_that_no_type_holds_cause_no_warning(tmp_path: Path) -> None:
    """A signalling NaN in a label, and values beyond float32, which are clipped."""
    signalling = nifti(np.frombuffer(np.full(315, 0x7F800001, "<u4").tobytes(), "<f4").reshape(SHAPE))
    files = {"images/a.nii": nifti(volume(1, "<f8") * 1e300, slope=1e30), "labels/a.nii": signalling}
    source = VolumeSlices.at(write(tmp_path, files), Names())
    assert "has the number nan" in str(source.load(next(iter(source.rows()))).bad)
    write(tmp_path, {"labels/a.nii": nifti(volume(2, most=4))})
    build_pack(VolumeSlices.at(tmp_path, Names()), tmp_path / "out", classes="4", image_range=(0, 400), labels="index")
    for number, (image, _) in enumerate(open_dataset(tmp_path / "out")):
        assert np.array_equal(image[0].numpy(), 255 * (volume(1)[..., number].T > 0))


def test_wrong_folders_and_names_are_refused(raw: Path) -> None:
    with pytest.raises(UsageError, match="--key x: the keys of volumes are in their names"):
        VolumeSlices.at(raw, Names(key="x"))
    with pytest.raises(UsageError, match="--image and --label go together"):
        VolumeSlices.at(raw, Names("imagesTr/{key}"))
    with pytest.raises(UsageError, match=r"needs \{key\}"):
        VolumeSlices.at(raw, Names("imagesTr/a", "labelsTr/{key}"))
    with pytest.raises(InputError, match=r"has 6 volumes, and no pairs of the form --image ct/\{key\} --label"):
        VolumeSlices.at(raw, Names("ct/{key}", "seg/{key}"))
    (raw / "labelsTr/case 1.nii.gz").unlink()
    with pytest.raises(InputError, match=r"imagesTr/case 1.nii.gz: no label"):
        VolumeSlices.at(raw, Names())
    write(raw, {"labelsTr/case 1.nii.gz": GOOD, "labelsTr/case 1.nii": GOOD})
    with pytest.raises(InputError, match="both are case 1 by the template"):
        VolumeSlices.at(raw, Names())


def test_a_folder_is_known_by_its_volumes(raw: Path, tmp_path: Path) -> None:
    assert VolumeSlices.fits(raw, b"")
    assert not VolumeSlices.fits(tmp_path / "none", b"")
    assert not VolumeSlices.fits(raw / "imagesTr/case 0.nii", GOOD[:512])
    (raw / "picture.png").write_bytes(b"")
    assert not VolumeSlices.fits(raw, b"")


def refusal(data: bytes, tmp_path: Path) -> str | None:
    """Return why the first slice of a compressed image is bad, if it is."""
    source = VolumeSlices.at(write(tmp_path, {"images/a.nii": GOOD, "labels/a.nii": nifti(volume(2, most=4))}), Names())
    (tmp_path / "images/a.nii").write_bytes(data)
    return source.load(next(iter(source.rows()))).bad


@pytest.mark.parametrize("start", [b"", gzip.compress(GOOD[:600])], ids=["the header", "the numbers"])
def test_empty_parts_of_a_gzip_file_do_not_stall(tmp_path: Path, start: bytes) -> None:
    """A megabyte of them took seconds for each slice, 20 bytes at a time."""
    rest = gzip.compress(GOOD[600:] if start else GOOD)
    assert refusal(start + gzip.compress(b"") * 900 + rest, tmp_path) is None
    assert re.search(
        r"has \d+ bytes in \d+ parts that unpack to (0|600); compress it again",
        str(refusal(start + gzip.compress(b"") * 50_000 + rest, tmp_path)),
    )


def test_a_name_of_megabytes_in_a_gzip_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    head, body = gzip.compress(GOOD)[:10], gzip.compress(GOOD)[10:]
    assert refusal(head[:3] + b"\x08" + head[4:] + b"n" * 1000 + b"\0" + body, tmp_path) is None
    bad = refusal(head[:3] + b"\x08" + head[4:] + b"n" * (4 << 20) + b"\0" + body, tmp_path)
    assert re.search(r"has 1\d+ bytes in 1 parts that unpack to 0", str(bad))


def test_parts_as_bgzip_writes_them_and_random_numbers_are_read(tmp_path: Path) -> None:
    dice = np.random.default_rng(4)
    noise = nifti(dice.integers(0, 1 << 16, (200, 200, 60), np.uint16))
    cut = [noise[start : start + 65280] for start in range(0, len(noise), 65280)]
    (tmp_path / "a.nii.gz").write_bytes(b"".join(map(gzip.compress, [*cut, b""])))
    assert Volume.open(tmp_path / "a.nii.gz").all_bytes() == noise


def test_a_damaged_volume_is_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a volume of gigabytes whose end is damaged would be unpacked for each of its slices."""
    data = gzip.compress(GOOD)
    files = {"images/a.nii": GOOD, "labels/a.nii": nifti(volume(2, most=4))}
    source = VolumeSlices.at(write(tmp_path, files), Names())
    (tmp_path / "images/a.nii").write_bytes(data[:-6] + b"\1" + data[-5:])
    opened, unpack = list[Path](), Volume.all_bytes

    def counted(volume: Volume) -> memoryview:
        opened.append(volume.path)
        return unpack(volume)

    monkeypatch.setattr(Volume, "all_bytes", counted)
    reasons = {source.load(ref).bad for ref in source.rows()}
    assert len(reasons) == SHAPE[2]
    assert all("is damaged" in str(reason) for reason in reasons)
    assert len(opened) == 1


def test_kept_volumes_are_bounded_by_their_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"{folder}/{key}.nii.gz": GOOD for folder in ("images", "labels") for key in "abc"}
    source = VolumeSlices.at(write(tmp_path, files), Names())
    assert isinstance(source, VolumeSlices)
    for most, kept in ((1 << 32, 4), (3 * len(GOOD), 3), (0, 2)):
        monkeypatch.setattr("packer.sources.volumes.unpacked_volumes.MOST_KEPT", most)
        for ref in source.rows():
            source.load(ref)
        assert len(source._unpacked) == kept


@pytest.mark.parametrize("options", [("--size", "native"), ("--volumes",)])
def test_all_slices_of_a_volume_are_in_one_drawn_split(options: tuple[str, ...], tmp_path: Path) -> None:
    files = {f"{folder}/scan_{key}.nii.gz": GOOD for folder in ("images", "labels") for key in range(12)}
    drawn = ("--split", "60/40", "--classes", 600, "--bands", "all", *options)
    result = run("build", "--from", write(tmp_path / "raw", files), *drawn, tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    shares = Shares.parse("60/40")
    for split in ("train", "val"):
        rows = open_dataset(tmp_path / "out", split)
        assert {shares.split_of(rows.key(index).partition("/")[0]) for index in range(len(rows))} == {split}


def volume_of(key: str) -> str:
    """Return the volume that a tile of a slice is of."""
    return picture_of(key).rpartition("/")[0]


def test_tiles_and_slices_of_a_volume_stay_together_when_a_pack_is_divided(tmp_path: Path) -> None:
    files = {f"{folder}/scan_{key}.nii.gz": GOOD for folder in ("images", "labels") for key in range(12)}
    tiled = ("--classes", 600, "--bands", "all", "--fit", "tile", "--size", "4x4")
    good("build", "--from", write(tmp_path / "raw", files), *tiled, tmp_path / "tiles")
    good("build", "--from", tmp_path / "tiles", tmp_path / "again")  # a pack of a pack knows that they are slices
    good("build", "--from", tmp_path / "again", "--split", "60/40", tmp_path / "out")
    shares = Shares.parse("60/40")
    for split in ("train", "val"):
        rows = open_dataset(tmp_path / "out", split)
        assert {shares.split_of(volume_of(rows.key(index))) for index in range(len(rows))} == {split}


def test_a_slope_without_a_finite_intercept_is_refused(tmp_path: Path) -> None:
    nan, infinite = float("nan"), float("inf")
    for slope, intercept in ((nan, 1.0), (infinite, nan), (0.0, nan), (nan, infinite)):
        assert refusal(changed(112, "<2f", slope, intercept), tmp_path) is None
    for slope, intercept in ((2.0, nan), (1.0, infinite), (-1.0, -infinite)):
        assert f"has numbers that are scaled by {slope:g} plus {intercept}" in str(
            refusal(changed(112, "<2f", slope, intercept), tmp_path)
        )
