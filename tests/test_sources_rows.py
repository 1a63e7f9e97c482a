"""`Rows`: a Python function as a source. Its pack is that of the same pixels in files, and no row is lost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from conftest import HANG, REPO, write_png
from drills.published import same
from row_loaders import CLASSES, HEIGHT, WIDTH, Changed, Hostile, OneBuffer, Unlabelled, scene_of

import packer.workers.run
from packer import InputError, Rows, UsageError, build_pack, diff_pack, verify_pack
from packer.building import Summary
from packer.errors import EngineError
from packer.sources import portable_functions as functions
from packer.workers.in_process import InProcess
from readers import open_dataset

KEYS = [f"scan {number:02}" for number in range(30)]
NAMES = ["cell", "wall", "rest"]
assert len(NAMES) == CLASSES


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without worker processes functions need not be in a module."""
    kept: list[object] = []

    def keep(given: object) -> str:
        kept.append(given)
        return str(len(kept) - 1)

    monkeypatch.setattr(packer.workers.run, "POOL", InProcess)
    monkeypatch.setattr("packer.sources.row_functions.to_text", keep)
    monkeypatch.setattr("packer.sources.row_functions.from_text", lambda text: kept[int(text)])


def packed(out: Path, rows: Rows, **options: Any) -> Summary:
    return build_pack(rows, out, **{"classes": NAMES, "shard_size": "8KB", "labels": "index", "workers": 2, **options})


def deliver(value: object, at: str = KEYS[7]) -> Callable[[str], Any]:
    """Return a function that gives `value` for one key; its fields, if it is a mapping, replace those of the scene."""

    def load(key: str) -> Any:
        if key != at:
            return scene_of(key)
        return {**scene_of(key), **value} if isinstance(value, dict) else value

    return load


def test_the_pack_is_that_of_a_folder_with_the_same_pixels(tmp_path: Path, in_process: None) -> None:
    """Also scaled. Only the identities of the rows differ, and so the names of shards."""
    for key in KEYS:
        write_png(tmp_path / "raw" / "images" / f"{key}.png", scene_of(key)["image"])
        write_png(tmp_path / "raw" / "labels" / f"{key}.png", scene_of(key)["label"].astype(np.uint8))
    for options in ({}, {"size": (7, 9), "fit": "letterbox"}, {"labels": "onehot", "size": (32, 32)}):
        for name, source in (("folder", tmp_path / "raw"), ("rows", Rows(KEYS, scene_of))):
            build_pack(source, tmp_path / name, classes=NAMES, **options)
        folder, rows = open_dataset(tmp_path / "folder"), open_dataset(tmp_path / "rows")
        for one, other in zip(folder, rows, strict=True):
            assert (np.array_equal(one[0], other[0]), np.array_equal(one[1], other[1])) == (True, True)


def test_any_number_of_workers_and_threads_makes_the_same_bytes(tmp_path: Path) -> None:
    packed(tmp_path / "one", Rows(KEYS, scene_of), workers=1)
    packed(tmp_path / "two", Rows(KEYS[::-1], scene_of), workers=2)
    packed(tmp_path / "buffer", Rows(KEYS, OneBuffer().load), workers=2)
    packed(tmp_path / "threads", Rows(KEYS, OneBuffer().load), workers=4, shard_size="1MB")
    packed(tmp_path / "calm", Rows(KEYS, scene_of), workers=1, shard_size="1MB")
    assert same(tmp_path / "one", tmp_path / "two")
    assert same(tmp_path / "one", tmp_path / "buffer")
    assert same(tmp_path / "threads", tmp_path / "calm")


def test_a_night_loads_rows_of_another_version_alone(tmp_path: Path) -> None:
    before, calls = Changed(), tmp_path / "calls"
    calls.mkdir()
    packed(tmp_path / "out", Rows(KEYS, before.load, before.version, sizes=(HEIGHT, WIDTH)))
    now, keys = Changed({KEYS[3]: "another"}), [*KEYS[:20], *KEYS[21:], "new"]
    counting = Hostile({}, calls)
    same_rows = packed(tmp_path / "out", Rows(KEYS, counting.load, before.version, sizes=(HEIGHT, WIDTH)))
    assert (same_rows.reused, list(calls.iterdir())) == (len(KEYS), [])
    rows = Rows(keys, now.load, now.version, sizes=(HEIGHT, WIDTH))
    found = diff_pack(tmp_path / "out", rows)
    assert (found.added, found.changed, found.removed) == (("all/new",), (f"all/{KEYS[3]}",), (f"all/{KEYS[20]}",))
    assert found.fields == {}, "only loading a row shows what it is"
    assert 0 < packed(tmp_path / "out", rows).reused < len(keys)
    packed(tmp_path / "fresh", rows)
    assert same(tmp_path / "out", tmp_path / "fresh")


