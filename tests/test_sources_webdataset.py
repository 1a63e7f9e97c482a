"""WebDataset as a source: samples are grouped as WebDataset does it, and nothing in a tar is believed."""

from __future__ import annotations

import tarfile
from io import BytesIO
from pathlib import Path

import pytest
from conftest import errors_of, good, run
from stored_scenes import png, scenes_of, tar_of, write_folder, write_lmdb

from packer import build_pack, diff_pack, repair_pack
from packer.errors import BadPair, InputError, UsageError
from packer.sources.archives.named_files import named_files
from packer.sources.archives.tar import members
from packer.sources.archives.webdataset import WebDatasetSource
from packer.sources.container import Names
from readers import open_dataset
from readers.contract.manifest import Manifest

pytestmark = pytest.mark.usefixtures("in_process")

SCENES = scenes_of({"a": 1, "b": 2, "c": 3})
IMAGE, LABEL = (png(pixels) for pixels in SCENES["a"])


def opened(path: Path, *names: str | None) -> WebDatasetSource:
    return WebDatasetSource.at(path, Names(*names))


def written(path: Path, *names: str, data: bytes = IMAGE, form: int = tarfile.PAX_FORMAT) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(tar_of(dict.fromkeys(names, data), form))
    return path


def fields_of(source: WebDatasetSource) -> dict[str, tuple[str, ...]]:
    """Return the names of the members of each row."""
    return {ref.key: tuple(source.position(part).name for part in ref.parts) for ref in source.rows()}


@pytest.mark.parametrize(
    ("names", "key", "image", "label"),
    [
        (("a.png", "a.seg.png"), "a", "a.png", "a.seg.png"),
        (("a.seg.png", "a.png", "a.json"), "a", "a.png", "a.seg.png"),
        (("x.y/a.jpg", "x.y/a.mask.png"), "x.y/a", "x.y/a.jpg", "x.y/a.mask.png"),
        (("./a.jpg", "./a.png"), "a", "./a.jpg", "./a.png"),
        (("a.jpeg", "a.cls.png", "a.cls"), "a", "a.jpeg", "a.cls.png"),
        (("a.image.JPG", "a.label.PNG"), "a", "a.image.JPG", "a.label.PNG"),
        (("a.webp", "a.gt_mask.png"), "a", "a.webp", "a.gt_mask.png"),
    ],
)
def test_image_and_label_are_known_by_their_suffixes(
    tmp_path: Path, names: tuple[str, ...], key: str, image: str, label: str
) -> None:
    source = opened(written(tmp_path / "a.tar", *names))
    assert fields_of(source) == {key: (image, label)}
    assert not source.problems
    assert not source.missing


