"""Guards of the house: public names, what imports cost, which way the arrows point, and that the docs tell all."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from conftest import REPO

import packer
import readers
from packer.cli import main
from readers.contract.manifest import STORAGES

DOCS = "\n".join(path.read_text() for path in [REPO / "README.md", *sorted((REPO / "docs").glob("*.md"))])


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_public_names_are_listed_sorted_and_there() -> None:
    assert sorted(readers.__all__) == readers.__all__
    assert all(getattr(readers, name) is not None for name in readers.__all__)
    assert set(dir(readers)) == set(readers.__all__)
    with pytest.raises(AttributeError, match="no attribute 'ZipSegDataset'"):
        readers.ZipSegDataset  # noqa: B018


@pytest.mark.parametrize("statement", ["import readers", "import readers.contract.manifest, readers.pack"])
def test_importing_readers_is_light(statement: str) -> None:
    heavy = {"cv2", "click", "torch", "h5py", "pyarrow", "lmdb", "tqdm", "packer"}
    assert not heavy & loaded_by(statement)


def test_an_order_needs_no_torch() -> None:
    assert "torch" not in loaded_by("from readers import Order, Window")


def test_naming_a_data_set_brings_torch_but_no_format_library() -> None:
    loaded = loaded_by("from readers import LmdbSegDataset")
    assert "torch" in loaded
    assert not {"cv2", "click", "h5py", "pyarrow", "lmdb", "packer"} & loaded


def test_the_packer_needs_no_torch() -> None:
    assert "torch" not in loaded_by("import packer.cli")


LAYERS = {
    "readers/contract": ("readers.contract",),
    "readers/formats": ("readers.contract", "readers.formats"),
    "readers/digests.py": ("readers.contract", "readers.formats"),
    "readers/pack.py": ("readers.contract", "readers.digests", "readers.formats"),
    "readers/staged.py": ("readers.contract", "readers.pack"),
    "readers/collate.py": ("readers.contract",),
    "readers/chart.py": (),
    "readers/crop.py": ("readers.contract",),
    "readers/machine.py": (),
    "readers/page.py": (),
    "readers/permutation.py": (),
    "readers/order.py": ("readers.contract", "readers.permutation"),
    "readers/slots.py": (),
    "readers/cut.py": ("readers.contract", "readers.crop", "readers.permutation"),
    "readers/reader.py": (
        "readers.collate",
        "readers.contract",
        "readers.cut",
        "readers.formats",
        "readers.pack",
        "readers.slots",
    ),
    "readers/device.py": ("readers.contract",),
    "readers/statistics.py": ("readers.contract",),
    "readers/loader.py": (
        "readers.contract",
        "readers.cut",
        "readers.device",
        "readers.order",
        "readers.permutation",
        "readers.reader",
        "readers.slots",
    ),
    "readers/dataset.py": (
        "readers.collate",
        "readers.contract",
        "readers.crop",
        "readers.cut",
        "readers.loader",
        "readers.order",
        "readers.pack",
        "readers.reader",
        "readers.slots",
        "readers.staged",
        "readers.statistics",
    ),
    "readers/diagnosis": (
        "readers.chart",
        "readers.contract",
        "readers.dataset",
        "readers.device",
        "readers.diagnosis",
        "readers.loader",
        "readers.machine",
        "readers.page",
    ),
    "readers/shared.py": ("readers.contract", "readers.dataset"),
    "packer/errors.py": (),
    "packer/template.py": ("packer.errors",),
    "packer/tuning.py": ("readers.machine",),
    "packer/cached.py": ("readers.pack",),
    "packer/copying.py": ("readers.pack", "readers.slots"),
    "packer/direct.py": (),
    "packer/formats": ("packer.direct", "packer.formats", "readers.contract", "readers.formats"),
    "packer/pictures": ("packer.pictures", "packer.errors", "readers.contract"),
    "packer/geometry.py": ("packer.lookup", "readers.contract"),
    "packer/engines": (
        "packer.blas",
        "packer.engines",
        "packer.errors",
        "packer.glance",
        "packer.publish",
        "packer.scratch",
        "packer.shard",
        "packer.spec",
        "packer.stamps",
        "readers.contract",
    ),
}


def imports(path: Path) -> set[str]:
    """The modules of this project that a file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
    return {name for name in found if name.split(".")[0] in ("packer", "readers")}