def test_without_versions_rows_are_loaded_each_time_and_unchanged_shards_stay(tmp_path: Path, in_process: None) -> None:
    packed(tmp_path / "out", Rows(KEYS, scene_of))
    written = {path: path.stat().st_mtime_ns for path in tmp_path.glob("out/shards/*")}
    assert packed(tmp_path / "out", Rows(KEYS, scene_of)).reused == 0
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("out/shards/*")} == written


def _raises(key: str) -> Any:
    if key == KEYS[7]:
        raise ValueError(f"no {object()!r} at 0x7f12 for you\nmore")
    return scene_of(key)


class _NoWordsError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def _raises_without_words(key: str) -> Any:
    if key == KEYS[7]:
        raise _NoWordsError
    return scene_of(key)


SCENE = scene_of(KEYS[7])
BAD: dict[str, tuple[Callable[[str], Any], str]] = {
    "raises": (_raises, ": load() raised ValueError: no <object object at 0x...> at 0x... for you"),
    "without words": (_raises_without_words, ": load() raised _NoWordsError"),
    "sys.exit": (Hostile({KEYS[7]: "sys.exit"}).load, ": load() raised SystemExit: 3"),
    "None": (deliver(None), ": load() returned None; expected a mapping with image and label"),
    "a pair": (deliver((1, 2)), ": load() returned a tuple; expected a mapping with image and label"),
    "no label": (
        lambda key: {"image": SCENE["image"]} if key == KEYS[7] else scene_of(key),
        ": load() returned no label",
    ),
    "another field": (deliver({"mask": 1}), ": load() returned 'mask'; the fields are image and label"),
    "a list": (
        deliver({"label": [[1]]}),
        ": load() returned a list as label; expected a NumPy array or the bytes of a",
    ),
    "masked": (deliver({"label": np.ma.masked_array(SCENE["label"])}), ": load() returned a MaskedArray as label; "),
    "objects": (deliver({"image": SCENE["image"].astype(object)}), "[image]: has the dtype object; expected whole "),
    "objects as label": (deliver({"label": SCENE["label"].astype(object)}), "[label]: has the dtype object; "),
    "wide": (
        deliver({"image": SCENE["image"].astype(np.int64)}),
        "[image]: has 64 signed bits per channel, not 8; give --image-range",
    ),
    "16 bits": (
        deliver({"image": SCENE["image"].astype(np.uint16)}),
        "[image]: has 16 bits per channel, not 8; give --",
    ),
    "floats": (deliver({"image": SCENE["image"] / 255}), "[image]: has 64 bits per channel, not 8; give --image-range"),
    "float labels": (
        deliver({"label": SCENE["label"] / 2}),
        "[label]: has floating-point numbers; labels must be inte",
    ),
    "planes": (
        deliver({"image": SCENE["image"].transpose(2, 0, 1)}),
        "[image]: has the shape (3, 20, 30); expected (H, ",
    ),
    "one row": (deliver({"image": SCENE["image"][0, 0]}), "[image]: has the shape (3,); expected (H, W), or (H, W, B)"),
    "nothing": (deliver({"image": SCENE["image"][:0]}), "[image]: has 30x0 pixels; 1 to"),
    "other sizes": (
        deliver({"label": SCENE["label"][:-1]}),
        "[image] is 20x30, its label scan 07[label] is 19x30 (heig",
    ),
    "another size": (deliver(scene_of(KEYS[7], 5, 6)), "[label] is 5x6, not 20x30 as sizes or the sample say; give"),
    "another class": (deliver({"label": SCENE["label"] + 1}), "[label]: has a value in no class (3: "),
    "negative": (deliver({"label": SCENE["label"] - 1}), "[label]: has the number -1 at ("),
    "large": (deliver({"label": SCENE["label"] + (1 << 40)}), "[label]: has the number 1099511627778 at ("),
    "no picture": (deliver({"image": b"hello"}), "[image]: is not a PNG, JPEG, TIFF, JPEG 2000, BMP, WebP or npy"),
    "cut": (deliver({"label": cv2.imencode(".png", SCENE["label"])[1].tobytes()[:-20]}), "[label]: "),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_row_is_named_and_counted_and_the_others_are_packed(tmp_path: Path, in_process: None, case: str) -> None:
    load, reason = BAD[case]
    rows = Rows(KEYS[:20], load)  # row 7 is not one of the sample
    summary = packed(tmp_path / "out", rows, on_bad="skip")
    ((split, key, why),) = summary.rejects
    assert (split, key, summary.rows) == ("all", KEYS[7], 19)
    assert why.startswith(f"{KEYS[7]}{reason}")
    packed(tmp_path / "again", rows, on_bad="skip")
    assert same(tmp_path / "out", tmp_path / "again"), "the words are part of the fingerprint"


@pytest.mark.parametrize(
    "shapes", [pytest.param((2,), marks=pytest.mark.short), pytest.param((1, 2), marks=pytest.mark.long)]
)
def test_rows_that_crash_hang_or_exit_cost_themselves_alone(tmp_path: Path, shapes: tuple[int, ...]) -> None:
    """In a long run the packs of one and of two workers are also compared. Hostile files show the same."""
    acts = {KEYS[3]: "exit", KEYS[11]: "crash", KEYS[12]: "hang", KEYS[20]: "sys.exit"}
    rows = Rows(KEYS, Hostile(acts).load)
    for workers in shapes:
        summary = packed(
            tmp_path / str(workers), rows, workers=workers, task_timeout=1, on_bad="skip", size=(HEIGHT, WIDTH)
        )
        assert {key: reason.partition(": ")[2] for _, key, reason in summary.rejects} == {
            KEYS[3]: "ended the process that ran load() (exit code 3)",
            KEYS[11]: "crashed the process that ran load() (SIGSEGV)",
            KEYS[12]: "took longer than --task-timeout 1 s",
            KEYS[20]: "load() raised SystemExit: 3",
        }
        assert summary.rows == len(KEYS) - len(acts)
    assert same(*(tmp_path / str(workers) for workers in (shapes[0], shapes[-1])))


def test_arrays_of_any_form_are_taken(tmp_path: Path, in_process: None) -> None:
    """Read-only, not contiguous, in the other byte order, gray, with one channel, with an opaque alpha, of files."""
    image, label = SCENE["image"], SCENE["label"].astype(np.uint8)
    gray, frozen = np.ascontiguousarray(image[..., 0]), image.copy()
    frozen.flags.writeable = False
    given: dict[str, tuple[object, object]] = {
        "plain": (image, label),
        "read-only": (frozen, label.astype("<u2")),
        "reversed": (np.ascontiguousarray(image[::-1])[::-1], label.astype(">i8")),
        "columns": (np.asfortranarray(image), np.asfortranarray(label)),
        "alpha": (np.dstack([image, np.full_like(gray, 255)]), label[..., None]),
        "file": (cv2.imencode(".png", image[..., ::-1])[1].tobytes(), memoryview(cv2.imencode(".png", label)[1].data)),
        "gray": (gray, label),
        "gray plane": (gray[..., None], label.astype(np.int32)),
    }
    files = {key: dict(zip(("image", "label"), fields, strict=True)) for key, fields in given.items()}
    assert packed(tmp_path / "out", Rows(list(files), files.__getitem__)).rows == len(files)
    rows = open_dataset(tmp_path / "out")
    for index in range(len(rows)):
        shown = np.dstack([gray] * 3) if rows.key(index).startswith("gray") else image
        assert np.array_equal(rows[index][0].numpy().transpose(1, 2, 0), shown), rows.key(index)
        assert np.array_equal(rows[index][1], label), rows.key(index)


def test_numbers_of_16_bits_and_floats_need_a_range(tmp_path: Path, in_process: None) -> None:
    def load(key: str) -> dict[str, Any]:
        image = scene_of(key)["image"] / 255
        image[0, 0] = np.nan if key == KEYS[2] else 0
        return {**scene_of(key), "image": image.astype(np.float32)}

    summary = packed(tmp_path / "out", Rows(KEYS, load), image_range=(0, 1), on_bad="skip")
    assert summary.rejects == (("all", KEYS[2], f"{KEYS[2]}[image]: has pixels that are not numbers (NaN)"),)
    rows = open_dataset(tmp_path / "out")
    assert np.array_equal(rows[0][0].numpy()[:, 1:], scene_of(KEYS[0])["image"].transpose(2, 0, 1)[:, 1:])


def test_keys_have_splits_and_may_come_from_a_function(tmp_path: Path, in_process: None) -> None:
    def keys() -> Iterator[tuple[str, str]]:
        yield from ((split, key) for split in ("val", "train") for key in KEYS[::-3])

    summary = packed(tmp_path / "out", Rows(keys, scene_of), shard_size="1MB")
    assert [(split.name, split.rows) for split in summary.manifest.splits] == [("train", 10), ("val", 10)]
    rows = open_dataset(tmp_path / "out", "val")
    assert np.array_equal(rows[0][1], scene_of(("val", rows.key(0)))["label"])


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (["a", 5], "5 is not a key; expected a text, or a pair of a split and a key"),
        ([("train", 5)], r"\('train', 5\) is not a key"),
        ([("a/b", "c")], "is not the name of a split"),
    ],
)
def test_keys_that_no_pack_can_hold_are_refused_before_work(tmp_path: Path, keys: list[Any], message: str) -> None:
    def load(key: object) -> dict[str, Any]:
        raise AssertionError

    with pytest.raises(InputError, match=message):
        packed(tmp_path / "out", Rows(keys, load))
    assert not (tmp_path / "out").exists()