def test_suffixes_can_be_named(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tar", "a.left.png", "a.right.png", "a.fine.png", "a.coarse.png")
    assert fields_of(opened(path, "left.png", ".Fine.png")) == {"a": ("a.left.png", "a.fine.png")}
    source = opened(path)
    assert not fields_of(source)
    assert [(problem.files, problem.cause) for problem in source.problems] == [
        (("a.tar/a",), "may have several images, left.png, right.png, fine.png, coarse.png; name one: --image left.png")
    ]


def test_samples_have_keys_of_their_own(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--key id: the samples of .* have keys of their own; leave it out"):
        opened(written(tmp_path / "a.tar", "a.png"), None, None, "id")


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_are_read_in_every_form(tmp_path: Path, form: int) -> None:
    folder = "straße" * 9 + "/" + "y" * (90 if form == tarfile.USTAR_FORMAT else 200)
    source = opened(written(tmp_path / "a.tar", f"{folder}.png", f"{folder}.seg.png", form=form))
    (ref,) = source.rows()
    assert ref.key == folder
    assert source.load(ref).data == (IMAGE, IMAGE)


def test_other_members_are_passed_over(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name in ("folder/", "folder/.DS_Store", "._a.png", "README", "__index__", "a.png", "a.seg.png"):
            member = tarfile.TarInfo(name.rstrip("/"))
            member.type = tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
            member.size = 0 if name.endswith("/") else len(IMAGE)
            tar.addfile(member, BytesIO(IMAGE))
    source = opened(tmp_path / "a.tar")
    assert list(fields_of(source)) == ["a"]
    assert not source.problems
    assert not source.missing


def test_a_tar_that_was_cut_anywhere_is_named(tmp_path: Path) -> None:
    """Never are there fewer rows without a word: only zeros after the end may be missing."""
    path = written(tmp_path / "a.tar", *(f"{key}.{suffix}" for key in "abc" for suffix in ("png", "seg.png")))
    whole = path.read_bytes()
    end = len(whole.rstrip(b"\0")) // 512 * 512 + 512
    for size in [*range(0, end + 512, 128), end - 1, end + 511]:
        path.write_bytes(whole[:size])
        source = opened(path)
        rows = list(source.rows())
        assert len(rows) <= 3
        assert [problem.files for problem in source.problems] == [("a.tar",)], size
        assert "cut off" in source.problems[0].cause
    for size in range(end + 512, len(whole), 512):
        path.write_bytes(whole[:size])
        assert len(list(opened(path).rows())) == 3


def changed(data: bytes, at: int, by: bytes) -> bytes:
    """Return a tar with other bytes in a header, whose checksum fits."""
    start = at // 512 * 512
    header = bytearray(data[start : start + 512])
    header[at - start : at - start + len(by)] = by
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return data[:start] + bytes(header) + data[start + 512 :]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: changed(data, 124, b"77777777777\0"), "within a member of 8589934591 bytes at byte 0"),
        (lambda data: changed(data, 124, b"\x80" + b"\xff" * 11), "within a member of 309485009821345068724781055"),
        (lambda data: changed(data, 124, b"-0000000001\0"), "the header at byte 0 has a number b'-0000000001'"),
        (lambda data: changed(data, 124, b"\xff" * 12), "the header at byte 0 has a number"),
        (lambda data: changed(data, 156, b"S"), "has a member of the type 'S': a.png"),
        (lambda data: data[:9] + b"!" + data[10:], "the header at byte 0 does not have its checksum"),
        (lambda data: data + data, "has more after the mark of its end; tars that were joined"),
        (lambda data: b"\x1f\x8b" + data, "is compressed, so that no row can be read in place; unpack it: gunzip"),
        (lambda data: b"", "ends at byte 0 without the mark of its end"),
    ],
)  # fmt: skip
def test_a_damaged_tar_is_refused_with_its_reason(change: object, message: str) -> None:
    assert callable(change)
    data = change(tar_of({"a.png": b"image", "a.seg.png": b"label"}))
    with pytest.raises(BadPair, match=r"cut off|damaged|type|joined|compressed") as bad:
        list(members(BytesIO(data), len(data)))
    assert message in str(bad.value)


def header(kind: bytes, content: bytes, name: bytes = b"x", size: int | None = None) -> bytes:
    """Return a header of a tar with its content."""
    block = bytearray(512)
    block[124:136] = b"%011o\0" % (len(content) if size is None else size)
    block[156:157], block[257:263] = kind, b"ustar\0"
    return changed(bytes(block), 0, name) + content.ljust(-(-len(content) // 512) * 512, b"\0")


def pax(name: str, value: str) -> bytes:
    record = f" {name}={value}\n"
    length = next(size for size in range(len(record), len(record) + 9) if len(f"{size}{record}") == size)
    return f"{length}{record}".encode()


END, MEMBER = bytes(1024), header(b"0", b"image", b"a.png")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            header(b"1", b"", b"a.png", 512) + MEMBER,
            "has a link or folder of 512 bytes, which programs read differently",
        ),
        (header(b"2", b"", b"a.png", 512) + MEMBER, "has a link or folder of 512 bytes"),
        (header(b"5", b"", b"a", 512) + MEMBER, "has a link or folder of 512 bytes"),
        (header(b"0", b"image", b"a/"), "has a link or folder of 5 bytes"),
        (header(b"g", pax("path", "b.png")) + MEMBER, "has one path for all members"),
        (header(b"g", pax("size", "5")) + MEMBER, "has one size for all members"),
        (header(b"x", pax("size", "-5")) + MEMBER, "has the size b'-5'"),
        (header(b"x", pax("size", "0x5")) + MEMBER, "has the size b'0x5'"),
        (header(b"x", pax("size", "9" * 19)) + MEMBER, "has the size"),
        (MEMBER + header(b"L", b"b.png\0"), "ends after the header of a member, without the member; it was cut off"),
        (MEMBER + header(b"x", pax("path", "b.png")), "ends after the header of a member, without the member"),
    ],
)
def test_tars_that_programs_read_differently_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(BadPair) as bad:
        list(members(BytesIO(data + END), len(data + END)))
    assert message in str(bad.value)