def test_the_arrows_point_one_way() -> None:
    for place, allowed in LAYERS.items():
        files = [REPO / place] if place.endswith(".py") else sorted((REPO / place).rglob("*.py"))
        assert files
        for path in files:
            for name in imports(path):
                assert name in allowed or name.startswith(tuple(f"{one}." for one in allowed)), f"{path}: {name}"
    for path in (REPO / "readers").rglob("*.py"):
        assert not any(name.startswith("packer") for name in imports(path)), f"{path}: readers must not know packer"
    for path in (REPO / "packer").rglob("*.py"):
        if "cli" not in path.parts and path.name != "__main__.py":
            assert not any(name.startswith("packer.cli") for name in imports(path)), f"{path}: only cli knows cli"
            assert "import click" not in path.read_text(), f"{path}: only cli knows click"


def test_no_file_names_a_format_but_its_own() -> None:
    for path in [*(REPO / "readers").rglob("*.py"), *(REPO / "packer").rglob("*.py")]:
        if path.parent.name != "formats":
            text = path.read_text()
            assert not re.search(r"^\s*(import|from) (lmdb|h5py|pyarrow)", text, re.MULTILINE), path


def test_every_format_has_both_sides() -> None:
    for side in (packer, readers):
        folder = Path(str(side.__file__)).parent / "formats"
        assert {path.stem for path in folder.glob("*.py")} - {"__init__", "shard", "column", "native", "advice"} == set(
            STORAGES
        )


def commands() -> list[tuple[str, click.Command]]:
    return sorted(main.commands.items())


def test_every_command_and_option_is_in_the_docs() -> None:
    for name, command in commands():
        assert f"packer {name}" in DOCS, name
        for option in command.params:
            if isinstance(option, click.Option):
                told = any(re.search(rf"[` ]{flag}(?![\w-])", DOCS) for flag in option.opts)
                assert told, f"{name} {option.opts}"
    for storage in STORAGES:
        assert f"--format {storage}" in DOCS


def test_every_command_and_option_explains_itself_with_an_example() -> None:
    for name, command in commands():
        assert f"packer {name} " in (command.help or ""), f"{name}: no example"
        assert command.short_help
        for option in command.params:
            assert not isinstance(option, click.Option) or option.help, f"{name}: {option.name}"


def test_every_module_says_what_it_is_in_its_first_line() -> None:
    for folder in ("packer", "readers", "tools", "tests"):
        for path in (REPO / folder).rglob("*.py"):
            assert path.read_text().startswith('"""'), path


def test_nothing_is_evaluated_or_unpickled() -> None:
    for path in [*(REPO / "readers").rglob("*.py"), *(REPO / "packer").rglob("*.py")]:
        assert not re.search(r"\b(pickle|eval|exec|allow_pickle=True)\b", path.read_text()), path


def test_the_links_in_the_docs_lead_somewhere() -> None:
    for path in [REPO / "README.md", REPO / "CONTRIBUTING.md", *(REPO / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)", path.read_text()):
            if "://" not in target:
                assert (path.parent / target).exists(), f"{path}: {target}"


def test_a_decoder_that_does_not_load_is_a_word_of_advice(tmp_path: Path) -> None:
    (tmp_path / "cv2.py").write_text("raise ImportError('libGL.so.1: cannot open shared object file')")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "packer", "--help"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install opencv-python-headless" in done.stderr
    assert "Traceback" not in done.stderr
