"""Folds of a build: drawn by a hash of the key or listed by nnU-Net's splits_final.json, whose faults are all named."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import errors_of, good, json_of, make_raw, pack, pack_from, run
from drills.published import same
from hypothesis import given
from hypothesis import strategies as st
from test_pairs_find import keys, touch
from test_sources_nifti_channels import save

from packer.errors import InputError, SettingsError, UsageError
from packer.pairs import fold_file
from packer.pairs.find import find_pairs
from packer.pairs.fold_file import FoldFile
from packer.pairs.folds import Folds
from packer.pairs.pairing_rules import PairingRules
from packer.pairs.split_by_hash import Shares
from readers import open_dataset
from readers.contract.manifest import Manifest

pytestmark = pytest.mark.usefixtures("in_process")

CASES = [f"case_{number:03}" for number in range(11)]
Listed = list[dict[str, list[str]]]


def nnunet_folds(cases: list[str], count: int = 5) -> Listed:
    """Return folds as nnU-Net makes them: sklearn's KFold, shuffled with the seed 12345."""
    order = np.random.RandomState(12345).permutation(len(cases))
    vals = [sorted(cases[index] for index in part) for part in np.array_split(order, count)]
    return [{"train": [case for case in cases if case not in val], "val": val} for val in vals]


def written(path: Path, folds: object) -> Path:
    """Write the file as nnU-Net's save_json does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(folds, sort_keys=False, indent=4))
    return path


def files(folder: Path, *names: str) -> None:
    touch(folder, *(f"{kind}/{name}.png" for kind in ("images", "labels") for name in names))


def nnunet_raw(folder: Path, cases: list[str], slices: int = 3) -> Path:
    for number, case in enumerate(cases):
        volume = np.random.default_rng(number).integers(-200, 300, (6, 5, slices)).astype(np.int16)
        for path, numbers in ((f"imagesTr/{case}_0000", volume), (f"labelsTr/{case}", (volume % 2).astype(np.uint8))):
            save(folder / f"{path}.nii.gz", numbers)
    labels = {"background": 0, "organ": 1}
    document = {"channel_names": {"0": "CT"}, "labels": labels, "numTraining": len(cases), "file_ending": ".nii.gz"}
    (folder / "dataset.json").write_text(json.dumps(document))
    return folder


def test_folds_have_equal_shares_and_never_move_a_key() -> None:
    folds = Folds.of(7)
    counts = Counter(folds.split_of(f"scene/{number}") for number in range(14_000))
    assert sorted(counts) == [f"fold{number}" for number in range(7)]
    assert all(abs(count - 2000) < 4 * 2000**0.5 for count in counts.values())
    named = Shares.parse(",".join(f"fold{number}=20" for number in range(5)))
    assert all(named.split_of(f"{key}") == Folds.of(5).split_of(f"{key}") for key in range(500))


def test_rows_without_a_split_or_of_train_are_folded(tmp_path: Path) -> None:
    names = [f"{number:02}" for number in range(40)]
    files(tmp_path / "plain", *names)
    plain = {key: split for split, key, *_ in keys(tmp_path / "plain", split=Folds.of(3))}
    for word in ("train", "training"):
        folder = tmp_path / word
        touch(folder, *(f"{word}/{kind}/{name}.png" for kind in ("images", "labels") for name in names))
        touch(folder, *(f"test/{kind}/{name}.png" for kind in ("images", "labels") for name in names[:4]))
        found = keys(folder, split=Folds.of(3))
        assert {key: split for split, key, *_ in found if split != "test"} == plain
        assert [key for split, key, *_ in found if split == "test"] == names[:4]
    assert set(plain.values()) == {"fold0", "fold1", "fold2"}


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        (("train", "val"), "--folds: there are splits already, such as 'val' of .*pack the rows to fold alone, with"),
        (("train", "validation"), "there are splits already, such as 'validation' of "),
        (("fold0", "fold1"), "there are splits already, such as 'fold0' of "),
        (("train", "training"), "rows of one split are drawn, and there are 'train' and 'training'; rename one"),
    ],
)
def test_splits_that_folds_have_instead_are_refused(splits: tuple[str, ...], message: str, tmp_path: Path) -> None:
    touch(tmp_path, *(f"{split}/{kind}/a.png" for split in splits for kind in ("images", "labels")))
    with pytest.raises(InputError, match=message):
        find_pairs(tmp_path, PairingRules("{split}/images/{key}", "{split}/labels/{key}", split=Folds.of(2)))


def test_the_advice_for_a_val_split_works(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 12, "val": 2})
    assert "pack the rows to fold alone, with --only" in errors_of(1, "build", "--folds", 2, raw.path, tmp_path / "out")
    pack(raw.path, tmp_path / "train", "--only", "train")
    out = pack_from(tmp_path / "train", tmp_path / "out", "--folds", 2)
    assert len(open_dataset(out, "train", fold=0)) + len(open_dataset(out, "val", fold=0)) == 12


def test_an_empty_fold_stops_a_build(tmp_path: Path) -> None:
    files(tmp_path / "raw", "a", "b", "c")
    empty = {f"fold{number}" for number in range(30)} - {Folds.of(30).split_of(key) for key in "abc"}
    with pytest.raises(InputError) as refused:
        find_pairs(tmp_path / "raw", PairingRules(split=Folds.of(30)))
    assert f"{len(empty)} folds: none of the 3 rows. Draw fewer folds; first: " in str(refused.value)
    assert {problem.partition(":")[0] for problem in refused.value.causes[0].files} == empty


def test_groups_exact_sizes_and_templates_with_splits(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 20, "test": 3})
    out = pack(raw.path, tmp_path / "exact", "--folds", 4, "--split-exact")
    assert {split.name: split.rows for split in Manifest.load(out).splits} == {
        **{f"fold{number}": 5 for number in range(4)},
        "test": 3,
    }
    names = [f"{patient}/{number}" for patient in range(12) for number in range(3)]
    touch(tmp_path / "scans", *(f"{kind}/{name}.png" for kind in ("scan", "truth") for name in names))
    rules: dict[str, Any] = {"image": "scan/{patient}/{key}.png", "label": "truth/{patient}/{key}.png"}
    found = keys(tmp_path / "scans", **rules, split=Folds.of(3), split_by="patient")
    folds = {patient: {split for split, key, *_ in found if key.startswith(f"{patient}/")} for patient in range(12)}
    assert all(splits == {Folds.of(3).split_of(f"{patient}")} for patient, splits in folds.items())
    listed = FoldFile.read(
        written(tmp_path / "splits_final.json", nnunet_folds([f"{patient}" for patient in range(12)]))
    )
    found = keys(tmp_path / "scans", **rules, split=listed, split_by="patient")
    assert {split for split, key, *_ in found if key.startswith("7/")} == {listed.split_of("7")}


@pytest.mark.parametrize("volumes", [False, True])
def test_the_folds_of_nnunet(storage: str, volumes: bool, tmp_path: Path) -> None:
    raw, folds = nnunet_raw(tmp_path / "nnUNet_raw/Dataset001", CASES), nnunet_folds(CASES)
    listed = written(tmp_path / "nnUNet_preprocessed/Dataset001/splits_final.json", folds)
    options: tuple[object, ...] = ("--volumes",) if volumes else ("--image-range=-200,300",)
    out = pack_from(raw, tmp_path / "out", "--folds", listed, "--format", storage, "--labels", "index", *options)
    for number, fold in enumerate(folds):
        for part in ("train", "val"):
            rows = open_dataset(out, part, fold=number)
            cases = [rows.key(index) if volumes else rows.key(index).rpartition("/")[0] for index in range(len(rows))]
            assert Counter(cases) == dict.fromkeys(fold[part], 1 if volumes else 3)


def test_a_file_next_to_the_cases_is_named_and_not_taken(tmp_path: Path) -> None:
    raw = nnunet_raw(tmp_path / "raw", CASES[:3])
    listed = written(raw / "splits_final.json", nnunet_folds(CASES[:3], 3))
    plain = run("build", "--dry-run", "--volumes", "--from", raw, tmp_path / "out")
    assert f"splits_final.json has folds; to pack them: --folds {listed}" in plain.stdout
    folded = good("build", "--dry-run", "--volumes", "--folds", listed, "--from", raw, tmp_path / "out")
    assert "has folds; to pack them" not in folded.stdout
    assert "fold2 1" in folded.stdout


def test_cases_of_no_val_are_always_trained_on(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 9})
    names = [f"street_{number:03}" for number in range(9)]
    folds = nnunet_folds(names[:6], 3)
    for fold in folds:
        fold["train"] += names[6:]
    listed = written(tmp_path / "splits_final.json", folds)
    told = good("build", "--dry-run", "--folds", listed, raw.path, tmp_path / "out").stdout
    assert "the split always gets 3 rows, in train of every fold of splits_final.json and in val of none" in told
    out = pack(raw.path, tmp_path / "out", "--folds", listed)
    train = open_dataset(out, "train", fold=1)
    assert {train.key(index) for index in range(len(train))} == set(folds[1]["train"])


def test_all_faults_of_a_file_are_named_at_once(tmp_path: Path) -> None:
    files(tmp_path / "raw", "a", "b", "c", "d", "e", "new")
    folds = [
        {"train": ["b", "c", "d", "a"], "val": ["a", "e"]},
        {"train": ["a", "c", "d"], "val": ["b", "e"]},
        {"train": ["a", "b", "e", "gone"], "val": ["c", "d"]},
        {"train": ["a", "b", "c", "d", "e"], "val": []},
    ]
    listed = FoldFile.read(written(tmp_path / "splits_final.json", folds))
    with pytest.raises(InputError) as refused:
        find_pairs(tmp_path / "raw", PairingRules(split=listed))
    wrong = {(cause.cause, cause.files) for cause in refused.value.causes}
    assert wrong == {
        ("is in train and in val of fold 0", ("a",)),
        ("is in val of the folds 0, 1", ("e",)),
        ("is in neither train nor val of fold 0", ("gone",)),
        ("is in neither train nor val of fold 1", ("gone",)),
        ("is in neither train nor val of fold 3", ("gone",)),
        ("fold 3 has no case in val", ()),
        (f"is in no fold of {listed.path}", ("new",)),
        (f"is in {listed.path}, and no row has it", ("gone",)),
    }
    assert "the names of cases are keys, such as 'new'" in str(refused.value)
    assert "add it to train or val of each fold, or pack without it" in str(refused.value)


def test_the_faults_are_named_for_rows_that_are_not_files(tmp_path: Path) -> None:
    raw = nnunet_raw(tmp_path / "raw", CASES[:4])
    listed = written(tmp_path / "splits_final.json", nnunet_folds([*CASES[:3], "lost"], 2))
    errors = errors_of(1, "build", "--folds", listed, "--image-range=-200,300", "--from", raw, tmp_path / "out")
    assert f"case_003: is in no fold of {listed}; add it to train or val of each fold" in errors
    assert f"lost: is in {listed}, and no row has it; take it out; the names of cases are keys, such as" in errors
    assert not (tmp_path / "out").exists()


HOSTILE = {
    "nothing": b"",
    "no JSON": b"[{]",
    "not UTF-8": b'[{"train": ["\xff"], "val": ["b"]}]',
    "deep": b"[" * 100_000,
    "an object": b'{"train": ["a"], "val": ["b"]}',
    "no folds": b"[]",
    "folds of texts": b'["a", "b"]',
    "no val": b'[{"train": ["a"]}]',
    "a text for a list": b'[{"train": "a", "val": ["b"]}]',
    "a number for a name": b'[{"train": [7], "val": ["b"]}]',
    "a name twice as a key": b'[{"train": [], "train": ["a"], "val": ["b"]}]',
    "very many folds": json.dumps([{"train": [], "val": ["a"]}] * 1001).encode(),
    "a pickle": b"\x80\x04\x95",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_by_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / "splits_final.json"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(SettingsError, match=r"--folds .*splits_final\.json: .*expected a list of folds"):
        FoldFile.read(path)


def test_files_that_are_none_or_too_large_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (tmp_path, tmp_path / "lost.json", Path("/dev/zero")):
        with pytest.raises(SettingsError, match=r"--folds .*: cannot be read "):
            FoldFile.read(path)
    monkeypatch.setattr("packer.pairs.paths.MOST_BYTES", 1 << 20)
    large = written(tmp_path / "large.json", ["x" * (1 << 20)])
    with pytest.raises(SettingsError, match="is larger than 1 MiB"):
        FoldFile.read(large)


@given(st.lists(st.sampled_from(["", "a", "b", "é", "e\u0301", "\ud800", "a/b", "all"]), max_size=9), st.integers(1, 4))
def test_any_lists_are_read_or_refused(names: list[str], count: int) -> None:
    folds = [{"train": names[number:], "val": names[:number]} for number in range(count)]
    listed = fold_file._folds(Path("f"), folds)
    assert len(listed) == count
    list(fold_file._wrong(listed))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--folds", 1), "'1': expected 2 to 1000 folds, or a file such as splits_final.json"),
        (("--folds", -3), "'-3': expected 2 to 1000 folds"),
        (("--folds", 1001), "expected 2 to 1000 folds"),
        (("--folds", "five"), "--folds five: cannot be read "),
        (("--folds", 5, "--split", "80/20"), "--split and --folds both draw splits: give only one of them"),
        (("--split-by", "patient"), "--split-by: needs --split, such as --split 80/10/10, or --folds"),
    ],
)
def test_wrong_options_are_wrong_usage(options: tuple[object, ...], message: str, tmp_path: Path) -> None:
    files(tmp_path / "raw", "a")
    assert message in errors_of(2, "build", *options, tmp_path / "raw", tmp_path / "out")


def test_a_file_has_no_exact_sizes_and_annotations_no_split(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--split-exact: draws a number of folds"):
        PairingRules(split=FoldFile(Path("f"), {}, ()), split_exact=True)
    touch(tmp_path / "raw", "train/a.png", "instances_train.json")
    options = ("--annotations", "instances_{split}.json", "--image", "{split}/{key}", "--folds", 2)
    told = errors_of(2, "build", *options, tmp_path / "raw", tmp_path / "out")
    assert "has {split}, but --folds draws the splits from the keys; write * in its place" in told


def test_nights_plans_and_parts_keep_folds(tmp_path: Path) -> None:
    raw, more = make_raw(tmp_path / "raw", {"train": 24}), make_raw(tmp_path / "more", {"train": 26})
    config = tmp_path / "packer.toml"
    written(tmp_path / "listed.json", nnunet_folds([f"street_{number:03}" for number in range(26)], 3))
    config.write_text('folds = 3\nlabels = "index"\nshard-size = "20KB"\n')
    out, fresh = pack(raw.path, tmp_path / "out", "--config", config), tmp_path / "fresh"
    pack(more.path, fresh, "--config", config)
    for folder in ("images", "masks"):
        for number in (24, 25):
            name = f"train/{folder}/street_{number:03}.png"
            (raw.path / name).write_bytes((more.path / name).read_bytes())
    summary = json_of("build", "--json", raw.path, out, "--config", config)
    assert summary["reused_rows"] > 0
    assert same(out, fresh)
    config.write_text('folds = "listed.json"\nlabels = "index"\nshard-size = "20KB"\n')
    assert "listed.json" in good("build", "--print-config", "--config", config, raw.path, out).stdout
    pack(more.path, tmp_path / "listed", "--config", config)
    plan = tmp_path / "plan"
    good("plan", "--config", config, raw.path, plan)
    for part in ("1/2", "2/2"):
        good("build-part", "--plan", plan, "--part", part, tmp_path / "parts")
    good("commit", "--plan", plan, tmp_path / "parts")
    assert same(tmp_path / "parts", tmp_path / "listed")
    pack(raw.path, out, "--config", config)
    assert same(out, tmp_path / "listed")
    assert "up to date" in good("diff", raw.path, out).stdout


def test_the_commands_take_a_pack_of_folds(tmp_path: Path) -> None:
    out = pack(make_raw(tmp_path / "raw", {"train": 16, "test": 2}).path, tmp_path / "out", "--folds", 2)
    good("card", out, "-o", tmp_path / "card.md")
    assert 'open_dataset("PATH", split="train", fold=0)' in (tmp_path / "card.md").read_text()
    good("verify", "--deep", out)
    for command in ("info", "stats"):
        assert "fold1" in good(command, out).stdout
    good("report", out, "-o", tmp_path / "report.html")
    good("sheet", out, "--split", "fold1", "-o", tmp_path / "sheet.png")
    good("extract", out, "--all", "--split", "fold1", tmp_path / "extracted")
    assert len((tmp_path / "extracted/pairs.csv").read_text().splitlines()) - 1 == len(open_dataset(out, "val", fold=1))