def test_an_extended_size_is_that_of_the_next_file() -> None:
    """Not that of a long name between them."""
    data = header(b"x", pax("size", "5")) + header(b"L", b"long.png\0") + header(b"0", b"image", size=0) + END
    found = list(members(BytesIO(data), len(data)))
    assert [(member.name, member.size, data[member.start :][:5]) for member in found] == [("long.png", 5, b"image")]
    ordinary = header(b"g", pax("comment", "a commit")) + header(b"x", pax("path", "")) + MEMBER + END
    assert [member.name for member in members(BytesIO(ordinary), len(ordinary))] == ["a.png"]


def test_many_suffixes_of_a_sample_are_not_all_listed(tmp_path: Path) -> None:
    source = opened(written(tmp_path / "a.tar", *(f"a.{number}.png" for number in range(100))))
    assert not list(source.rows())
    assert "… and 88 more; name one: --image 0.png" in str(source.problems[0])


def test_a_member_of_gigabytes_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = opened(written(tmp_path / "a.tar", "a.png", "a.seg.png"))
    monkeypatch.setattr("packer.sources.archives.byte_ranges.MOST_BYTES", len(IMAGE) - 1)
    ref = next(iter(source.rows()))
    assert f"has {len(IMAGE)} bytes; 0 GiB are read at most" in str(source.load(ref).bad)


def test_an_extended_header_is_read_strictly() -> None:
    whole = tar_of({"ü.png": b"image"})
    record = b"15 path=\xc3\xbc.png\n"
    assert record in whole
    for wrong in (b"16", b"14", b"99", b"05", b"-5", b"x5", b"  "):
        data = whole.replace(record, wrong + record[2:])
        with pytest.raises(BadPair, match="before byte 1024 has a wrong length"):
            list(members(BytesIO(data), len(data)))
    sparse = whole.replace(record, b"15 GNU.sparse=\n")
    with pytest.raises(BadPair, match="sparse"):
        list(members(BytesIO(sparse), len(sparse)))


