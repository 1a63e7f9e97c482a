"""Shapefiles and GeoPackages as annotations: every pixel as rasterio paints it; other systems are refused by name."""

from __future__ import annotations

import json
import random
import sqlite3
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import errors_of, good
from drills.published import same
from numpy.typing import NDArray

from packer.annotations.well_known_binary import geometry_of
from packer.errors import BadPair
from packer.sources.annotated import vector_files
from packer.sources.annotated.vector_files import as_geojson
from readers import open_dataset

pytestmark = pytest.mark.usefixtures("in_process")

pyogrio: Any = pytest.importorskip("pyogrio")
rasterio: Any = pytest.importorskip("rasterio")
features: Any = pytest.importorskip("rasterio.features")

SIZE = (40, 50)
TRANSFORM = rasterio.Affine(2, 0, 500_000, 0, -2, 5_800_000)
DRIVERS = {".shp": "ESRI Shapefile", ".gpkg": "GPKG"}
Rings = list[list[tuple[float, float]]]


def ring(x: float, y: float, width: float, height: float) -> list[tuple[float, float]]:
    """Return a crooked ring in metres, from the upper left corner of the scene on. No pixel's centre is on a line."""
    points = [(x, y), (x + width, y + height / 5), (x + 0.9 * width, y + height), (x + width / 7, y + 0.8 * height)]
    return [(500_000.37 + right, 5_799_999.59 - down) for right, down in (*points, points[0])]


SHAPES: list[list[Rings]] = [
    [[ring(5, 5, 50, 40), ring(15, 15, 15, 12)]],
    [[ring(60, 10, 30, 25)], [ring(70, 50, 21, 20), ring(76, 56, 8, 7)]],
    [[ring(10, 50, 33, 25)]],
]
NAMES = ["roof", "tree", "roof"]


def polygon(rings: Rings, code: int = 3) -> bytes:
    """Return a polygon as well-known binary. One with the code 1003 has a height."""
    data = struct.pack("<BII", 1, code, len(rings))
    for points in rings:
        heights = [(*point, 7.0) if code > 1000 else point for point in points]
        data += struct.pack("<I", len(points)) + np.array(heights, "<f8").tobytes()
    return data


def wkb(polygons: list[Rings], code: int = 3) -> bytes:
    """Return several polygons as well-known binary."""
    return struct.pack("<BII", 1, code + 3, len(polygons)) + b"".join(polygon(rings, code) for rings in polygons)


