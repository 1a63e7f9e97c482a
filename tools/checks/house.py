"""The structure of the code in numbers: rooms, arrows between them, circles, the longest function, docstrings.

    tools/run checks.house

A room is a folder of `packer` or `readers`, or a module that lies in one of these two itself.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from program import REPO

PACKAGES = ("packer", "readers")
QUESTION_WORDS = re.compile(r"(What|How|Where|Whether|Which|Of|As|For|When|Why) ")


def sources() -> Iterator[tuple[Path, ast.Module]]:
    for package in PACKAGES:
        for path in sorted((REPO / package).rglob("*.py")):
            yield path.relative_to(REPO), ast.parse(path.read_text(encoding="utf-8"))


def module_of(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def room_of(module: str, folders: set[str]) -> str:
    """Return `packer/plan` for packer.plan.reuse, `packer/building` for packer.building, `readers` for readers.loader.

    The `__init__` of a package imports every room, so it is a room of its own.
    """
    if module in PACKAGES:
        return f"{module}/__init__"
    package, _, rest = module.partition(".")
    first = rest.split(".")[0]
    if f"{package}/{first}" in folders:
        return f"{package}/{first}"
    return f"packer/{first}" if package == "packer" and first else package


def imports(module: str, tree: ast.Module, modules: set[str]) -> set[str]:
    """Return the modules of ours that a module imports, inside functions, too."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {
                name if (name := f"{node.module}.{alias.name}") in modules else node.module for alias in node.names
            }
    return {name for name in found if name in modules and name != module}


def arrows(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Return the rooms that each room imports."""
    modules = set(trees)
    folders = {
        "/".join(module.split(".")[:2])
        for module in modules
        if f"{'.'.join(module.split('.')[:2])}.".count(".") == 2
        and any(other.startswith(".".join(module.split(".")[:2]) + ".") for other in modules)
    }
    found: defaultdict[str, set[str]] = defaultdict(set)
    for module, tree in trees.items():
        room = room_of(module, folders)
        found[room] |= {room_of(other, folders) for other in imports(module, tree, modules)} - {room}
    return found


def file_arrows(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Return the files that each file imports when it runs, inside functions, too, but not for its types alone."""
    modules = set(trees)
    return {module: imports(module, running(tree), modules) for module, tree in trees.items()}


def running(tree: ast.Module) -> ast.Module:
    """Return a file without what only a checker of types runs."""
    return ast.Module(
        [node for node in tree.body if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")], []
    )


def circles(graph: dict[str, set[str]]) -> list[str]:
    """Return the rooms, or files, that can be reached from themselves."""
    left = dict(graph)
    while True:  # take away what imports nothing that is left; then what nothing imports that is left
        imported = set().union(*left.values()) if left else set()
        ends = [name for name, below in left.items() if name not in imported or not below & left.keys()]
        if not ends:
            return sorted(left)
        for name in ends:
            del left[name]


def twins(trees: dict[str, ast.Module]) -> dict[str, list[str]]:
    """Return the names that several files give a class, or an alias of a type, each with its files."""
    files: defaultdict[str, list[str]] = defaultdict(list)
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                files[node.name].append(module)
            elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
                files[ast.unparse(node.target)].append(module)
    return {name: modules for name, modules in files.items() if len(modules) > 1}


def floors(graph: dict[str, set[str]]) -> dict[str, int]:
    """Return the floor of each room: one above the highest room that it imports."""
    known: dict[str, int] = {}

    def floor(room: str) -> int:
        if room not in known:
            known[room] = 1 + max((floor(below) for below in graph.get(room, ())), default=0)
        return known[room]

    for room in graph:
        floor(room)
    return known


def main() -> None:
    trees = {module_of(path): tree for path, tree in sources()}
    files = Counter(str(path.parent) for path, _ in sources())
    graph = arrows(trees)
    print("files   " + ", ".join(f"{folder} {count}" for folder, count in sorted(files.items())))
    drawn = [other for room, others in graph.items() if not room.endswith("__init__") for other in others]
    within = [other for other in drawn if other.startswith("packer")]
    print(f"rooms   {len(graph)}, arrows {len(drawn)}, of which {len(within)} lead to a room of packer")
    print(f"circles {circles(graph) or 'none'}, between files {circles(file_arrows(trees)) or 'none'}")
    print(f"twins   {twins(trees) or 'none'}")
    if not circles(graph):
        levels = floors(graph)
        for level in sorted(set(levels.values()), reverse=True):
            print(f"  {level:2} " + ", ".join(sorted(room for room, at in levels.items() if at == level)))
    longest = max(
        (node.end_lineno - node.lineno + 1, module, node.name)
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.end_lineno
    )
    print("longest function {} lines: {}.{}".format(*longest))
    docs = [
        doc
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (doc := ast.get_docstring(node))
    ]
    questions = [doc for doc in docs if QUESTION_WORDS.match(doc)]
    print(f"docstrings {len(docs)}, of which {len(questions)} begin with a question word or a preposition")