def test_all_problems_of_all_tars_are_one_error(tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    written(folder / "train-0.tar", "a.png", "a.seg.png", "a.seg.png", "b.png", "c.png", "c.seg.png")
    written(folder / "train-1.tar", "c.png", "c.seg.png", "d.seg.png")
    written(folder / "train-2.tar", "e.png", "e.seg.png")
    (folder / "train-2.tar").write_bytes((folder / "train-2.tar").read_bytes()[:700])
    with tarfile.open(folder / "train-3.tar", "w") as tar:
        link = tarfile.TarInfo("f.png")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    with pytest.raises(InputError) as error:
        build_pack(folder, tmp_path / "out", classes=4)
    text = str(error.value)
    for words in (
        "train-2.tar: ends at byte 700, within a member",
        "train/c: has more than one row",
        "train-3.tar/f: has a link f.png; store the file itself",
    ):
        assert words in text
    assert not (tmp_path / "out").exists()


def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name in ("a.png", "a.png", "a.seg.png"):
            member = tarfile.TarInfo(name)
            member.size = len(IMAGE)
            tar.addfile(member, BytesIO(IMAGE))
    source = opened(tmp_path / "a.tar")
    assert not list(source.rows())
    assert [problem.cause for problem in source.problems] == ["has two members a.png"]


def test_samples_without_a_field_are_an_error_or_are_skipped(tmp_path: Path) -> None:
    scenes = {f"{key}.png": png(image) for key, (image, _) in SCENES.items()}
    scenes = dict(sorted((scenes | {f"{key}.seg.png": png(label) for key, (_, label) in SCENES.items()}).items()))
    del scenes["b.seg.png"], scenes["c.png"]
    (tmp_path / "a.tar").write_bytes(tar_of(scenes))
    with pytest.raises(InputError, match=r"2 samples lack a field; --missing skip skips them\n.*a.tar/b: has no label"):
        build_pack(tmp_path / "a.tar", tmp_path / "out", classes=4)
    summary = build_pack(tmp_path / "a.tar", tmp_path / "out", classes=4, missing="skip")
    assert summary.rows == 1
    assert summary.missing == ("a.tar/b: has no label", "a.tar/c: has no image")
    kept = build_pack(tmp_path / "a.tar", tmp_path / "out", classes=4, missing="keep")
    assert (kept.rows, kept.missing) == (2, ("a.tar/c: has no image",))


@pytest.mark.parametrize("kind", ["webdataset", "lmdb"])
def test_images_without_labels_are_rows_if_they_are_kept(tmp_path: Path, kind: str) -> None:
    path, out = tmp_path / kind, tmp_path / "out"
    images, label = {key: png(image) for key, (image, _) in SCENES.items()}, png(SCENES["a"][1])
    if kind == "lmdb":
        write_lmdb(path, {**{f"image-{key}": image for key, image in images.items()}, "label-a": label})
    else:
        path.write_bytes(tar_of({"a.seg.png": label, **{f"{key}.png": image for key, image in images.items()}}))
    assert build_pack(path, out, classes=4, missing="keep").rows == 3
    assert (len(open_dataset(out, labelled=True)), len(open_dataset(out, labelled=False))) == (1, 2)
    assert diff_pack(out, path).is_empty


def test_the_command_takes_a_file_a_folder_or_a_pattern(tmp_path: Path) -> None:
    for split, keys in (("train", "ab"), ("val", "c")):
        for number, key in enumerate(keys):
            files = {f"{key}.png": png(SCENES[key][0]), f"{key}.seg.png": png(SCENES[key][1])}
            (tmp_path / "shards").mkdir(exist_ok=True)
            (tmp_path / f"shards/{split}-{number:03}.tar").write_bytes(tar_of(files))
    write_folder(tmp_path / "raw", SCENES)
    build_pack(tmp_path / "raw", tmp_path / "expected", classes=4)
    expected = open_dataset(tmp_path / "expected")
    for number, name in enumerate(("shards", "shards/{train-000,train-001,val-000}.tar", "shards/*.tar")):
        out = tmp_path / f"out{number}"
        good("build", "--quiet", "--classes", "4", "--from", tmp_path / name, out)
        assert [(split.name, split.rows) for split in Manifest.load(out).splits] == [("train", 2), ("val", 1)]
        rows = open_dataset(out, "train")
        assert all((rows[row].image == expected[row].image).all() for row in range(2))
        assert (open_dataset(out, "val")[0].label == expected[2].label).all()
        assert run("diff", tmp_path / name, out).exit_code == 0
        shard = min(out.glob("shards/*.npy"))
        shard.write_bytes(shard.read_bytes()[:-1] + b"!")
        assert run("repair", "--quiet", out).exit_code == 0
        assert diff_pack(out, tmp_path / name).is_empty
        assert repair_pack(out, tmp_path / name).damage == ()
    options = ("--quiet", "--classes", "4", "--from")
    good("build", *options, tmp_path / "shards/train-{000..001}.tar", tmp_path / "range")
    errors = errors_of(1, "build", *options, tmp_path / "shards/train-{000..003}.tar", tmp_path / "no")
    assert "2 of its files are missing" in errors
    assert "train-003.tar" in errors


def test_a_tar_that_changed_after_the_plan_gives_no_other_pictures(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tar", "a.png", "a.seg.png")
    source = opened(path)
    (ref,) = source.rows()
    written(path, "b.png", "b.seg.png", data=LABEL)
    assert source.load(ref).bad == f"{ref.parts[0]}: was changed after the build was planned; build again"
    assert opened(path).load(ref._replace(parts=("b.tar@512+3/a.png", ref.parts[1]))).bad == (
        "b.tar@512+3/a.png: is not a place in the files of this source"
    )


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("a-{08..11}.tar", ["a-08.tar", "a-09.tar", "a-10.tar", "a-11.tar"]),
        ("{x,y}-{0..1}.tar", ["x-0.tar", "x-1.tar", "y-0.tar", "y-1.tar"]),
        ("plain.tar", ["plain.tar"]),
    ],
)
def test_braces_stand_for_files(pattern: str, names: list[str]) -> None:
    assert named_files(Path(pattern)) == names


