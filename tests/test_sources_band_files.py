"""Pictures whose bands are in files of their own: as one GeoTIFF with all bands, and as rasterio reads each file."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import errors_of, good, run, write_png
from numpy.typing import NDArray

from packer import PictureField, build_pack, probe_folder, verify_pack
from packer.decoding.bands import Bands, read_bands
from packer.decoding.decode import header_of
from packer.decoding.header import BandFiles
from packer.decoding.rules import ImageRules
from packer.decoding.strips.repeated_lines import RepeatedLines
from packer.decoding.strips.strip_file import StripFile
from packer.errors import BadFile, InputError, UsageError
from packer.packs.raw_rows import RawRows
from readers import open_dataset
from readers.contract import giant
from readers.contract.manifest import STORAGES
from readers.pack import Pack

pytestmark = [
    pytest.mark.usefixtures("in_process"),
    pytest.mark.filterwarnings("ignore:Dataset has no geotransform"),
]
rasterio: Any = pytest.importorskip("rasterio")

HEIGHT, WIDTH = 120, 180
METRES = {"B01": 60, "B02": 10, "B03": 10, "B11": 20}
KEYS = ("rome", "oslo", "bern")
JP2: dict[str, Any] = {"driver": "JP2OpenJPEG", "QUALITY": 100, "REVERSIBLE": "YES", "NBITS": 15}
S2: dict[str, Any] = {"image": "S2/{key}/*_{channel}.jp2", "label": "masks/{key}.tif", "classes": "5"}
LANDSAT: dict[str, Any] = {"image": "scenes/{key}_SR_B{channel}.TIF", "label": "masks/{key}.tif", "classes": "5"}


def write(path: Path, numbers: NDArray[Any], metres: float = 10, east: float = 500_000, **options: Any) -> None:
    """Write the bands (H,W) or (B,H,W) of a file with its place; `metres` of 0 means that it says none."""
    bands = numbers[None] if numbers.ndim == 2 else numbers
    place = {"crs": "EPSG:32632", "transform": rasterio.Affine(metres, 0, east, 0, -metres, 5_000_000)}
    shape = {"count": len(bands), "height": bands.shape[1], "width": bands.shape[2], "dtype": bands.dtype}
    path.parent.mkdir(parents=True, exist_ok=True)
    with rasterio.open(path, "w", **{"driver": "GTiff", **shape, **(place if metres else {}), **options}) as file:
        file.write(bands)


def noise(key: str, channel: str, dtype: str = "uint16", metres: int = 10) -> NDArray[Any]:
    dice = np.random.default_rng(sum(map(ord, key + channel)))
    return dice.integers(1, 4000, (HEIGHT * 10 // metres, WIDTH * 10 // metres)).astype(dtype)


def write_mask(raw: Path, key: str) -> None:
    write(raw / f"masks/{key}.tif", noise(key, "mask").astype(np.uint8) % 5)


def write_scenes(raw: Path, channels: dict[str, int] = METRES) -> Path:
    """Write a folder as Sentinel-2 ships it."""
    for key in KEYS:
        for channel, metres in channels.items():
            write(raw / f"S2/{key}/T32_{channel}.jp2", noise(key, channel, metres=metres), metres, **JP2)
        write_mask(raw, key)
    return raw


def write_landsat(raw: Path, channels: str = "2345", **options: Any) -> Path:
    for key in KEYS:
        for channel in channels:
            write(raw / f"scenes/{key}_SR_B{channel}.TIF", noise(key, channel), **options)
        write_mask(raw, key)
    return raw


def truth(path: Path) -> NDArray[Any]:
    """Return what rasterio reads of a file on the grid of 10 m, each pixel the nearest."""
    with rasterio.open(path) as file:
        return np.asarray(file.read(1, out_shape=(HEIGHT, WIDTH), resampling=rasterio.enums.Resampling.nearest))


def stored(out: Path) -> dict[str, bytes]:
    """Return the shards of a pack, whose names are fingerprints."""
    return {path.name: path.read_bytes() for path in (out / "shards").rglob("*") if path.suffix != ".json"}


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scenes(tmp_path_factory.mktemp("scenes"))


# What is packed


@pytest.mark.parametrize("storage", STORAGES)
def test_all_bands_are_those_that_rasterio_reads(storage: str, scenes: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build_pack(scenes, out, **S2, format=storage, labels="index")
    rows = open_dataset(out)
    assert rows.fields[0].bands == tuple(METRES)
    for row in range(len(rows)):
        files = (scenes / f"S2/{rows.key(row)}/T32_{channel}.jp2" for channel in METRES)
        np.testing.assert_array_equal(rows[row].image.numpy(), np.stack([truth(file) for file in files]))
        place = rows.place(row)
        assert place is not None
        assert (place.crs, place.transform) == ("EPSG:32632", (10, 0, 500_000, 0, -10, 5_000_000))
    assert not verify_pack(out)


@pytest.mark.parametrize("options", [{}, {"size": "64x64", "fit": "tile"}, {"size": "48x50", "fit": "letterbox"}])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
def test_one_file_with_all_bands_gives_the_same_image_bytes(
    dtype: str, options: dict[str, Any], tmp_path: Path
) -> None:
    for key in KEYS:
        bands = np.stack([noise(key, channel, dtype) for channel in METRES])
        write(tmp_path / f"one/images/{key}.tif", bands, nodata=7, photometric="MINISBLACK", alpha="NO")
        for channel, band in zip(METRES, bands, strict=True):
            write(tmp_path / f"apart/{channel}/{key}.tif", band, nodata=7)
        for raw in ("one", "apart"):
            write_mask(tmp_path / raw, key)
    common: dict[str, Any] = {"label": "masks/{key}.tif", "classes": "5", "bands": "all", "labels": "index", **options}
    build_pack(tmp_path / "one", tmp_path / "a", image="images/{key}.tif", **common)
    build_pack(tmp_path / "apart", tmp_path / "b", image="{channel}/{key}.tif", **common)
    one, apart = open_dataset(tmp_path / "a"), open_dataset(tmp_path / "b")
    images = [sorted((tmp_path / out / "shards").rglob("*.image.npy")) for out in "ab"]
    assert images[0]
    assert [path.read_bytes() for path in images[0]] == [path.read_bytes() for path in images[1]]
    assert (list(one.mean), list(one.std)) == (list(apart.mean), list(apart.std))
    assert one.place(0) == apart.place(0)
    assert (one.fields[0].bands, apart.fields[0].bands) == (tuple(f"band {n}" for n in range(1, 5)), tuple(METRES))


def test_bands_are_chosen_by_name(scenes: Path, tmp_path: Path) -> None:
    build_pack(scenes, tmp_path / "7", **S2, bands="B11,B02")
    build_pack(scenes, tmp_path / "2", **S2, bands=["B11", "B02"])
    rows = open_dataset(tmp_path / "2")
    assert rows.fields[0].bands == ("B11", "B02")
    file = scenes / f"S2/{rows.key(1)}/T32_B11.jp2"
    np.testing.assert_array_equal(rows[1].image.numpy()[0], truth(file))
    assert stored(tmp_path / "7") == stored(tmp_path / "2")
    with pytest.raises(UsageError, match=r"has the channel 'B20', only B01, B02, B03, B11; did you mean B0\d\?"):
        build_pack(scenes, tmp_path / "out", **S2, bands="B03,B20")
    with pytest.raises(UsageError, match=r"--bands rgb: each {channel} .* is a band with a name"):
        build_pack(scenes, tmp_path / "out", **S2, bands="rgb")


def test_channels_that_are_numbers_are_named_and_not_counted(tmp_path: Path) -> None:
    raw = write_landsat(tmp_path / "raw", "24")
    for key in KEYS:
        write(raw / f"scenes/{key}_SR_B10.TIF", noise(key, "10"))
    build_pack(raw, tmp_path / "all", **LANDSAT)
    assert open_dataset(tmp_path / "all").fields[0].bands == ("2", "4", "10")
    build_pack(raw, tmp_path / "some", **LANDSAT, bands="4,2")
    rows = open_dataset(tmp_path / "some")
    assert rows.fields[0].bands == ("4", "2")
    np.testing.assert_array_equal(rows[0].image.numpy()[0], noise(rows.key(0), "4"))
    with pytest.raises(UsageError, match="has the channel '1', only 2, 4, 10"):
        build_pack(raw, tmp_path / "out", **LANDSAT, bands="1,2")


def test_one_channel_of_a_folder_is_a_picture_of_one_band(tmp_path: Path) -> None:
    raw = write_landsat(tmp_path / "raw", "5")
    build_pack(raw, tmp_path / "out", **LANDSAT)
    rows = open_dataset(tmp_path / "out")
    assert rows.fields[0].bands == ("5",)
    np.testing.assert_array_equal(rows[2].image.numpy()[0], noise(rows.key(2), "5"))


def test_pictures_without_labels_and_of_other_formats(tmp_path: Path) -> None:
    raw, truths = tmp_path / "raw", {}
    for channel in ("red", "nir_2"):  # a folder may have a name with _
        truths[channel] = noise("a", channel)
    write_png(raw / "red/a.png", truths["red"])
    (raw / "nir_2").mkdir()
    np.save(raw / "nir_2/a.npy", truths["nir_2"])
    build_pack(raw, tmp_path / "out", fields=[PictureField(files="{channel}/{key}")])
    rows = open_dataset(tmp_path / "out")
    assert rows.fields[0].bands == ("nir_2", "red")
    np.testing.assert_array_equal(rows[0][0].numpy(), np.stack([truths["nir_2"], truths["red"]]))


def test_files_of_colours_follow_each_other(tmp_path: Path) -> None:
    """Pictures of one place before and after a change."""
    raw, pixels = tmp_path / "raw", np.random.default_rng(0).integers(0, 256, (2, HEIGHT, WIDTH, 3), np.uint8)
    for channel, picture in zip("AB", pixels, strict=True):
        write_png(raw / f"{channel}/one.png", picture)
    write_png(raw / "label/one.png", pixels[0, ..., 0] % 2)
    options: dict[str, Any] = {"image": "{channel:A|B}/{key}.png", "label": "label/{key}.png", "classes": "2"}
    build_pack(raw, tmp_path / "out", **options)
    rows = open_dataset(tmp_path / "out")
    assert rows.fields[0].bands == ("A red", "A green", "A blue", "B red", "B green", "B blue")
    np.testing.assert_array_equal(rows[0].image.numpy(), np.concatenate([*pixels], 2).transpose(2, 0, 1))
    build_pack(raw, tmp_path / "out", **options, bands="B")
    assert open_dataset(tmp_path / "out").fields[0].bands == ("B red", "B green", "B blue")


# What is refused


def test_every_lacking_channel_is_a_problem(tmp_path: Path) -> None:
    raw = write_scenes(tmp_path / "raw", {"B02": 10, "B03": 10, "B11": 20})
    (raw / "S2/rome/T32_B11.jp2").unlink()
    (raw / "S2/oslo/T32_B02.jp2").unlink()
    (raw / "S2/oslo/T32_B11.jp2").unlink()
    with pytest.raises(InputError) as caught:
        build_pack(raw, tmp_path / "out", **S2)
    assert "3 problems" in str(caught.value)
    assert "2 keys: no channel B11. --bands names the channels to pack; all: oslo, rome" in str(caught.value)
    assert "oslo: has no channel B02" in str(caught.value)
    for missing in ("skip", "keep"):
        build_pack(raw, tmp_path / missing, **S2, missing=missing)
        rows = open_dataset(tmp_path / missing)
        assert [rows.key(row) for row in range(len(rows))] == ["bern"]
    build_pack(raw, tmp_path / "out", **S2, bands="B03")
    assert len(open_dataset(tmp_path / "out")) == 3


def rejects(raw: Path, out: Path, **options: Any) -> str:
    """Return why pairs of a folder are bad."""
    with pytest.raises(InputError) as caught:
        build_pack(raw, out, **options)
    assert not (out / "manifest.json").exists()
    return str(caught.value)


def test_files_at_another_place_or_of_other_sides_are_bad(tmp_path: Path) -> None:
    raw, path = write_scenes(tmp_path / "raw", {"B02": 10, "B11": 20}), tmp_path / "raw/S2/rome/T32_B11.jp2"
    coarse = noise("rome", "B11", metres=20)
    write(path, coarse, 20, 500_010, **JP2)
    reason = rejects(raw, tmp_path / "out", **S2)
    assert "rome/T32_B02.jp2: B02 has its pixel (0, 0) at (500000, 5000000), its band B11 at (500010" in reason
    write(path, coarse[:50, :70], 20, **JP2)
    reason = rejects(raw, tmp_path / "out", **S2)
    assert "S2/rome/T32_B11.jp2: is 50x70, and B02 is 120x180 (height x width)" in reason
    write(path, coarse, 0, **JP2)
    assert "only one of them says where its pixels are" in rejects(raw, tmp_path / "out", **S2)
    write(path, coarse.astype(np.uint8), 20, **{**JP2, "NBITS": 8})
    reason = rejects(raw, tmp_path / "out", **S2)
    assert "T32_B11.jp2: is a JPEG 2000 gray, 8 bits, and B02 is a JPEG 2000 gray, 16 bits; all bands" in reason
    write(path, coarse.astype(np.uint8), 20, photometric="PALETTE")
    assert "T32_B11.jp2: is a TIFF palette, 8 bits; a band has numbers of its own" in rejects(
        raw, tmp_path / "out", **S2
    )
    write(path, coarse, 20, **JP2)
    write(raw / "masks/rome.tif", noise("rome", "mask").astype(np.uint8) % 5, east=600_000)
    reason = rejects(raw, tmp_path / "out", **S2)
    assert "S2/rome/T32_B02.jp2 has its pixel (0, 0) at (500000, 5000000), its label masks/rome.tif at" in reason


def test_files_without_a_place_may_be_coarser(tmp_path: Path) -> None:
    raw = write_landsat(tmp_path / "raw", "2", metres=0)
    for key in KEYS:
        write(raw / f"scenes/{key}_SR_B9.TIF", noise(key, "9", metres=20), 0)
    build_pack(raw, tmp_path / "out", **LANDSAT)
    rows = open_dataset(tmp_path / "out")
    np.testing.assert_array_equal(rows[0].image.numpy()[1], truth(raw / f"scenes/{rows.key(0)}_SR_B9.TIF"))


def test_a_damaged_file_is_named_by_its_path(tmp_path: Path) -> None:
    raw = write_scenes(tmp_path / "raw", {"B02": 10, "B11": 20})
    path = raw / "S2/rome/T32_B11.jp2"
    path.write_bytes(path.read_bytes()[:-3000])
    assert "S2/rome/T32_B11.jp2: " in rejects(raw, tmp_path / "out", **S2)
    path.write_bytes(b"")
    assert "S2/rome/T32_B11.jp2: is empty" in rejects(raw, tmp_path / "out", **S2)
    build_pack(raw, tmp_path / "out", **S2, on_bad="skip")
    assert len(open_dataset(tmp_path / "out")) == 2


def test_names_that_are_refused(tmp_path: Path) -> None:
    raw = write_landsat(tmp_path / "raw", "2")
    write(raw / "scenes/old/rome_SR_B2.TIF", noise("rome", "2"))
    options = {**LANDSAT, "image": "scenes/*/{key}_SR_B{channel}.TIF"}
    for folder in ("new", "old"):
        write(raw / f"scenes/{folder}/rome_SR_B2.TIF", noise("rome", "2"))
    with pytest.raises(InputError, match=r"has the same key and channel as scenes/new/rome_SR_B2\.TIF"):
        build_pack(raw, tmp_path / "out", **options)
    with pytest.raises(UsageError, match=r"a label is one file; {channel} is for --image"):
        build_pack(raw, tmp_path / "out", **{**LANDSAT, "label": "masks/{key}_{channel}.tif"})
    with pytest.raises(UsageError, match="names the bands of pictures and scans, not of TIFF volumes"):
        build_pack(raw, tmp_path / "out", **LANDSAT, volumes=True)
    with pytest.raises(UsageError, match="labels are painted on pictures of one file"):
        build_pack(raw, tmp_path / "out", image=LANDSAT["image"], annotations="{key}.json")
    long = raw / f"scenes/rome_SR_B{'x' * 80}.TIF"
    write(long, noise("rome", "2"))
    with pytest.raises(InputError, match="needs a name of at most 55 plain characters"):
        build_pack(raw, tmp_path / "out", **LANDSAT)


# Pixels without data


def test_each_file_of_floating_point_numbers_names_its_own_number(tmp_path: Path) -> None:
    marks, raw = {"a": -9999.0, "b": 7.0, "c": None}, tmp_path / "raw"
    for key in KEYS:
        for channel, mark in marks.items():
            numbers = noise(key, channel, "float32")
            numbers[:5] = 7
            numbers[5:10] = -9999
            write(raw / f"{key}_{channel}.tif", numbers, nodata=mark)
        write_mask(raw, key)
    options: dict[str, Any] = {"image": "{key}_{channel}.tif", "label": "masks/{key}.tif", "classes": "5"}
    build_pack(raw, tmp_path / "out", **options)
    image = open_dataset(tmp_path / "out")[0].image.numpy()
    lacks = np.isnan(image).all(2)
    assert lacks.sum(1).tolist() == [5, 5, 0]
    assert lacks[0, 5:10].all()
    assert lacks[1, :5].all()
    build_pack(raw, tmp_path / "none", **options, nodata="none")
    assert (open_dataset(tmp_path / "none")[0].image.numpy()[:, 5:10] == -9999).all()


def test_whole_numbers_have_one_number_for_all_bands(tmp_path: Path) -> None:
    raw = write_landsat(tmp_path / "raw", "2", nodata=0)
    build_pack(raw, tmp_path / "out", **LANDSAT)
    assert open_dataset(tmp_path / "out").fields[0].fill == 0
    for key in KEYS:
        write(raw / f"scenes/{key}_SR_B3.TIF", noise(key, "3"))
    reason = rejects(raw, tmp_path / "new", **LANDSAT)
    assert "names 0, none for pixels without data in its bands, and whole numbers have one for all; --nodata" in reason
    build_pack(raw, tmp_path / "out", **LANDSAT, nodata="0")
    assert open_dataset(tmp_path / "out").fields[0].bands == ("2", "3")


# Built again


def test_a_changed_file_of_any_channel_is_packed_again(tmp_path: Path) -> None:
    raw, out = write_scenes(tmp_path / "raw", {"B02": 10, "B11": 20}), tmp_path / "out"
    build_pack(raw, out, **S2, shard_size="1KB")
    assert build_pack(raw, out, **S2, shard_size="1KB").reused == 3
    write(raw / "S2/oslo/T32_B11.jp2", noise("oslo", "new", metres=20), 20, **JP2)
    assert build_pack(raw, out, **S2, shard_size="1KB").reused == 2
    build_pack(raw, tmp_path / "fresh", **S2, shard_size="1KB")
    assert stored(tmp_path / "fresh").items() <= stored(out).items()
    rows = open_dataset(out)
    keys = [rows.key(row) for row in range(3)]
    assert (rows[keys.index("oslo")].image.numpy()[1] == truth(raw / "S2/oslo/T32_B11.jp2")).all()


def test_a_new_channel_is_missed_or_packed(tmp_path: Path) -> None:
    raw, out = write_scenes(tmp_path / "raw", {"B02": 10}), tmp_path / "out"
    build_pack(raw, out, **S2)
    write(raw / "S2/oslo/T32_B03.jp2", noise("oslo", "B03"), **JP2)
    with pytest.raises(InputError, match="2 keys: no channel B03"):
        build_pack(raw, out, **S2)
    for key in KEYS:
        write(raw / f"S2/{key}/T32_B03.jp2", noise(key, "B03"), **JP2)
    assert build_pack(raw, out, **S2).reused == 0
    assert open_dataset(out).fields[0].bands == ("B02", "B03")


# Larger than memory


@pytest.mark.parametrize("suffix", ["tif", "png", "jp2"])
@pytest.mark.parametrize("nodata_label", ["keep", "ignore"])
def test_rows_that_are_built_strip_by_strip_are_the_same(
    suffix: str, nodata_label: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tmp_path / "raw"
    for channel, metres in METRES.items():
        numbers = noise("a", channel, metres=metres)
        if suffix == "png":
            write_png(raw / f"{channel}/a.png", numbers)
        elif suffix == "jp2":
            write(raw / f"{channel}/a.jp2", numbers, metres, **JP2)
        else:
            write(raw / f"{channel}/a.tif", numbers, metres, nodata=1000, tiled=True, blockxsize=16, blockysize=16)
    write_mask(raw, "a")
    options: dict[str, Any] = {
        "image": "{channel}/{key}",
        "label": "masks/{key}.tif",
        "classes": "5",
        "labels": "index",
        "size": "native",
        "encode": ["image=tiles:32", "label=tiles:16"],
        **({"nodata_label": nodata_label} if suffix == "tif" else {}),
    }
    build_pack(raw, tmp_path / "whole", **options)
    monkeypatch.setattr(giant, "GIANT", 0)
    build_pack(raw, tmp_path / "strips", **options)
    assert stored(tmp_path / "strips") == stored(tmp_path / "whole")
    assert open_dataset(tmp_path / "strips").place(0) == open_dataset(tmp_path / "whole").place(0)


def test_damage_in_a_strip_is_named_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = tmp_path / "raw"
    for channel, metres in METRES.items():
        write(raw / f"{channel}/a.tif", noise("a", channel, metres=metres), metres, compress="deflate", blockysize=8)
    write_mask(raw, "a")
    path = raw / "B11/a.tif"
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 200] = bytes(200)
    path.write_bytes(content)
    monkeypatch.setattr(giant, "GIANT", 0)
    options: dict[str, Any] = {"size": "native", "encode": ["image=tiles:32", "label=tiles:16"]}
    reason = rejects(raw, tmp_path / "out", image="{channel}/{key}", label="masks/{key}.tif", classes="5", **options)
    assert "B11/a.tif: " in reason
    assert "B02/a.tif" not in reason


@pytest.mark.parametrize("step", [1, 7, 30, 1000])
def test_lines_of_a_coarse_file_are_repeated(step: int, tmp_path: Path) -> None:
    write(tmp_path / "a.tif", noise("a", "B11", metres=20), 20, tiled=True, blockxsize=16, blockysize=16)
    file = StripFile(tmp_path / "a.tif")
    lines = RepeatedLines(file, (HEIGHT, WIDTH))
    strips = [lines.lines(top, min(HEIGHT, top + step)) for top in range(0, HEIGHT, step)]
    file.close()
    found = np.concatenate([strip.stored.numbers for strip in strips])
    np.testing.assert_array_equal(found, truth(tmp_path / "a.tif"))
    assert {strip.header.size[1] for strip in strips} == {WIDTH}


# The command line, and other rooms


def test_the_command_and_what_others_say_of_the_row(scenes: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = [part for name, value in S2.items() for part in (f"--{name}", value)]
    good("build", "--quiet", *options, "--bands", "B02,B11", scenes, out)
    assert "S2/{key}/*_{channel}.jp2" in run("info", out).output
    shown = run("inspect", out, "rome").output
    assert "S2/rome/T32_B02.jp2" in shown
    assert "S2/rome/T32_B11.jp2" in shown
    good("verify", "--deep", out)
    assert "expected all, gray, rgb, or numbers" in errors_of(2, "build", *options, "--bands", "1;2", scenes, out)


def test_a_row_is_read_again_and_parts_are_built_elsewhere(scenes: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build_pack(scenes, out, **S2)
    raw_row = RawRows(Pack.open(out)).row(1)
    assert (raw_row.problem, raw_row.differences["image"].pixels) == ("", 0)
    options = [part for name, value in S2.items() for part in (f"--{name}", value)]
    good("plan", "--quiet", *options, "--shard-size", "1KB", scenes, tmp_path / "plan")
    for part in ("1/2", "2/2"):
        good("build-part", "--plan", tmp_path / "plan", "--part", part, tmp_path / "parts")
    good("commit", "--plan", tmp_path / "plan", tmp_path / "parts")
    build_pack(scenes, tmp_path / "whole", **S2, shard_size="1KB")
    assert stored(tmp_path / "parts") == stored(tmp_path / "whole")
    build_pack(f"file://{scenes}", tmp_path / "store", **S2, shard_size="1KB")
    assert stored(tmp_path / "store") == stored(tmp_path / "whole")


def test_splits_and_lists_know_such_pictures(scenes: Path, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    shutil.copytree(scenes, raw)
    (raw / "train.txt").write_text("rome\noslo\n")
    (raw / "val.txt").write_text("bern\n")
    build_pack(raw, tmp_path / "lists", **S2, lists="{split:train|val}.txt")
    assert [len(open_dataset(tmp_path / "lists", split)) for split in ("train", "val")] == [2, 1]
    build_pack(raw, tmp_path / "drawn", **S2, split="train=60,val=40", split_by="key")
    assert sum(len(open_dataset(tmp_path / "drawn", split)) for split in ("train", "val")) == 3


def test_probe_proposes_all_bands_for_templates_with_a_channel(scenes: Path) -> None:
    result = probe_folder(scenes, image=S2["image"], label=S2["label"])
    assert result.settings["bands"] == "all"
    assert not result.survey or not result.survey.bad


SHIPPED = {
    "38-Cloud": ("train_{}/{}_patch_{key}.TIF", "train_gt/gt_patch_{key}.TIF", ("blue", "green", "nir", "red")),
    "Landsat": ("scenes/LC08_{key}_SR_{}.TIF", "masks/LC08_{key}.tif", ("B2", "B3", "B4", "B5")),
    "folders": ("bands/{}/{key}.tif", "labels/{key}.tif", ("B02", "B03", "B8A")),
    "images": ("images/{key}_{}.tif", "labels/{key}.tif", ("B02", "B03", "B8A")),
}


@pytest.mark.parametrize("name", SHIPPED)
def test_probe_finds_the_bands_of_known_sensors(name: str, tmp_path: Path) -> None:
    image, label, bands = SHIPPED[name]
    raw = tmp_path / "raw"
    for key in KEYS:
        for band in bands:
            write(raw / image.replace("{}", band).format(key=key), noise(key, band))
        write(raw / label.format(key=key), noise(key, "mask").astype(np.uint8) % 5)
    result = probe_folder(raw)
    assert result.settings["bands"] == "all"
    assert "{channel}" in str(result.settings["image"])
    assert not result.further
    assert not [doubt for doubt in result.doubts if "other pictures" in doubt or "which files" in doubt]
    templates = {side: str(result.settings[side]) for side in ("image", "label")}
    build_pack(raw, tmp_path / "out", image=templates["image"], label=templates["label"], classes="5")
    rows = open_dataset(tmp_path / "out")
    assert (len(rows), rows.fields[0].bands) == (3, bands)


def test_a_copy_of_the_raw_folder_gives_the_same_pack(scenes: Path, tmp_path: Path) -> None:
    shutil.copytree(scenes, tmp_path / "raw")
    build_pack(tmp_path / "raw", tmp_path / "a", **S2)
    build_pack(scenes, tmp_path / "b", **S2)
    assert stored(tmp_path / "a") == stored(tmp_path / "b")


def test_the_header_of_a_picture_names_the_file_to_blame() -> None:
    files = BandFiles(("a", "b"), (b"P5 nothing", b""))
    with pytest.raises(BadFile) as caught:
        header_of(files)
    assert caught.value.number == 0


def test_bands_of_other_pictures_are_chosen_by_name_too() -> None:
    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    for chosen, positions in ((("blue", "red"), [2, 0]), ((3, 1), [2, 0])):
        found = read_bands(image, Bands(chosen), ImageRules(bands=chosen))
        np.testing.assert_array_equal(found, image[..., positions])
    with pytest.raises(Exception, match="has the bands red, green, blue, and no band nir"):
        read_bands(image, Bands(("nir",)), ImageRules())
