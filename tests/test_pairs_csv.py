"""A CSV of pairs: each row is a pair or a problem with its line, and no path leaves the raw folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import good
from test_pairs_find import keys, touch

from packer.errors import InputError, UsageError
from packer.pairs.find import find_pairs
from packer.pairs.pairing_rules import PairingRules


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return touch(tmp_path / "raw", "x/a b.png", "x/c.png", "y/a b.png", "y/c.png")


def table(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def problems(root: Path, path: Path) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        find_pairs(root, PairingRules(pairs=path))
    return caught.value.problems


BOTH = [("all", "x/a b", "x/a b.png", "y/a b.png"), ("all", "x/c", "x/c.png", "y/c.png")]


@pytest.mark.parametrize(
    "text",
    [
        "image,label\nx/a b.png,y/a b.png\nx/c.png,y/c.png\n",
        "x/a b.png,y/a b.png\n\nx/c.png,y/c.png",
        "\ufefflabel;Image\r\ny/a b.png;x/a b.png\r\ny/c.png;x/c.png\r\n",
        'image\tmask\n"x/a b.png"\ty/a b.png\n./x/c.png\tx/../y/c.png\n',
    ],
)
@pytest.mark.parametrize("path", ["pairs.csv", "../pairs.tsv"])
def test_tables_with_and_without_heading_and_with_any_delimiter(raw: Path, text: str, path: str) -> None:
    assert keys(raw, pairs=table(raw / path, text)) == BOTH


def test_paths_can_start_at_the_table_or_be_absolute(raw: Path) -> None:
    path = table(raw / "x/pairs.csv", f"image,label\na b.png,../y/a b.png\n{raw}/x/c.png,{raw.resolve()}/y/c.png\n")
    assert keys(raw, pairs=path) == BOTH


def test_split_and_key_are_taken_from_their_columns(raw: Path) -> None:
    path = table(raw / "p.csv", "key,split,image,label\none,val,x/c.png,y/c.png\n,train,x/a b.png,y/a b.png\n")
    assert [row[:2] for row in keys(raw, pairs=path)] == [("train", "x/a b"), ("val", "one")]
    path = table(raw / "q.csv", "x/c.png,y/c.png,val\nx/a b.png,y/a b.png,train\n")
    assert [row[:2] for row in keys(raw, pairs=path)] == [("train", "x/a b"), ("val", "x/c")]


def test_paths_that_leave_the_raw_folder_are_refused_even_if_they_exist(raw: Path) -> None:
    touch(raw.parent, "secret.png", "raw2/a.png")
    path = table(
        raw / "p.csv",
        f"image,label\n../secret.png,y/c.png\nx/c.png,{raw.parent}/secret.png\nx/../../raw2/a.png,y/c.png\n,y/c.png\n",
    )
    named = problems(raw, path)
    assert [problem.split(" is not ")[0] for problem in named] == [
        "p.csv:2: '../secret.png'",
        f"p.csv:3: '{raw.parent}/secret.png'",
        "p.csv:4: 'x/../../raw2/a.png'",
        "p.csv:5: ''",
    ]


def test_all_problems_of_a_table_are_reported_with_their_lines(raw: Path) -> None:
    path = table(
        raw / "p.csv",
        "image,label,split,key\nx/gone.png,y/gone.png,train,\nx/c.png,y/c.png,train\nx/c.png,y/c.png,train,k\n"
        "x/a b.png,y/a b.png,train,k\nx/c.png,y/c.png,val,\ny/c.png,y/c.png,val,\n",
    )
    assert problems(raw, path) == (
        "p.csv:3: has 3 columns, not 4",
        "p.csv:5: the key 'k' has another pair at p.csv:4",
        "p.csv:6: x/c.png is in val, and in train by p.csv:4",
        "p.csv:7: y/c.png is named as image and as label",
        "p.csv:2: there is no file x/gone.png",
        "p.csv:2: there is no file y/gone.png",
    )


def test_either_all_rows_have_a_split_or_none(raw: Path) -> None:
    path = table(raw / "p.csv", "image,label,split\nx/c.png,y/c.png,\nx/a b.png,y/a b.png,train\n")
    assert problems(raw, path) == ("some pairs have no split, though others do",)


def test_missing_files_can_be_skipped(raw: Path) -> None:
    path = table(raw / "p.csv", "x/c.png,y/c.png\nx/z.png,y/c.png\n")
    pairing = find_pairs(raw, PairingRules(pairs=path, missing="skip"))
    assert [pair.key for pair in pairing.pairs] == ["x/c"]
    assert tuple(map(str, pairing.missing)) == ("p.csv:2: there is no file x/z.png",)


@pytest.mark.parametrize(
    "text", ["a,b,c,d\n", "name,label\nx/c.png,y/c.png\n", 'image,label\n"x', "image,image,label\n"]
)
def test_other_tables_are_refused(raw: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"p\.csv: "):
        find_pairs(raw, PairingRules(pairs=table(raw / "p.csv", text)))


def test_an_empty_table_is_an_error(raw: Path) -> None:
    with pytest.raises(
        InputError, match="there is no pair in the layout given by --pairs; no line names an image and its label"
    ):
        find_pairs(raw, PairingRules(pairs=table(raw / "p.csv", "image,label\n")))


def test_a_table_cannot_be_combined_with_templates_or_lists(raw: Path) -> None:
    for other in ({"image": "{key}", "label": "{key}_m"}, {"lists": "x"}):
        with pytest.raises(UsageError, match="--pairs"):
            PairingRules(pairs=raw / "p.csv", **other)  # type: ignore[arg-type]


def test_the_command_line_packs_a_table(raw: Path) -> None:
    path = table(raw / "p.csv", "image,label,split\nx/c.png,y/c.png,train\nx/a b.png,y/a b.png,val\n")
    result = good("build", "--dry-run", "--pairs", path, "--classes", 1, raw, raw.parent / "out")
    assert "layout    given by --pairs" in result.stdout
    assert "pairs     train 1, val 1" in result.stdout


def test_a_table_distinguishes_names_that_differ_only_in_the_form_of_accents(tmp_path: Path) -> None:
    composed, decomposed = "i/caf\u00e9.png", "i/cafe\u0301.png"
    touch(tmp_path, composed, decomposed, "l/1.png", "l/2.png")
    path = table(tmp_path / "pairs.csv", f"image,label,key\n{composed},l/1.png,1\n{decomposed},l/2.png,2\n")
    assert [row[1:3] for row in keys(tmp_path, pairs=path)] == [("1", composed), ("2", decomposed)]


def test_a_huge_table_is_not_read(raw: Path) -> None:
    path = table(raw / "pairs.csv", "image,label\n")
    os.truncate(path, 100 << 30)  # a sparse file takes no disk space
    with pytest.raises(InputError, match="larger than 256 MiB"):
        find_pairs(raw, PairingRules(pairs=path))


def test_spaces_around_a_key_are_a_part_of_it_unless_they_align_columns(raw: Path) -> None:
    path = table(raw / "p.csv", "key, image, label\n one,x/c.png,y/c.png\ntwo , x/a b.png, y/a b.png\n")
    assert [row[1] for row in keys(raw, pairs=path)] == [" one", "two"]
