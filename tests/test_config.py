"""Configurations: what counts more than what, what is refused, and that what is printed does the same again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import NAMES, RawFolder, errors_of, good, pack, run, write_table
from hypothesis import given
from hypothesis import strategies as st

from packer.classes.documents import parse_toml
from packer.config.config import to_toml
from packer.config.options import OPTIONS
from readers.contract.classes import ClassTable, SegClass
from readers.contract.manifest import Manifest

pytestmark = pytest.mark.usefixtures("in_process")


def effective(*arguments: object) -> dict[str, object]:
    """Return the configuration that --print-config prints."""
    done = good("build", *arguments, "--print-config")
    return parse_toml(Path("printed"), done.stdout)


def config(path: Path, text: str) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / "packer.toml").write_text(text)
    return path / "packer.toml"


def problems_of(path: Path, text: str) -> list[str]:
    errors = errors_of(2, "build", "--config", config(path, text), "--print-config")
    return [line.strip().removeprefix(f"{path}/packer.toml: ") for line in errors.splitlines()[1:]]


def test_the_command_line_counts_more_than_the_config_that_than_the_preset_that_than_the_default(
    tmp_path: Path,
) -> None:
    printed = effective("--preset", "suim")
    assert (printed["unknown"], printed["interpolation"], printed["label-codec"]) == ("nearest", "area", "colour")
    path = config(tmp_path, 'unknown = "ignore"\ninterpolation = "cubic"\nsize = "8x9"\n')
    printed = effective("--preset", "suim", "--config", path)
    assert (printed["unknown"], printed["interpolation"], printed["size"]) == ("ignore", "cubic", "8x9")
    printed = effective("--config", path, "--unknown", "error", "--preset", "suim", "--interpolation=linear")
    assert (printed["unknown"], printed["interpolation"], printed["size"]) == ("error", "linear", "8x9")
    assert len(printed["class"]) == 8  # type: ignore[arg-type]


def test_a_config_may_name_a_preset_which_the_command_line_may_replace(tmp_path: Path) -> None:
    path = config(tmp_path, 'preset = "voc"\nsize = "8x9"\n')
    assert len(effective("--config", path)["class"]) == 21  # type: ignore[arg-type]
    assert len(effective("--config", path, "--preset", "suim")["class"]) == 8  # type: ignore[arg-type]


def test_classes_of_the_command_line_replace_those_of_the_config(tmp_path: Path) -> None:
    path = config(tmp_path, "[[class]]\nname = 'a'\nvalues = [0]\n")
    printed = effective("--config", path, "--classes", 4)
    assert printed["classes"] == 4
    assert "class" not in printed


def test_a_table_of_pairs_drives_out_templates_that_count_less(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("image,label\na.png,b.png\n")
    printed = effective("--preset", "cityscapes", "--pairs", tmp_path / "pairs.csv")
    assert not {"image", "label"} & printed.keys()
    assert printed["label-codec"] == "index"
    path = config(tmp_path, 'pairs = "pairs.csv"\npreset = "cityscapes"\n')
    assert "image" not in effective("--config", path)
    assert "pairs" not in effective("--config", path, "--image", "a/{key}", "--label", "b/{key}")
    assert effective("--config", path, "--image", "a/{key}", "--label", "b/{key}")["label"] == "b/{key}"


def test_a_list_of_the_command_line_replaces_that_of_the_config(tmp_path: Path) -> None:
    path = config(tmp_path, "ignore = [255, '#010203']\n")
    assert effective("--config", path)["ignore"] == [255, "#010203"]
    assert effective("--config", path, "--ignore", "0-6", "--ignore", "void")["ignore"] == ["0-6", "void"]


def test_every_option_of_build_is_a_key(tmp_path: Path) -> None:
    samples = {"classes": "4", "image": "a/{key}", "label": "b/{key}"}
    for key, option in OPTIONS.items():
        value = "true" if option.is_flag else "[1]" if option.several else json.dumps(samples.get(key, ""))
        problems = problems_of(tmp_path, f"{key} = {value}\nwrong = 1\n")
        assert not any("did you mean" in line and line.startswith(f"{key}:") for line in problems)
        assert any(line.startswith("wrong: is not known") for line in problems)
    assert {
        "raw",
        "out",
        "size",
        "image-dtype",
        "ignore",
        "shard-size",
        "workers",
        "json",
    } <= OPTIONS.keys()
    assert not {"config", "preset", "print-config", "help"} & OPTIONS.keys()


def test_every_problem_of_a_config_at_once(tmp_path: Path) -> None:
    text = """
        label_codec = "index"
        sise = "8x9"
        quiet = "yes"
        ignore = 255
        encode = "label=zstd"
        overlap = 1.5
        classes = "4"
        [[class]]
        name = "a"
        valeus = [1]
    """
    assert problems_of(tmp_path, text) == [
        "label_codec: is not known; did you mean label-codec?",
        "sise: is not known; did you mean size?",
        "quiet: expected true or false, found 'yes'",
        "ignore: expected a list of texts and whole numbers, found the number 255",
        "encode: expected a list of texts and whole numbers, such as ['label=zstd'], found 'label=zstd'",
        "overlap: expected a text or a whole number, found the number 1.5",
        "classes: cannot be combined with [[class]] tables; keep one of them",
        "class.0.valeus: is not known; did you mean values?",
        "class.0: has neither values nor colours, so no label can contain this class",
    ]


def test_values_that_no_option_takes_are_named_with_their_key(tmp_path: Path) -> None:
    assert problems_of(tmp_path, 'size = "8"\nfit = "sideways"\nworkers = 0\nthreshold = "x"\n') == [
        "size: '8': expected height x width, such as 512x1024, or native; did you mean 8x8?",
        "fit: 'sideways': expected stretch, letterbox, crop-or-pad, shorter-side, tile or native",
        "workers: '0': expected a whole number of at least 1",
        "threshold: 'x': expected a whole number from 1 to 65535",
    ]


@pytest.mark.parametrize(("text", "message"), [("size = ", "is not valid TOML"), ("\x00", "is not valid TOML")])
def test_text_that_is_not_valid_toml_is_refused(tmp_path: Path, text: str, message: str) -> None:
    assert message in errors_of(2, "build", "--config", config(tmp_path, text), "raw", "out")


def test_a_config_that_is_not_there_or_too_large_is_refused(tmp_path: Path) -> None:
    stderr = run("build", "--config", tmp_path / "none.toml", "raw", "out").stderr
    assert "none.toml: cannot be read (No such file or directory)\n" in stderr
    (tmp_path / "latin.toml").write_bytes(b'size = "caf\xe9"')
    assert "latin.toml: is not UTF-8 text (" in run("build", "--config", tmp_path / "latin.toml", "raw", "out").stderr
    with (tmp_path / "large.toml").open("wb") as file:
        file.truncate(1 << 40)
    assert "larger than 16 MiB" in run("build", "--config", tmp_path / "large.toml", "raw", "out").stderr


def test_paths_in_a_config_are_relative_to_it(tmp_path: Path, raw_folder: RawFolder) -> None:
    path = config(tmp_path / "configs", 'classes = "../tables/t.csv"\n')
    (tmp_path / "tables").mkdir()
    write_table(tmp_path / "tables" / "t.csv")
    assert Path(str(effective("--config", path)["classes"])).samefile(tmp_path / "tables" / "t.csv")
    out = pack(raw_folder.path, tmp_path / "out", "--config", path)
    assert Manifest.load(out).classes.names == NAMES
    assert effective("--config", config(tmp_path / "configs", "classes = 12\n"))["classes"] == 12


def test_a_config_can_set_pairs_and_random_splits(tmp_path: Path, raw_folder: RawFolder) -> None:
    lines = [f"{split}/images/{key}.png,{split}/masks/{key}.png,{split}-{key}" for split, key in raw_folder.images]
    text = 'pairs = "pairs.csv"\nsplit = "train=50,val=50"\nclasses = "t.csv"\n'
    path = config(tmp_path / "configs", text)
    (path.parent / "pairs.csv").write_text("\n".join(["image,label,key", *lines]))
    write_table(path.parent / "t.csv")
    manifest = Manifest.load(pack(raw_folder.path, tmp_path / "out", "--config", path))
    assert [split.name for split in manifest.splits] == ["train", "val"]
    assert manifest.rows == len(raw_folder.images)
    assert effective("--config", path)["split"] == "train=50,val=50"


def test_what_is_printed_packs_the_same_shards(tmp_path: Path, raw_folder: RawFolder) -> None:
    options = ("--size", "20x30", "--fit", "letterbox", "--labels", "index", "--ignore", "sky", "--shard-size", "30KB")
    table = ("--classes", raw_folder.path / "class_dict.csv", "--max-bad", "0.1%", "--on-bad", "skip")
    printed = run("build", *options, *table, "--image-range", "0,255", "--print-config").stdout
    path = config(tmp_path / "elsewhere", printed)
    assert run("build", "--config", path, "--print-config").stdout == printed
    plain = ("--size", "20x30", "--fit", "letterbox", "--labels", "index", "--ignore", "sky", "--shard-size", "30KB")
    first = pack(raw_folder.path, tmp_path / "first", *plain)
    config(tmp_path / "elsewhere", run("build", *plain, "--print-config").stdout)
    again = pack(raw_folder.path, tmp_path / "again", "--config", path)
    assert Manifest.load(first).table == Manifest.load(again).table


def test_classes_in_a_config_are_packed(tmp_path: Path, raw_folder: RawFolder) -> None:
    text = """
        ignore = ["#dc143c"]
        [[class]]
        name = "moving"
        colour = "#ff0000"
        colours = ["#00008e", "#dc143c"]
        [[class]]
        name = "ground"
        colours = ["#804080", [70, 130, 180]]
    """
    out = pack(raw_folder.path, tmp_path / "out", "--config", config(tmp_path, text))
    classes = Manifest.load(out).classes
    assert classes.names == ("moving", "ground")
    assert classes.classes[0] == SegClass("moving", (255, 0, 0), (), ((0, 0, 142),))
    assert classes.ignored_colours == ((220, 20, 60),)


def test_help_and_usage_errors_are_as_without_a_config(tmp_path: Path) -> None:
    assert run("build", "--config", tmp_path / "none.toml", "--help").exit_code == 0
    assert "Missing argument 'RAW'" in errors_of(2, "build", "--preset", "voc")
    assert run("build", "--nonsense").exit_code == 2


channels = st.integers(0, 255)
drawn = st.tuples(channels, channels, channels)
colours = st.one_of(drawn, st.tuples(channels, channels, channels, st.integers(0, 254)))
names = st.text(min_size=1).filter(str.strip)


@given(st.dictionaries(names, st.tuples(drawn, st.integers(0, 65_535), colours), min_size=1, max_size=4))
def test_any_class_is_printed_so_that_it_is_read_again(classes: dict[str, tuple[tuple[int, ...], int, object]]) -> None:
    table = ClassTable(
        tuple(SegClass(name, colour, (value,), (source,)) for name, (colour, value, source) in classes.items())  # type: ignore[arg-type]
    )
    document = parse_toml(Path("printed"), to_toml({"classes": table, "image": "\x7f\"'\\\n{key}", "quiet": True}))
    assert document["image"] == "\x7f\"'\\\n{key}"
    assert document["quiet"] is True
    assert [entry["name"] for entry in document["class"]] == list(classes)
    assert [entry["values"] for entry in document["class"]] == [[value] for _, value, _ in classes.values()]
    assert [bytes.fromhex(entry["colours"][0][1:]) for entry in document["class"]] == [
        bytes(source)  # type: ignore[call-overload]
        for _, _, source in classes.values()
    ]
