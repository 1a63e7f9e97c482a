"""Class tables as people ship them, and what is to be ignored."""

from __future__ import annotations

from pathlib import Path

import pytest

from packer.class_table import class_table, parse_colour, read_table
from packer.errors import InputError, PackError, UsageError

RED_GREEN = (("a", (255, 0, 0)), ("b b", (0, 255, 0)))


@pytest.mark.parametrize(
    "text",
    [
        "name,r,g,b\na,255,0,0\nb b,0,255,0\n",
        "name,r,g,b\na,255,0,0\nb b,0,255,0",
        "\ufeffname,r,g,b\r\na,255,0,0\r\nb b,0,255,0\r\n",
        " Name , R , G , B \n a , 255 , 0 , 0 \n b b , 0 , 255 , 0 \n",
        '"name","r","g","b"\n"a","255","0","0"\n"b b","0","255","0"\n',
        "name, 'r', 'g', 'b'\n'a', 255, 0, 0\n'b b', 0, 255, 0\n",
        "name;r;g;b\na;255;0;0\nb b;0;255;0\n",
        "name\tr\tg\tb\na\t255\t0\t0\nb b\t0\t255\t0\n",
        "class,colour\na,#FF0000\nb b,#00ff00\n",
        'class_name,rgb\na,"255,0,0"\nb b,"0 255 0"\n',
        "\n\nname,r,g,b,area\na,255,0,0,7\n\nb b,0,255,0,9\n\n",
        "red,green,blue,alpha,label\n255,0,0,255,a\n0,255,0,255,b b\n",
        "a,255,0,0\nb b,0,255,0\n",
    ],
)
def test_colour_tables_in_all_the_forms_people_write(tmp_path: Path, text: str) -> None:
    path = tmp_path / "class_dict.csv"
    path.write_text(text, newline="")
    assert tuple((one.name, one.colour) for one in read_table(path).classes) == RED_GREEN
    assert class_table(tmp_path, None) == read_table(path)


def test_a_table_of_values(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("value,name\n7,road\n255,sky\n")
    assert [(one.name, one.values) for one in read_table(path).classes] == [("road", (7,)), ("sky", (255,))]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("name,shape\na,round\n", "cannot tell the columns"),
        ("name,r,g,b\na,256,0,0\n", "t.csv:2: expected a colour"),
        ("name,r,g,b\n,1,2,3\n", "t.csv:2: the class has no name"),
        ("name,r,g,b\na,1,2,3\nb,1,2,3\n", r"colour \(1, 2, 3\) is both 'a' and 'b'"),
        ("name,r,g,b\na,1,2,3\na,1,2,4\n", "name a is both"),
        ("value,name\nx,a\n", "expected a value from 0 to 65535, found 'x'"),
        ("name,r,g,b\n", "expected 1 to"),
        ('name,r,g,b,note\na,1,2,3,"oops\nb,4,5,6,x\n', "cannot be read"),
        ("name,r,g,b\na,²,0,0\n", "expected a colour"),
        ("value,name\n²,a\n", "expected a value"),
        ("value,name\n" + "9" * 5000 + ",a\n", "expected a value"),
        ("name,r,g,b\n" + "a" * 200_000 + ",1,2,3\n", "cannot be read"),
    ],
)
def test_broken_tables_are_refused_with_the_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_table(path)


def test_all_problems_of_a_table_at_once(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("name,r,g,b\na,999,0,0\nb,1,2\nc,1,2,3\nd,1,2,3\n")
    with pytest.raises(InputError) as caught:
        read_table(path)
    assert len(caught.value.problems) == 3


def test_a_number_or_a_range_is_a_table_of_values(tmp_path: Path) -> None:
    first, second = class_table(tmp_path, "3"), class_table(tmp_path, "1-3")
    assert first is not None
    assert second is not None
    assert [one.values for one in first.classes] == [(0,), (1,), (2,)]
    assert [one.values for one in second.classes] == [(1,), (2,), (3,)]
    third = class_table(tmp_path, "0,7-8,255")
    assert third is not None
    assert [one.values for one in third.classes] == [(0,), (7,), (8,), (255,)]
    for wrong in ("0", "1,1", "5-9,7", "5-2", "0-70000", "nowhere.csv"):
        with pytest.raises(PackError):
            class_table(tmp_path, wrong)


def test_what_is_ignored_is_no_class(tmp_path: Path) -> None:
    path = tmp_path / "class_dict.csv"
    path.write_text("name,r,g,b\na,1,1,1\nvoid,0,0,0\nb,2,2,2\n")
    for ignore in ("void", "#000000", "0,0,0"):
        table = class_table(tmp_path, None, [ignore])
        assert table is not None
        assert table.names == ("a", "b")
        assert table.ignored_colours == ((0, 0, 0),)
    values = class_table(tmp_path, "5", ["0", "255"])
    assert values is not None
    assert (len(values), values.ignored_values) == (4, (0, 255))
    with pytest.raises(UsageError, match=r"is no class \(a, void, b\)"):
        class_table(tmp_path, None, ["Void"])
    with pytest.raises(UsageError, match="leaves no class"):
        class_table(tmp_path, "1", ["0"])


def test_no_table_is_none(tmp_path: Path) -> None:
    assert class_table(tmp_path, None) is None


@pytest.mark.parametrize("text", ["#12345", "1,2", "1,2,256", "red", "", "#gggggg", "-1,2,3"])
def test_what_is_no_colour(text: str) -> None:
    assert parse_colour(text) is None


def test_two_tables_are_one_too_many(tmp_path: Path) -> None:
    for name in ("class_dict.csv", "classes.csv"):
        (tmp_path / name).write_text("name,r,g,b\na,1,1,1\n")
    with pytest.raises(InputError, match="several class tables"):
        class_table(tmp_path, None)
    assert class_table(tmp_path, str(tmp_path / "classes.csv")) is not None


def test_a_class_that_loses_its_value_is_ignored_by_its_colour_as_well(tmp_path: Path) -> None:
    path = tmp_path / "class_dict.csv"
    path.write_text("id,name,r,g,b\n0,a,1,1,1\n1,b,2,2,2\n")
    for ignore in ("1", "#020202", "b"):
        table = class_table(tmp_path, None, [ignore])
        assert table is not None
        assert (table.names, table.ignored_values, table.ignored_colours) == (("a",), (1,), ((2, 2, 2),))