def write(path: Path, crs: str | None = "EPSG:32633", **options: Any) -> Path:
    """Write the shapes to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    settings = {"geometry_type": "MultiPolygon", **options}
    shapes = settings.pop("shapes", None) or [wkb(polygons) for polygons in SHAPES]
    columns = settings.pop("columns", {"Class": NAMES[: len(shapes)], "height": [1.5] * len(shapes)})
    values = [np.array(column, object if isinstance(column[0], str) else None) for column in columns.values()]
    pyogrio.raw.write(
        path, np.array(shapes, object), values, list(columns), driver=DRIVERS[path.suffix], crs=crs, **settings
    )
    return path


def scene(path: Path, epsg: int = 32633) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(0).integers(0, 255, (3, *SIZE), np.uint8)
    profile = {"driver": "GTiff", "height": SIZE[0], "width": SIZE[1], "count": 3, "dtype": "uint8"}
    with rasterio.open(path, "w", **profile, crs=f"EPSG:{epsg}", transform=TRANSFORM) as file:
        file.write(pixels)
    return path


def painted() -> NDArray[Any]:
    """Return the label as rasterio paints it: 1 is a roof, 2 a tree."""
    values = {"roof": 1, "tree": 2}
    shapes = [
        ({"type": "MultiPolygon", "coordinates": polygons}, values[name])
        for polygons, name in zip(SHAPES, NAMES, strict=True)
    ]
    label: NDArray[Any] = features.rasterize(shapes, SIZE, transform=TRANSFORM, dtype=np.uint8)
    return label


@pytest.fixture(params=DRIVERS)
def suffix(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_pixel_is_that_of_rasterio(suffix: str, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    scene(raw / "scenes/a.tif")
    write(raw / f"labels/a{suffix}")
    templates = ("--image", "scenes/{key}.tif", "--annotations", f"labels/{{key}}{suffix}")
    good("build", "--size", "native", "--labels", "index", *templates, raw, tmp_path / "out")
    rows = open_dataset(tmp_path / "out")
    assert rows.classes.names == ("background", "roof", "tree")
    assert np.array_equal(rows[0].label, painted())
    assert len(np.unique(painted())) == 3
    recipe = (tmp_path / "out/manifest.json").read_text()
    assert f"pyogrio {pyogrio.__version__} with GDAL {'.'.join(map(str, pyogrio.__gdal_version__))}" in recipe


def test_they_are_found_next_to_their_scenes(suffix: str, tmp_path: Path) -> None:
    """A file of heights, of two kinds of classes; and no option says where labels are."""
    raw = tmp_path / "raw"
    scene(raw / "a.tif")
    shapes = [wkb(polygons, 1003) for polygons in SHAPES]
    write(raw / f"a{suffix}", shapes=shapes, geometry_type="MultiPolygon Z", columns={"label": [7, 8, 7]})
    assert f"geojson {{key}}{suffix}" in good("probe", raw).stdout
    good("build", "--size", "native", "--labels", "index", raw, tmp_path / "out")
    rows = open_dataset(tmp_path / "out")
    assert rows.classes.names == ("background", "7", "8")
    assert np.array_equal(rows[0].label, painted())


def test_another_system_is_refused_by_name(suffix: str, tmp_path: Path) -> None:
    scene(tmp_path / "raw/a.tif", 32632)
    write(tmp_path / f"raw/a{suffix}")
    errors = errors_of(1, "build", "--size", "native", tmp_path / "raw", tmp_path / "out")
    assert f"a{suffix}: has coordinates of EPSG:32633, and the GeoTIFF has EPSG:32632" in errors
    assert "--reproject brings them there, or: ogr2ogr -t_srs EPSG:32632" in errors
    write(tmp_path / f"raw/a{suffix}", "+proj=utm +zone=33 +ellps=bessel")
    errors = errors_of(1, "build", "--size", "native", tmp_path / "raw", tmp_path / "out")
    assert f"a{suffix}: has a coordinate system without an EPSG code, PROJCS" in errors


@pytest.mark.long(every=4)
@pytest.mark.parametrize("epsg", [4326, 32632, 3035])
def test_polygons_are_brought_to_the_system_of_their_scene(epsg: int, suffix: str, tmp_path: Path) -> None:
    pyproj: Any = pytest.importorskip("pyproj")
    warp: Any = pytest.importorskip("rasterio.warp")
    scene(tmp_path / "raw/a.tif")
    there = pyproj.Transformer.from_crs(32633, epsg, always_xy=True)
    moved = [
        [[[there.transform(*point) for point in points] for points in rings] for rings in polygons]
        for polygons in SHAPES
    ]
    write(tmp_path / f"raw/a{suffix}", f"EPSG:{epsg}", shapes=[wkb(polygons) for polygons in moved])
    options = ("--size", "native", "--labels", "index", "--reproject")
    good("build", *options, tmp_path / "raw", tmp_path / "out")
    back = [warp.transform_geom(f"EPSG:{epsg}", "EPSG:32633", {"type": "MultiPolygon", "coordinates": polygons})
            for polygons in moved]  # fmt: skip
    values = [(shape, {"roof": 1, "tree": 2}[name]) for shape, name in zip(back, NAMES, strict=True)]
    label = open_dataset(tmp_path / "out")[0].label.numpy()
    assert np.array_equal(label, features.rasterize(values, SIZE, transform=TRANSFORM, dtype=np.uint8))
    assert np.count_nonzero(label != painted()) <= 4  # on the edges
    assert f"reprojected by pyproj {pyproj.__version__} with PROJ" in (tmp_path / "out/manifest.json").read_text()


def test_geojson_of_degrees_is_brought_to_its_scene(tmp_path: Path) -> None:
    pyproj: Any = pytest.importorskip("pyproj")
    scene(tmp_path / "raw/a.tif")
    there = pyproj.Transformer.from_crs(32633, 4326, always_xy=True)
    shapes = [
        {"type": "Polygon", "coordinates": [[there.transform(*point) for point in points] for points in rings]}
        for polygons in SHAPES
        for rings in polygons
    ]
    collection = [{"type": "Feature", "properties": {}, "geometry": shape} for shape in shapes]
    (tmp_path / "raw/a.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": collection}))
    errors_of(1, "build", "--size", "native", tmp_path / "raw", tmp_path / "out")
    good("build", "--size", "native", "--labels", "index", "--reproject", tmp_path / "raw", tmp_path / "out")
    label = open_dataset(tmp_path / "out")[0].label.numpy()
    assert np.count_nonzero(label != (painted() > 0)) <= 4
    (tmp_path / "raw/a.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": collection, "crs": {
        "type": "name", "properties": {"name": "EPSG:99"}}}))  # fmt: skip
    errors = errors_of(1, "build", "--size", "native", "--reproject", tmp_path / "raw", tmp_path / "other")
    assert "a.geojson: has coordinates of EPSG:99, or the GeoTIFF of EPSG:32633, which PROJ lacks" in errors


def test_annotations_in_pixels_are_not_reprojected(tmp_path: Path) -> None:
    scene(tmp_path / "raw/a.tif")
    shape = {"label": "roof", "points": [[1, 1], [9, 1], [9, 9]], "shape_type": "polygon"}
    facts = {"version": "5.0", "shapes": [shape], "imagePath": "a.tif", "imageHeight": SIZE[0], "imageWidth": SIZE[1]}
    (tmp_path / "raw/a.json").write_text(json.dumps(facts))
    errors = errors_of(2, "build", "--size", "native", "--reproject", tmp_path / "raw", tmp_path / "out")
    assert "--reproject: labelme has no coordinates on the ground" in errors


@pytest.mark.filterwarnings("ignore:'crs' was not provided")
def test_a_file_without_a_system_is_in_the_system_of_its_scene(suffix: str, tmp_path: Path) -> None:
    scene(tmp_path / "raw/a.tif")
    write(tmp_path / f"raw/a{suffix}", None)
    good("build", "--size", "native", "--labels", "index", tmp_path / "raw", tmp_path / "out")
    assert np.array_equal(open_dataset(tmp_path / "out")[0].label, painted())


def test_a_pack_follows_all_files_of_a_shapefile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("packer.sources.file_states.MIN_FILE_AGE", 0)
    raw, out = tmp_path / "raw", tmp_path / "out"
    scene(raw / "a.tif")
    write(raw / "a.shp")
    options = ("--size", "native", "--labels", "index", raw)
    good("build", *options, out)
    assert json.loads(good("build", "--json", *options, out).stdout)["reused_rows"] == 1
    write(tmp_path / "other/a.shp", columns={"Class": ["tree", "roof", "tree"]})
    (raw / "a.dbf").write_bytes((tmp_path / "other/a.dbf").read_bytes())
    good("build", *options, out)
    label = open_dataset(out)[0].label.numpy()
    assert np.array_equal(label, np.array([0, 2, 1])[painted()])
    good("build", *options, tmp_path / "fresh")
    assert same(out, tmp_path / "fresh")


def test_lines_are_counted_as_lost_and_curves_are_painted(tmp_path: Path) -> None:
    """GDAL makes short lines of a curve."""
    scene(tmp_path / "raw/a.tif")
    point = struct.pack("<BIdd", 1, 1, 500_010, 5_799_990)
    line = struct.pack("<BII4d", 1, 2, 2, 500_000, 5_799_990, 500_010, 5_799_980)
    both = struct.pack("<BII", 1, 7, 3) + point + line + polygon(SHAPES[2][0])
    curve = struct.pack("<BII", 1, 10, 1) + struct.pack("<BII", 1, 8, 5) + np.array(ring(5, 5, 9, 9), "<f8").tobytes()
    shapes = [polygon(SHAPES[0][0]), both, line, curve]
    options: dict[str, Any] = {"geometry_type": "Unknown", "columns": {"Class": ["roof", "tree", "x", "y"]}}
    write(tmp_path / "raw/a.gpkg", shapes=shapes, **options)
    built = json.loads(
        good("build", "--json", "--size", "native", "--labels", "index", tmp_path / "raw", tmp_path / "out").stdout
    )
    assert "LineString" in str(built["note_totals"])
    label = open_dataset(tmp_path / "out")[0].label.numpy()
    assert set(np.unique(label)) == {0, 1, 2, 3}
    kinds = [geometry_of(shape)["type"] for shape in shapes]
    assert kinds == ["Polygon", "GeometryCollection", "LineString", "CurvePolygon"]


def contents(path: Path) -> dict[str, bytes]:
    """Return a file and the files of the same stem."""
    paths = [path, *(other for other in sorted(path.parent.glob(f"{path.stem}.*")) if other != path)]
    return {each.name: each.read_bytes() for each in paths}


def test_files_that_are_not_whole_are_named(tmp_path: Path) -> None:
    shapefile = contents(write(tmp_path / "a.shp"))
    package = contents(write(tmp_path / "b.gpkg"))
    xml = b"<OGRVRTDataSource><OGRVRTLayer name='x'><SrcDataSource>/etc/passwd</SrcDataSource></OGRVRTLayer>"
    cases: dict[str, dict[str, bytes]] = {
        r"is not a GeoPackage": {"b.gpkg": xml},
        r"is not a shapefile": {"a.shp": xml},
        r"lacks the file next to it that ends with \.shx": {n: d for n, d in shapefile.items() if n != "a.shx"},
        r"lacks the file next to it that ends with \.dbf": {n: d for n, d in shapefile.items() if n != "a.dbf"},
        r"cannot be read": {"b.gpkg": package["b.gpkg"][:5000]},
    }
    for reason, files in cases.items():
        with pytest.raises(BadPair, match=reason):
            as_geojson(files)
    assert len(json.loads(as_geojson(package))["features"]) == len(SHAPES)


def test_one_layer_is_read_and_others_are_named(tmp_path: Path) -> None:
    scene(tmp_path / "raw/a.tif")
    path = write(tmp_path / "raw/a.gpkg", layer="roofs")
    with sqlite3.connect(path) as base:  # as QGIS keeps styles
        base.execute("create table layer_styles (id integer primary key, style text)")
        base.execute("insert into gpkg_contents (table_name, data_type) values ('layer_styles', 'attributes')")
    base.close()
    good("build", "--size", "native", tmp_path / "raw", tmp_path / "out")
    write(path, layer="roads", append=True)
    errors = errors_of(1, "build", "--size", "native", tmp_path / "raw", tmp_path / "out")
    assert "a.gpkg: has 2 layers of shapes: roofs, roads; write one of them to a file" in errors


def test_changes_that_are_not_in_the_package_yet_are_refused(tmp_path: Path) -> None:
    scene(tmp_path / "raw/a.tif")
    write(tmp_path / "raw/a.gpkg")
    (tmp_path / "raw/a.gpkg-wal").write_bytes(b"rows that SQLite has not moved")
    errors = errors_of(1, "build", "--size", "native", tmp_path / "raw", tmp_path / "out")
    assert "a.gpkg: has changes in a.gpkg-wal that are not in it yet" in errors


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", ["a.shp", "a.dbf", "a.prj", "a.gpkg"])
def test_no_byte_of_a_file_is_trusted(name: str, tmp_path: Path) -> None:
    """The process that reads changed files ends, or gives features, or a reason."""
    files, dice = contents(write(tmp_path / ("a.gpkg" if name == "a.gpkg" else "a.shp"))), random.Random(0)
    refused = 0
    for _ in range(6):
        data = bytearray(files[name])
        for _ in range(8):
            data[dice.randrange(len(data))] = dice.choice([0, 1, 127, 128, 255])
        try:
            assert "features" in json.loads(as_geojson({**files, name: bytes(data)}))
        except BadPair:
            refused += 1
    assert 0 <= refused <= 6


def test_hostile_shapes_are_refused() -> None:
    honest, dice = wkb(SHAPES[1]), random.Random(0)
    deep = struct.pack("<BII", 1, 7, 1) * 30 + polygon(SHAPES[0][0])
    with pytest.raises(BadPair, match="of shapes in too many others"):
        geometry_of(deep)
    for length in range(len(honest)):
        with pytest.raises(BadPair, match="cut short"):
            geometry_of(honest[:length])
    for _ in range(500):
        data = bytearray(honest)
        data[dice.randrange(60)] = dice.randrange(256)
        try:
            assert geometry_of(bytes(data))["type"]
        except BadPair:
            continue


def test_without_pyogrio_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene(tmp_path / "raw/a.tif")
    write(tmp_path / "raw/a.shp")
    vector_files.library.cache_clear()
    monkeypatch.setitem(sys.modules, "pyogrio", None)
    errors = errors_of(2, "build", "--size", "native", tmp_path / "raw", tmp_path / "out")
    assert "pip install 'segpack[vectors]'" in errors