def test_arguments_that_cannot_be_right_are_refused() -> None:
    for wrong in (iter(KEYS), "abc"):
        with pytest.raises(TypeError, match="expected a list of texts, or a function that returns an iterator"):
            Rows(wrong, scene_of)
    for size in ((0, 5), 5, (1, 2, 3, 4)):
        with pytest.raises(TypeError, match=r"expected \(height, width\)"):
            Rows(KEYS, scene_of, sizes=size)  # type: ignore[arg-type]


def varied(key: str) -> dict[str, Any]:
    return scene_of(key, *size_of(key))


def size_of(key: str) -> tuple[int, int]:
    return 10 + int(key[-2:]), 40


def test_images_of_several_sizes_need_one_or_the_size_of_each(tmp_path: Path, in_process: None) -> None:
    with pytest.raises(
        InputError, match=r"several sizes \(height x width\); choose one, such as size=.*\n  10x40: 1 row"
    ):
        packed(tmp_path / "out", Rows(KEYS, varied))
    for options in ({"size": "native"}, {"fit": "tile", "size": (8, 8)}):
        with pytest.raises(UsageError, match="needs the size of each image before it is loaded"):
            packed(tmp_path / "out", Rows(KEYS, varied), **options)
    assert packed(tmp_path / "scaled", Rows(KEYS, varied), size=(8, 8)).rows == len(KEYS)
    assert packed(tmp_path / "tiles", Rows(KEYS, varied, sizes=size_of), fit="tile", size=(20, 40)).rows == 49
    assert packed(tmp_path / "native", Rows(KEYS, varied, sizes=size_of), size="native").rows == len(KEYS)
    rows = open_dataset(tmp_path / "native")
    assert all(rows.size(index) == size_of(rows.key(index)) for index in range(len(rows)))