def test_too_many_files_are_refused() -> None:
    with pytest.raises(UsageError, match="stands for 1048577 files"):
        named_files(Path("{0..999999999}.tar"))
    with pytest.raises(UsageError, match="stands for 0 files"):
        named_files(Path("{9..1}.tar"))


def test_samples_whose_pictures_are_not_taken_are_named(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tar", "a.png", "a.seg.png", "b.gif", "b.seg.gif", "c.json", "d.jfif", "d.seg.png")
    source = opened(path)
    assert list(fields_of(source)) == ["a", "d"]
    assert [(problem.files, problem.cause) for problem in source.missing] == [
        (("a.tar/b",), "has no image and no label")
    ]
    named = opened(path, "png", "seg.png")
    assert list(fields_of(named)) == ["a"]
    assert [problem.files for problem in named.missing] == [("a.tar/b",), ("a.tar/c",), ("a.tar/d",)]


def test_a_label_without_its_image_is_not_taken_for_one(tmp_path: Path) -> None:
    """With --missing keep, a single picture may be an image or a label if suffixes do not tell."""
    source = opened(written(tmp_path / "a.tar", "a.jpg", "a.png", "b.png"))
    source.keeps_unlabelled = True
    list(source.rows())
    assert "name both: --image jpg --label png" in source.problems[0].cause
    source = opened(written(tmp_path / "a.tar", "a.jpg", "a.png", "b.png"), "jpg", "png")
    source.keeps_unlabelled = True
    assert list(fields_of(source)) == ["a"]
    assert [(problem.files, problem.cause) for problem in source.missing] == [(("a.tar/b",), "has no image")]


def test_a_tar_without_pictures_says_what_it_holds(tmp_path: Path) -> None:
    refused = run("build", "--from", written(tmp_path / "a.tar", "a.json", "a.txt", "b.txt"), tmp_path / "out")
    assert (
        "no rows: it holds members with the suffixes txt (2), json (1); needed are pictures, such as" in refused.stderr
    )
    empty = run("build", "--from", written(tmp_path / "b.tar"), tmp_path / "out")
    assert "no rows: it is empty; needed are pictures" in empty.stderr
    names = ("--image", "jpg", "--label", "png")
    named = run("build", "--from", written(tmp_path / "c.tar", ".DS_Store"), *names, tmp_path / "out")
    assert "needed are jpg and png" in named.stderr


def test_options_that_divide_a_folder_say_what_to_do(tmp_path: Path) -> None:
    tar = written(tmp_path / "a.tar", "a.jpg", "a.png")
    errors = errors_of(2, "build", "--from", tar, "--split", "80/20", "--split-by", "key", tmp_path / "out")
    assert "--split-by: is for the files of a folder; for rows of the kind webdataset, --split or --folds" in errors
