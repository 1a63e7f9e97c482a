"""Class tables in the forms that people ship, and ignored values, colours and classes."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from conftest import ends_in_time, make_raw, pack, run, write_png
from test_pixels_labels import rgba

from packer.classes.load import load_class_table, read_table
from packer.classes.values import parse_colour
from packer.errors import InputError, PackError, UsageError
from readers import open_dataset
from readers.contract.classes import ClassTable
from readers.contract.json_entry import Entry, JsonProblem

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
    assert tuple((entry.name, entry.colour) for entry in read_table(path).classes) == RED_GREEN
    assert load_class_table(tmp_path, None) == read_table(path)


def test_a_table_of_values(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("value,name\n7,road\n255,sky\n")
    assert [(entry.name, entry.values) for entry in read_table(path).classes] == [("road", (7,)), ("sky", (255,))]


def test_all_problems_of_a_table_are_reported_together(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("name,r,g,b\na,999,0,0\nb,1,2\nc,1,2,3\nd,1,2,3\n")
    with pytest.raises(InputError) as caught:
        read_table(path)
    assert len(caught.value.problems) == 3


def test_a_number_or_a_range_is_a_table_of_values(tmp_path: Path) -> None:
    first, second = load_class_table(tmp_path, "3"), load_class_table(tmp_path, "1-3")
    assert first is not None
    assert second is not None
    assert [entry.values for entry in first.classes] == [(0,), (1,), (2,)]
    assert [entry.values for entry in second.classes] == [(1,), (2,), (3,)]
    third = load_class_table(tmp_path, "0,7-8,255")
    assert third is not None
    assert [entry.values for entry in third.classes] == [(0,), (7,), (8,), (255,)]
    for wrong in ("0", "1,1", "5-9,7", "5-2", "1,5-2", "0-70000", "nowhere.csv"):
        with pytest.raises(PackError):
            load_class_table(tmp_path, wrong)


def test_ignored_values_colours_and_names_leave_the_classes(tmp_path: Path) -> None:
    path = tmp_path / "class_dict.csv"
    path.write_text("name,r,g,b\na,1,1,1\nvoid,0,0,0\nb,2,2,2\n")
    for ignore in ("void", "#000000", "0,0,0"):
        table = load_class_table(tmp_path, None, [ignore])
        assert table is not None
        assert table.names == ("a", "b")
        assert table.ignored_colours == ((0, 0, 0),)
    values = load_class_table(tmp_path, "5", ["0", "255"])
    assert values is not None
    assert (len(values), values.ignored_values) == (4, (0, 255))
    with pytest.raises(UsageError, match=r"is not a class \(a, void, b\), a value or a colour"):
        load_class_table(tmp_path, None, ["Void"])
    with pytest.raises(UsageError, match="leaves no class"):
        load_class_table(tmp_path, "1", ["0"])


def test_without_a_table_there_is_none(tmp_path: Path) -> None:
    assert load_class_table(tmp_path, None) is None


@pytest.mark.parametrize("text", ["#12345", "1,2", "1,2,256", "red", "", "#gggggg", "-1,2,3"])
def test_texts_that_are_not_colours(text: str) -> None:
    assert parse_colour(text) is None


def test_two_tables_in_the_raw_folder_are_refused(tmp_path: Path) -> None:
    for name in ("class_dict.csv", "classes.csv"):
        (tmp_path / name).write_text("name,r,g,b\na,1,1,1\n")
    with pytest.raises(InputError, match="several class tables"):
        load_class_table(tmp_path, None)
    assert load_class_table(tmp_path, str(tmp_path / "classes.csv")) is not None


def test_ignoring_the_value_of_a_class_ignores_its_colour_too(tmp_path: Path) -> None:
    path = tmp_path / "class_dict.csv"
    path.write_text("id,name,r,g,b\n0,a,1,1,1\n1,b,2,2,2\n")
    for ignore in ("1", "#020202", "b"):
        table = load_class_table(tmp_path, None, [ignore])
        assert table is not None
        assert (table.names, table.ignored_values, table.ignored_colours) == (("a",), (1,), ((2, 2, 2),))


def table_of(path: Path, text: str) -> ClassTable:
    path.write_text(text)
    return read_table(path)


def problems_of(path: Path, text: str) -> list[str]:
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_table(path)
    return [problem.removeprefix(str(path)) for problem in caught.value.problems]


ROAD_SKY = [("road", (7,)), ("sky", (23,))]
BY_VALUE = {
    "a.csv": "id,name\n7,road\n23,sky\n",
    "a.tsv": "id\tname\n7\troad\n23\tsky\n",
    "a.toml": "[[class]]\nname = 'road'\nvalues = [7]\n[[class]]\nname = 'sky'\nvalues = ['23']\n",
    "mapping.json": '{"7": "road", "23": "sky"}',
    "names.json": '{"road": 7, "sky": 23}',
    "coco.json": '[{"id": 7, "name": "road", "supercategory": "flat"}, {"id": 23, "name": "sky"}]',
    "below.json": '{"categories": [{"id": 7, "name": "road"}, {"id": 23, "name": "sky"}], "info": {}}',
    "datumaro.json": '{"label_map": {"7": "road", "23": "sky"}, "background_label": "7"}',
    "ours.json": '{"class": [{"name": "road", "values": [7]}, {"name": "sky", "values": ["23-23"]}]}',
    "labels.txt": "7: road\n23: sky\n",
    "all.txt": "7 road 128 64 128\n23 sky 70 130 180\n",
    "spaced.txt": "7 road\n23 sky\n",
    "headed.txt": "id name\n7 road\n23 sky\n",
    "train.json": '[{"id": 23, "name": "sky", "trainId": 1}, {"id": 7, "name": "road", "trainId": 0}]',
}


@pytest.mark.parametrize("name", BY_VALUE)
def test_tables_of_values_in_all_the_forms_people_ship(tmp_path: Path, name: str) -> None:
    table = table_of(tmp_path / name, BY_VALUE[name])
    assert [(entry.name, entry.values) for entry in table.classes] == ROAD_SKY


BY_COLOUR = {
    "names.json": '{"a": [255, 0, 0], "b b": "#00ff00"}',
    "labelmap.txt": "# label:color_rgb:parts:actions\na:255,0,0::\nb b:0,255,0::\n",
    "names_first.txt": "a 255 0 0\nb b 0 255 0\n",
    "label_colors.txt": "255 0 0\ta\n0 255 0\t\tb b\n",
    "a.toml": "[[class]]\nname = 'a'\ncolour = '#ff0000'\n[[class]]\nname = 'b b'\ncolours = [[0, 255, 0]]\n",
}


@pytest.mark.parametrize("name", BY_COLOUR)
def test_tables_of_colours_in_other_forms_than_csv(tmp_path: Path, name: str) -> None:
    table = table_of(tmp_path / name, BY_COLOUR[name])
    assert tuple((entry.name, entry.colour) for entry in table.classes) == RED_GREEN
    assert [entry.colours for entry in table.classes] == [((255, 0, 0),), ((0, 255, 0),)]


def test_a_list_of_names_counts_from_0(tmp_path: Path) -> None:
    for name, text in (("a.txt", "road\ntraffic light\n"), ("a.json", '["road", "traffic light"]')):
        table = table_of(tmp_path / name, text)
        assert [(entry.name, entry.values) for entry in table.classes] == [("road", (0,)), ("traffic light", (1,))]
    table = table_of(tmp_path / "labels.txt", "__ignore__\n_background_\ncar\n")
    assert (table.names, table.classes[1].values, table.ignored_values) == (("_background_", "car"), (1,), (255,))
    assert problems_of(tmp_path / "a.txt", "road\n7 sky\n") == [":2: expected a name, found '7 sky'"]
    assert problems_of(tmp_path / "a.txt", "road\nsky\nroad\n") == [":3: 'road' is in the list twice"]


def test_rows_of_one_name_make_one_class(tmp_path: Path) -> None:
    table = table_of(tmp_path / "a.csv", "name,r,g,b\ncar,1,1,1\nsky,2,2,2\ncar,3,3,3\ncar,1,1,1\n")
    assert table.names == ("car", "sky")
    assert table.classes[0].colours == ((1, 1, 1), (3, 3, 3))
    table = table_of(tmp_path / "a.csv", "value,name\n0,sky\n8-10,road\n7,road\n")
    assert table.classes[1].values == (8, 9, 10, 7)


def test_a_name_column_wins_over_a_category_column(tmp_path: Path) -> None:
    """Rows of one name are one class, so the wrong column would join different classes."""
    table = table_of(tmp_path / "a.csv", "category,name,id\nflat,road,0\nflat,walk,1\n")
    assert table.names == ("road", "walk")
    items = [{"category": "flat", "name": name, "id": value} for value, name in enumerate(table.names)]
    assert table_of(tmp_path / "a.json", json.dumps(items)) == table


def test_train_ids_set_the_order_and_the_ignored_classes(tmp_path: Path) -> None:
    text = (
        'name,id,trainId,color\nunlabeled,0,255,"0,0,0"\nsidewalk,8,1,#f423e8\nroad,7,0,#804080\n'
        "parking,9,0,#faaaa0\nlicense plate,-1,-1,#00008e\nout of roi,3,-1,#000000\n"
    )
    table = table_of(tmp_path / "a.csv", text)
    assert table.names == ("road+parking", "sidewalk")
    assert [entry.values for entry in table.classes] == [(7, 9), (8,)]
    assert table.ignored_values == (0, 3)
    assert table.ignored_colours == ((0, 0, 0),)
    wrong = "id,name,train_id\n1,a,0\n2,a,1\n3,b,x\n"
    assert problems_of(tmp_path / "a.csv", wrong) == [
        ":4: expected a train id from 0 to 65535, or 255 or -1 for ignored, found 'x'",
        f":3: 'a' has another train id at {tmp_path / 'a.csv'}:2",
    ]


def test_classes_may_share_a_colour_if_both_have_values(tmp_path: Path) -> None:
    text = "id,name,train_id,color\n17,pole,0,#999999\n18,polegroup,255,#999999\n"
    table = table_of(tmp_path / "a.csv", text)
    assert (table.classes[0].colour, table.classes[0].colours, table.ignored_colours) == ((153, 153, 153), (), ())
    assert len(problems_of(tmp_path / "b.csv", "id,name,color\n17,pole,#999999\n18,polegroup,#999999\n")) == 1


def test_the_config_of_mapillary_is_a_class_table(tmp_path: Path) -> None:
    labels = [
        {"name": "animal--bird", "readable": "Bird", "color": [165, 42, 42], "instances": True, "evaluate": True},
        {"name": "void--unlabeled", "readable": "Unlabeled", "color": [0, 0, 0], "instances": False, "evaluate": False},
    ]
    table = table_of(tmp_path / "config.json", json.dumps({"version": 1.1, "labels": labels, "mapping": "public"}))
    assert [(entry.name, entry.values, entry.colours) for entry in table.classes] == [
        ("animal--bird", (0,), ((165, 42, 42),))
    ]
    assert (table.ignored_values, table.ignored_colours) == ((1,), ((0, 0, 0),))


def test_a_toml_table_with_everything(tmp_path: Path) -> None:
    text = """
        ignore = ["void", 255, "0-2", [1, 2, 3, 0]]
        [[class]]
        name = "road"
        colour = "#804080"
        values = [7, "8-10"]
        colours = ["#804080", "250,170,160", "#00000080"]
        [[class]]
        name = "void"
        values = [11]
    """
    table = table_of(tmp_path / "a.toml", text)
    assert table.names == ("road",)
    assert table.classes[0].values == (7, 8, 9, 10)
    assert table.classes[0].colours == ((128, 64, 128), (250, 170, 160), (0, 0, 0, 128))
    assert (table.ignored_values, table.ignored_colours) == ((11, 255, 0, 1, 2), ((1, 2, 3, 0),))


def test_every_problem_of_a_toml_table_names_its_key(tmp_path: Path) -> None:
    text = """
        ignored = [3]
        [[class]]
        name = "a"
        color = "#804080"
        values = [7, "x", 70000, true]
        [[class]]
        colour = [1, 2]
        colours = "#010203"
        [[class]]
        name = "b"
        values = ["6-8"]
    """
    assert problems_of(tmp_path / "a.toml", text) == [
        ": ignored: is not known; did you mean ignore?",
        ": class.0.color: is not known; did you mean colour?",
        ": class.0.values.1: expected a value from 0 to 65535, such as 7 or '8-10', found 'x'",
        ": class.0.values.2: expected a value from 0 to 65535, such as 7 or '8-10', found the number 70000",
        ": class.0.values.3: expected a value from 0 to 65535, such as 7 or '8-10', found true",
        ": class.1.name: expected a name",
        ": class.1.colours: expected a list, found '#010203'",
        ": class.1.colour: expected a colour such as '#00ff80' or '0 255 128', found the list [1, 2]",
        ": class.2: value 7 is both 'a' and 'b'",
    ]


SAME_MISTAKE: dict[str, dict[str, str | None]] = {
    "name": {
        ".csv": "name,colour\n,#000000\n",
        ".json": '[{"id": 7, "name": "", "color": "#000000"}]',
        ".toml": "[[class]]\nname = ''\nvalues = [7]",
        ".txt": None,
    },
    "value": {
        ".csv": "value,name\n70000,a\n",
        ".json": '[{"id": "70000", "name": "a"}]',
        ".toml": "[[class]]\nname = 'a'\nvalues = ['70000']",
        ".txt": "70000: a",
    },
    "colour": {
        ".csv": 'name,colour\na,"1,2,300"\n',
        ".json": '{"labels": [{"name": "a", "color": "1,2,300"}]}',
        ".toml": "[[class]]\nname = 'a'\ncolour = '1,2,300'",
        ".txt": "a:1,2,300::",
    },
    "train id": {
        ".csv": "value,name,train_id\n7,a,x\n",
        ".json": '[{"id": 7, "name": "a", "trainId": "x"}]',
        ".toml": None,
        ".txt": None,
    },
}


@pytest.mark.parametrize("mistake", SAME_MISTAKE)
def test_the_same_mistake_gets_the_same_words_in_every_format(tmp_path: Path, mistake: str) -> None:
    found = {
        problem.partition(": expected ")[2]
        for suffix, text in SAME_MISTAKE[mistake].items()
        if text is not None
        for problem in problems_of(tmp_path / f"a{suffix}", text)
    }
    assert len(found) == 1, found
    assert mistake in found.pop()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.toml", "a = ", "is not valid TOML"),
        ("a.toml", "", r"expected \[\[class\]\] tables"),
        ("a.toml", "[class]\nname = 'a'", r"expected \[\[class\]\] tables"),
        ("a.toml", "ignore = [0]\n[[class]]\nname = 'a'\nvalues = [0]", "ignore: leaves no class"),
        ("a.toml", "a = " + "[" * 100_000, "is not valid TOML"),
        ("a.toml", "[[class]]\nname = 'a'\nvalues = [" + '"0-65535",' * 50_000 + "]", "the same values too often"),
        ("a.csv", "value,name\n" + "0-65535,a\n" * 50_000, "the same values too often"),
        ("a.json", '{"a": [' + '"0-65535",' * 50_000 + "1]}", "the same values too often"),
        (
            "a.toml",
            "ignore = [" + '"0-65535",' * 9 + "]\n[[class]]\nname = 'a'\ncolour = '#000000'",
            "the same values too often",
        ),
        ("a.json", "{", "is not valid JSON"),
        ("a.json", "[" * 200_000, "is not valid JSON"),
        ("a.json", '{"sky": 1, "sky": 2}', "'sky' occurs twice"),
        ("a.json", "{}", "is not a class table"),
        ("a.json", "3", "is not a class table"),
        ("a.json", '{"sky": "blue"}', "a.json: sky: expected a colour"),
        ("a.json", '{"0": "sky", "1": 5}', "a.json: 1: expected a name, found the number 5"),
        ("a.json", '[{"id": "x", "name": "a"}, 3]', "a.json: 1: expected an object"),
        ("a.json", '[{"id": 1, "name": "a"}, {"id": 1, "name": "b"}]', "1: value 1 is both 'a' and 'b'"),
        ("labelmap.txt", "a:1,2,3::\nb:1,2,300::\n", "labelmap.txt:2: expected a colour"),
        ("t.csv", "", "is empty"),
        *(("t.csv", text, "all cells of the class table are empty") for text in (",", ",,\n , \n", '""')),
        ("t.csv", "name,shape\na,round\n", "cannot tell the columns"),
        ("t.csv", "name,r,g,b\na,256,0,0\n", "t.csv:2: expected a colour"),
        ("t.csv", "name,r,g,b\n,1,2,3\n", "t.csv:2: expected a name"),
        ("t.csv", "name,r,g,b\na,1,2,3\nb,1,2,3\n", r"colour \(1, 2, 3\) is both 'a' and 'b'"),
        ("t.csv", "value,name\nx,a\n", "expected a value from 0 to 65535, such as 7 or '8-10', found 'x'"),
        ("t.csv", "name,r,g,b\n", "expected 1 to"),
        ("t.csv", 'name,r,g,b,note\na,1,2,3,"oops\nb,4,5,6,x\n', "cannot be read"),
        ("t.csv", "name,r,g,b\na,²,0,0\n", "expected a colour"),
        ("t.csv", "value,name\n²,a\n", "expected a value"),
        ("t.csv", "value,name\n" + "9" * 5000 + ",a\n", "expected a value"),
        ("t.csv", "name,r,g,b\n" + "a" * 200_000 + ",1,2,3\n", "cannot be read"),
    ],
)
def test_broken_tables_are_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(PackError, match=message):
        read_table(path)


@pytest.mark.parametrize("name", ["a.csv", "a.toml", "a.json"])
def test_a_huge_class_table_is_refused_before_it_is_read(tmp_path: Path, name: str) -> None:
    with (tmp_path / name).open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InputError, match="larger than 16 MiB"):
        read_table(tmp_path / name)


@pytest.mark.parametrize("text", ["a{}b", "7 a{}b", "a{}1 2 3 x", "a{}1 2 3"])
def test_a_line_of_white_space_is_parsed_fast(tmp_path: Path, text: str) -> None:
    """A search that tried each space as a beginning would take hours."""
    (tmp_path / "classes.txt").write_text(text.format(" " * 4_000_000))
    with ends_in_time(), suppress(InputError):
        assert read_table(tmp_path / "classes.txt")


def test_transparent_colours_are_packed_and_are_in_the_manifest(tmp_path: Path) -> None:
    raw, colours = tmp_path / "raw", [(255, 0, 0, 255), (255, 0, 0, 128), (0, 0, 0, 0), (9, 9, 9, 0)]
    write_png(raw / "images" / "a.png", np.zeros((2, 2, 3), np.uint8))
    (raw / "labels").mkdir()
    (raw / "labels" / "a.png").write_bytes(rgba(np.array(colours, np.uint8).reshape(2, 2, 4)))
    (tmp_path / "c.toml").write_text(
        "ignore = ['#09090900']\n[[class]]\nname = 'solid'\ncolours = ['#ff0000ff']\n"
        "[[class]]\nname = 'glass'\ncolours = [[255, 0, 0, 128], '#00000000']\n"
    )
    dataset = open_dataset(pack(raw, tmp_path / "out", "--classes", tmp_path / "c.toml"), label="index")
    assert dataset[0][1].tolist() == [[0, 1], [1, 255]]
    assert dataset.classes.classes[0].colours == ((255, 0, 0),)
    assert dataset.classes.classes[1].colours == ((255, 0, 0, 128), (0, 0, 0, 0))
    assert dataset.classes.ignored_colours == ((9, 9, 9, 0),)


@pytest.mark.parametrize("text", ["#ff0000ff", "#FF0000", "#ff00", "red"])
def test_a_manifest_has_one_spelling_per_colour(text: str) -> None:
    problems: list[JsonProblem] = []
    document = {"classes": [{"name": "a", "colour": None, "values": [], "colours": [text]}]}
    ClassTable.from_json(Entry({**document, "ignored_values": [], "ignored_colours": []}, "", problems))
    assert [problem.where for problem in problems] == ["classes.0.colours"]


def test_of_several_name_columns_the_plainest_wins(tmp_path: Path) -> None:
    (tmp_path / "classes.csv").write_text("label,name,id,value\n7,road,1,10\n8,car,2,20\n")
    table = read_table(tmp_path / "classes.csv")
    assert [(entry.name, entry.values) for entry in table.classes] == [("road", (10,)), ("car", (20,))]
    (tmp_path / "classes.json").write_text('[{"label": "7", "name": "road", "id": 1}, {"name": "car", "id": 2}]')
    assert read_table(tmp_path / "classes.json").names == ("road", "car")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("65535", "--classes 65535: 65535 classes; a pack can have 1 to 65534"),
        ("0-65535", "65536 classes; a pack can have 1 to 65534"),
        ("0", "0 classes; a pack can have"),
        ("3,0-7", "lists a value twice"),
        ("9-5", "expected a number of classes, or values from 0 to 65535"),
    ],
)
def test_a_number_or_list_of_classes_that_cannot_be_says_why(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_class_table(tmp_path, text)


def test_classes_that_the_manifest_cannot_hold_are_refused_before_anything_is_packed(tmp_path: Path) -> None:
    raw = make_raw(tmp_path / "raw", {"train": 1}).path
    table = tmp_path / "long_names.json"
    names = [f"{number:03d}{'x' * 9_000}" for number in range(1000)]
    table.write_text(json.dumps([{"name": name, "values": [value]} for value, name in enumerate(names)]))
    with mock.patch("packer.building.run_build.build", side_effect=AssertionError("packed")):
        done = run("build", "--classes", table, "--labels", "index", raw, tmp_path / "out")
    assert done.exit_code == 2
    assert "1000 classes would need up to 17 MiB in the manifest, which may have 16" in done.stderr
    assert not (tmp_path / "out" / "shards").exists()


def test_a_build_without_classes_names_the_data_yaml_of_ultralytics(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    for split in ("train", "val"):
        write_png(raw / "images" / split / "a.png", np.zeros((4, 4, 3), np.uint8))
        write_png(raw / "masks" / split / "a.png", np.array([[0, 1, 2, 255]] * 4, np.uint8))
    (raw / "data.yaml").write_text("train: images/train\nval: images/val\nnames: [road, car, sky]\n")
    proposed = ("--classes", raw / "data.yaml", "--ignore", "255")
    assert f"perhaps {' '.join(map(str, proposed))}" in run("build", raw, tmp_path / "out").stderr
    dataset = open_dataset(pack(raw, tmp_path / "out", *proposed), "val", label="index")
    assert dataset.classes.names == ("road", "car", "sky")
    assert dataset[0][1][0].tolist() == [0, 1, 2, 255]
