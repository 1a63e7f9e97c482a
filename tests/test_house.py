"""The house: rooms import only rooms on lower floors, as the table in docs/architecture.md says."""

from __future__ import annotations

import ast
import re

from checks.house import PACKAGES, arrows, circles, module_of, sources
from conftest import REPO

ROWS = re.compile(r"^\| (\d+) \| ([^|]+) \|", re.MULTILINE)
MOST_ARROWS = 110
TREES = {module_of(path): tree for path, tree in sources()}
GRAPH = arrows(TREES)
DRAWN = {room: others for room, others in GRAPH.items() if not room.endswith("__init__")}
"""Without the two doors: an `__init__` names what the rooms offer, and imports it when it is used."""


def floors() -> dict[str, int]:
    """The floor of each room in the table."""
    text = (REPO / "docs" / "architecture.md").read_text().replace("\\_", "_")
    return {room.strip(): int(floor) for floor, rooms in ROWS.findall(text) for room in rooms.split(",")}


def test_the_table_has_every_room_once() -> None:
    assert sorted(floors()) == sorted(GRAPH)


def test_rooms_import_only_rooms_on_lower_floors() -> None:
    floor = floors()
    upward = [f"{room} -> {other}" for room, others in GRAPH.items() for other in others if floor[other] >= floor[room]]
    assert not upward
    assert not circles(GRAPH)


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]


def test_there_are_few_arrows() -> None:
    within_packer = [(room, other) for room, others in DRAWN.items() for other in others if other.startswith("packer")]
    assert len(within_packer) <= MOST_ARROWS


def test_readers_do_not_know_the_packer() -> None:
    assert not [
        (room, other)
        for room, others in GRAPH.items()
        for other in others
        if room.startswith("readers") and other.startswith("packer")
    ]


def test_only_the_command_line_knows_click() -> None:
    for module, tree in TREES.items():
        if not module.startswith("packer.cli"):
            assert "click" not in {name.split(".")[0] for name in outside_imports(tree)}, module


def test_private_names_stay_in_their_file() -> None:
    borrowed = [
        f"{module}: {node.module}.{alias.name}"
        for module, tree in TREES.items()
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