def test_a_size_that_is_not_the_one_stated_makes_a_bad_row(tmp_path: Path, in_process: None) -> None:
    def sizes(key: str) -> Any:
        return {KEYS[2]: (1, 1), KEYS[5]: None, KEYS[6]: "ab"}.get(key, (HEIGHT, WIDTH))

    rejects = packed(tmp_path / "out", Rows(KEYS, scene_of, sizes=sizes), size=(4, 4), on_bad="skip").rejects
    assert [(key, reason.removeprefix(key)) for _, key, reason in rejects] == [
        (KEYS[2], "[label] is 20x30, not 1x1 as sizes or the sample say; give a size to scale to"),
        (KEYS[5], ": sizes() returned no size: expected (height, width), found None"),
        (KEYS[6], ": sizes() returned no size: expected (height, width), found 'ab'"),
    ]


def test_a_version_that_fails_stops_the_build(tmp_path: Path, in_process: None) -> None:
    def fails(key: str) -> str:
        raise KeyError(key)

    with pytest.raises(UsageError, match=r"scan \d\d: version\(\) raised KeyError: 'scan \d\d'"):
        packed(tmp_path / "out", Rows(KEYS, scene_of, fails))
    with pytest.raises(UsageError, match=r"scan \d\d: version\(\) returned a list; expected a text or a number"):
        packed(tmp_path / "out", Rows(KEYS, scene_of, lambda key: [key]))
    assert packed(tmp_path / "out", Rows(KEYS, scene_of, lambda key: None)).rows == len(KEYS)
    assert packed(tmp_path / "out", Rows(KEYS, scene_of, lambda key: None)).reused == 0


