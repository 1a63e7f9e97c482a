"""The house: rooms import only rooms on lower floors, as the table in docs/architecture.md says."""

from __future__ import annotations

import ast
import re

import pytest
from checks.house import PACKAGES, arrows, circles, file_arrows, module_of, sources, twins
from conftest import REPO

ROWS = re.compile(r"^\| (\d+) \| ([^|]+) \|", re.MULTILINE)
MOST_ARROWS = 117
Graph = dict[str, set[str]]


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """The syntax of every module. Parsing takes 2 s, and every process of pytest imports every file of tests."""
    return {module_of(path): tree for path, tree in sources()}


@pytest.fixture(scope="module")
def graph(trees: dict[str, ast.Module]) -> Graph:
    return arrows(trees)


def floors() -> dict[str, int]:
    """The floor of each room in the table."""
    text = (REPO / "docs" / "architecture.md").read_text().replace("\\_", "_")
    return {room.strip(): int(floor) for floor, rooms in ROWS.findall(text) for room in rooms.split(",")}


def test_the_table_has_every_room_once(graph: Graph) -> None:
    assert sorted(floors()) == sorted(graph)


def test_rooms_import_only_rooms_on_lower_floors(graph: Graph) -> None:
    floor = floors()
    upward = [f"{room} -> {other}" for room, others in graph.items() for other in others if floor[other] >= floor[room]]
    assert not upward
    assert not circles(graph)


def test_no_file_imports_itself_through_others(trees: dict[str, ast.Module]) -> None:
    assert not circles(file_arrows(trees))


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == ["b", "c"]
    imports = "from __future__ import annotations\n{}from packer.b import B\n"
    for words, files in (("", ["packer.a", "packer.b"]), ("if TYPE_CHECKING:\n    ", [])):
        trees = {"packer.a": ast.parse(imports.format(words)), "packer.b": ast.parse("def f(): import packer.a")}
        assert circles(file_arrows(trees)) == files


def test_no_two_classes_have_one_name(trees: dict[str, ast.Module]) -> None:
    assert not twins(trees)


def test_twins_are_found() -> None:
    found = {"packer.a": ast.parse("class Line: ..."), "readers.b": ast.parse("Line: TypeAlias = tuple[int, int]")}
    assert twins(found) == {"Line": ["packer.a", "readers.b"]}


def test_there_are_few_arrows(graph: Graph) -> None:
    """Without the two doors: an `__init__` names what the rooms offer, and imports it when it is used."""
    drawn = {room: others for room, others in graph.items() if not room.endswith("__init__")}
    within_packer = [(room, other) for room, others in drawn.items() for other in others if other.startswith("packer")]
    assert len(within_packer) <= MOST_ARROWS


def test_readers_do_not_know_the_packer(graph: Graph) -> None:
    assert not [
        (room, other)
        for room, others in graph.items()
        for other in others
        if room.startswith("readers") and other.startswith("packer")
    ]


def test_only_the_command_line_knows_click(trees: dict[str, ast.Module]) -> None:
    for module, tree in trees.items():
        if not module.startswith("packer.cli"):
            assert "click" not in {name.split(".")[0] for name in outside_imports(tree)}, module


def test_private_names_stay_in_their_file(trees: dict[str, ast.Module]) -> None:
    borrowed = [
        f"{module}: {node.module}.{alias.name}"
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.startswith("__")
    ]
    assert not borrowed


def outside_imports(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            names.add(node.module or "")
    return names