LACKING = frozenset(KEYS[number] for number in (0, 4, 5, 29))


def unlabelled(*keys: str, **more: Any) -> Rows:
    """Return the scenes as rows, of which those of these keys have no label."""
    scenes = Unlabelled(frozenset(keys))
    return Rows(KEYS, scenes.load, scenes.version, without={"label": list(keys)}, **more)


def test_rows_may_lack_a_label(tmp_path: Path) -> None:
    """In worker processes, with the size of a sample, as it is stated, or scaled."""
    for name, more, options in (
        ("sampled", {}, {}),
        ("stated", {"sizes": (HEIGHT, WIDTH)}, {"size": "native"}),
        ("scaled", {}, {"size": (HEIGHT, WIDTH)}),
    ):
        out = tmp_path / name
        summary = packed(out, unlabelled(*LACKING, **more), **options)
        assert (summary.rows, summary.rejects, verify_pack(out, deep=True)) == (len(KEYS), (), [])
        rows = open_dataset(out)
        assert [rows.key(index) for index in range(len(rows))] == sorted(set(KEYS) - LACKING) + sorted(LACKING)
        for index, (image, label) in enumerate(rows):
            known = scene_of(key := rows.key(index))
            assert np.array_equal(image.numpy().transpose(1, 2, 0), known["image"])
            assert np.array_equal(label, np.full_like(known["label"], 255) if key in LACKING else known["label"])
        assert len(open_dataset(out, labelled=False)) == len(LACKING)


def test_all_rows_may_lack_a_label(tmp_path: Path, in_process: None) -> None:
    summary = packed(tmp_path / "out", unlabelled(*KEYS))
    assert (summary.rows, len(open_dataset(tmp_path / "out", labelled=False))) == (len(KEYS), len(KEYS))
    splits = [("train", "a"), ("train", "b"), ("test", "a")]
    scenes = Unlabelled(frozenset(splits[1:]))
    packed(tmp_path / "splits", Rows(splits, scenes.load, without={"label": iter(splits[1:])}))
    assert len(open_dataset(tmp_path / "splits", "test", labelled=False)) == 1
    assert [len(open_dataset(tmp_path / "splits", "train", labelled=bit)) for bit in (True, False)] == [1, 1]


def test_labels_that_arrive_or_go_give_the_pack_of_a_fresh_build(tmp_path: Path, in_process: None) -> None:
    for night, numbers in enumerate([[], [3], [3, 7, 20], range(30), [0, 29], [0], [0]]):
        rows = unlabelled(*(KEYS[number] for number in numbers), sizes=(HEIGHT, WIDTH))
        summary = packed(tmp_path / "out", rows)
        packed(tmp_path / f"fresh{night}", rows)
        assert same(tmp_path / "out", tmp_path / f"fresh{night}")
        assert len(open_dataset(tmp_path / "out")) == len(KEYS)
    assert summary.reused == len(KEYS)
    for out in ("out", "fresh6"):  # in the first one shards of earlier nights have rows as they would be now
        for numbers, changed in (([0, 9], [9]), ([], [0]), ([0], []), ([3, 7, 20], [0, 3, 7, 20])):
            keys = [KEYS[number] for number in numbers]
            found = diff_pack(tmp_path / out, unlabelled(*keys, sizes=(HEIGHT, WIDTH)))
            assert found.changed == tuple(f"all/{KEYS[number]}" for number in changed)
            assert found.fields == dict.fromkeys(found.changed, ("label",))


def test_a_field_is_there_if_and_only_if_without_does_not_name_it(tmp_path: Path, in_process: None) -> None:
    rows = Rows(KEYS, Unlabelled(frozenset({KEYS[2]})).load, without={"label": [KEYS[7]]})
    assert packed(tmp_path / "out", rows, on_bad="skip").rejects == (
        (
            "all",
            KEYS[2],
            f'{KEYS[2]}: load() returned no label; name the rows that have none: Rows(..., without={{"label": keys}})',
        ),
        ("all", KEYS[7], f"{KEYS[7]}: load() returned a label of a row that has none, as without= says"),
    )
    none = Rows(KEYS, deliver({"label": None}), without={"label": [KEYS[7]]})
    assert packed(tmp_path / "none", none).rejects == ()
    size = Rows(KEYS, deliver({"image": SCENE["image"][1:], "label": None}), without={"label": [KEYS[7]]})
    ((_, _, reason),) = packed(tmp_path / "size", size, on_bad="skip").rejects
    assert reason.startswith(f"{KEYS[7]}[image] is 19x30, not 20x30 as sizes or the sample say")


def test_without_names_labels_and_rows_that_are_there(tmp_path: Path) -> None:
    for name in ("image", "depth"):
        with pytest.raises(UsageError, match=f"without: '{name}' cannot be missing; a row may lack its label only"):
            packed(tmp_path / name, Rows(KEYS, scene_of, without={name: KEYS}))
    for wrong in (KEYS, {"label": "abc"}):
        with pytest.raises(TypeError, match="without: expected a "):
            Rows(KEYS, scene_of, without=wrong)  # type: ignore[arg-type]
    for keys, message in ((["x", "y", KEYS[0]], "2 keys: not in keys; all: x, y"), ([("a", "x")], "a/x: is not in")):
        with pytest.raises(InputError, match=message):
            packed(tmp_path / "out", Rows(KEYS, scene_of, without={"label": keys}))
        assert not (tmp_path / "out").exists()


SCRIPT = """
import sys
from row_loaders import scene_of
from packer import Rows, UsageError, build_pack

def load(key):
    return scene_of(key)

if sys.argv[2] == "none":
    sys.modules["cloudpickle"] = None
try:
    print(build_pack(Rows(["a", "b"], load), sys.argv[1], classes=["cell", "wall", "rest"], workers=1).rows)
except UsageError as error:
    print(error)
"""


def script(out: Path, cloudpickle: str) -> str:
    (out.parent / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(out.parent / "script.py"), str(out), cloudpickle]
    path = {"PYTHONPATH": f"{REPO}:{REPO / 'tests'}", "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, env=path, capture_output=True, text=True, timeout=HANG, check=True).stdout


def test_a_function_of_the_main_module_needs_cloudpickle(tmp_path: Path) -> None:
    assert script(tmp_path / "out", "none") == (
        "load cannot be sent to the worker processes (it is in __main__, which workers do not run); put it into a "
        "module that can be imported, at its top level, or install cloudpickle, which sends code: "
        "pip install 'segpack[callables]'\n"
    )
    assert not (tmp_path / "out").exists()


def test_cloudpickle_sends_the_code_of_functions(tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle")
    assert script(tmp_path / "out", "installed") == "2\n"


def test_functions_that_cannot_be_opened_in_a_worker_end_the_build_with_words() -> None:
    rows = Rows(KEYS, scene_of, sizes=(HEIGHT, WIDTH))
    facts = {"size": None, "scales": False, "fields": ("image", "label"), "sides": 2}
    missing = Rows.from_json({"functions": functions.to_text((scene_of, None, None)), **facts})
    assert missing.load(next(rows.rows())).bad is None
    named, pickled = (
        functions.to_text((scene_of, None, None)),
        functions.to_text((partial(scene_of), None, None)),
    )
    for broken in (named.replace("scene_of", "no_scene"), pickled.replace("A", "B", 3)):
        with pytest.raises(EngineError, match="load cannot be opened in a worker process"):
            Rows.from_json({"functions": broken, **facts}).load(next(rows.rows()))
