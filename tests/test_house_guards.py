"""Light imports, complete help and docs, working links, no pickled data."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from conftest import REPO, RawFolder, pack, python

from packer.cli import main
from packer.cli.version import KERNELS
from packer.sources.containers import source_class
from packer.sources.reopen import KINDS
from readers.contract.manifest import STORAGES

GUIDE = "\n".join(path.read_text() for path in [REPO / "README.md", *sorted((REPO / "docs" / "guide").glob("*.md"))])
"""The pages written by hand, without the generated docs/cli.md."""


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(' '.join(sys.modules))"
    done = python("-c", code)
    return set(done.stdout.split())


def loaded_by_packer(*arguments: str, **variables: str) -> set[str]:
    """The modules that a command has imported at its end."""
    code = "import sys; from packer.__main__ import main; sys.argv[0] = 'packer'\ntry: main()\nexcept SystemExit: pass"
    report = "print(' '.join(sys.modules), file=sys.stderr)"
    command = [sys.executable, "-c", f"{code}\n{report}", *arguments]
    environment = {**os.environ, **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout
    return set(done.stderr.split())


LIBRARIES = {"numpy", "cv2", "torch", "h5py", "pyarrow", "lmdb", "tqdm", "tomli_w", "multiprocessing"}


EACH_ALONE = """
import os, sys, click
for arguments in sys.argv[1:]:
    if os.fork() == 0:
        sys.argv = ["packer", *arguments.split()]
        from packer.__main__ import main
        try:
            main()
        except SystemExit as end:
            print(end.code, arguments, "|", *sys.modules, file=sys.stderr, flush=True)
        os._exit(0)
    os.wait()
"""


def test_help_and_version_import_no_library() -> None:
    commands = ["--version", "--help", *(f"{name} --help" for name in main.commands)]
    done = python("-c", EACH_ALONE, *commands)
    ends = [line.split(" | ") for line in done.stderr.splitlines()]
    assert [command for command, _ in ends] == [f"0 {command}" for command in commands]
    for command, modules in ends:
        loaded = set(modules.split())
        assert not LIBRARIES & loaded, command
        if len(command.split()) == 2:
            ours = [name for name in loaded if name.startswith(("packer", "readers")) and name not in KERNELS]
            assert len(ours) <= 33, ours  # --version also looks which kernels there are


@pytest.mark.parametrize("words", ["packer b", "packer build --fo", "packer verify --"])
def test_completion_imports_no_library(words: str) -> None:
    *_, last = words.split()
    variables = {"_PACKER_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    assert not LIBRARIES & loaded_by_packer(**variables), last


def test_a_build_of_label_pictures_imports_no_format_of_annotations(raw_folder: RawFolder, tmp_path: Path) -> None:
    loaded = loaded_by_packer("build", "--workers", "1", str(raw_folder.path), str(tmp_path / "out"))
    loaded |= loaded_by("import packer.workers.worker")
    assert not {name for name in loaded if name.startswith("packer.annotations.")}
    assert not {"packer.sources.annotated.annotated", "xml.etree.ElementTree", "PIL"} & loaded


OTHER_SOURCES = {f"packer.sources.{name.rpartition('.')[0]}" for name in KINDS.values()}
NEEDED_BY_ALL = {"packer.sources.files.objects", "packer.sources.pack"}
"""The plan of any build imports these. A worker does not."""


def test_a_build_of_a_folder_imports_no_other_source_and_no_engine(raw_folder: RawFolder, tmp_path: Path) -> None:
    worker = loaded_by("import packer.workers.worker")
    parent = loaded_by_packer("build", "--workers", "1", str(raw_folder.path), str(tmp_path / "out"))
    assert not OTHER_SOURCES & worker
    assert OTHER_SOURCES & parent <= NEEDED_BY_ALL
    for modules in (worker, parent):
        assert "packer.sources.files.folder" in modules
        assert not {"readers.formats.lmdb", "pickletools", "torch", "jinja2"} & modules
        assert not [name for name in modules if name.startswith("packer.engines")]
        ours = [name for name in modules if name.startswith(("packer", "readers"))]
        assert len(ours) <= (321 if modules is parent else 203), len(ours)


@pytest.mark.parametrize(("kind", "name"), KINDS.items())
def test_each_kind_of_source_names_its_class(kind: str, name: str) -> None:
    assert source_class(name).kind == kind


def test_everything_that_a_command_imports_when_it_runs_is_imported_without_threads_and_tracebacks() -> None:
    """`with loading()` decides that. An import anywhere else in a function of the command line would miss it."""
    outside = []
    for path in (REPO / "packer/cli").glob("*.py"):
        tree = ast.parse(path.read_text())
        inside = {
            node
            for block in ast.walk(tree)
            if isinstance(block, ast.With) and "loading(" in ast.unparse(block.items[0].context_expr)
            for node in ast.walk(block)
        }
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            imports = [node for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)]
            outside += [f"{path.name}: {ast.unparse(node)}" for node in imports if node not in inside]
    assert {line.partition(":")[0] for line in outside} == {"loading.py"}


@pytest.mark.parametrize("statement", ["import readers", "import readers.contract.manifest, readers.pack"])
def test_importing_readers_is_light(statement: str) -> None:
    heavy = {"cv2", "click", "torch", "h5py", "pyarrow", "lmdb", "tqdm", "packer"}
    assert not heavy & loaded_by(statement)


def test_an_order_needs_no_torch() -> None:
    assert "torch" not in loaded_by("from readers import Order, Window")


def test_importing_a_data_set_class_loads_torch_but_no_format_library() -> None:
    loaded = loaded_by("from readers import LmdbSegDataset")
    assert "torch" in loaded
    assert not {"cv2", "click", "h5py", "pyarrow", "lmdb", "packer"} & loaded


def test_the_packer_needs_no_torch() -> None:
    assert "torch" not in loaded_by("import packer.cli")


def test_only_the_files_of_a_format_import_its_library() -> None:
    """A source imports its library when it opens a file: a build of other rows needs no such library."""
    for path in [*(REPO / "readers").rglob("*.py"), *(REPO / "packer").rglob("*.py")]:
        if path.parent.name != "formats":
            start = "^" if "sources" in path.parts else r"^\s*"
            assert not re.search(rf"{start}(import|from) (lmdb|h5py|pyarrow)", path.read_text(), re.MULTILINE), path


def test_every_format_has_both_sides() -> None:
    for folder in (REPO / "packer/shards/formats", REPO / "readers/formats"):
        names = {path.stem for path in folder.glob("*.py")}
        helpers = {
            "__init__",
            "shard",
            "column",
            "contents",
            "flat_columns",
            "row_sizes",
            "unpack",
            "jpeg_parts",
            "tiled_rows",
            "large_rows",
            "page_cache",
            "arrow_metadata",
            "flatbuffer",
        }
        helpers |= {"hdf5_metadata", "hdf5_objects", "hdf5_checksum"}
        assert names - helpers == set(STORAGES)


FORMAT_LIBRARIES = ("h5py", "pyarrow", "lmdb")


def names_of_libraries(tree: ast.Module) -> set[str]:
    """Return the libraries of formats that are imported, also by `import_module("h5py")` and the like."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
        elif isinstance(node, ast.Call):
            names |= {str(part.value) for part in node.args if isinstance(part, ast.Constant)}
    return {name.split(".")[0] for name in names} & set(FORMAT_LIBRARIES)


def test_readers_do_not_pass_files_to_the_libraries_of_formats() -> None:
    for path in (REPO / "readers").rglob("*.py"):
        assert not names_of_libraries(ast.parse(path.read_text())), path
    for text in ("import h5py.h5f", "from pyarrow import ipc", "import_module('lmdb')", "__import__('h5py')"):
        assert names_of_libraries(ast.parse(text)), text


WITHOUT_LIBRARIES = """
import os, sys
sys.modules.update(dict.fromkeys(sys.argv[1].split(",")))  # importing one of them is an ImportError
from packer.cli import main
from packer.cli.version import KERNELS
from readers import open_dataset
for out in sys.argv[2:]:
    dataset = open_dataset(out, "all", verify="digest", staged=False)
    assert len([dataset[row] for row in range(len(dataset))]) == 32
    os.mkdir(f"{out}-copy")
    for command in ("verify --deep OUT", "info OUT", "stats OUT", "stage OUT OUT-copy", "bench OUT --seconds 1"):
        try:
            main(command.replace("OUT", out).split())
        except SystemExit as done:
            assert not done.code, (command, done.code)
"""


def test_finished_packs_are_used_without_the_libraries_of_formats(raw_folder: RawFolder, tmp_path: Path) -> None:
    """No command that reads a pack gives its bytes to a library; only builds use them, for files that they make."""
    outs = [pack(raw_folder.path, tmp_path / storage, "--format", storage) for storage in STORAGES]
    argv = [sys.executable, "-c", WITHOUT_LIBRARIES, ",".join(FORMAT_LIBRARIES), *map(str, outs)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def commands() -> list[tuple[str, click.Command]]:
    return sorted(main.commands.items())


def test_every_command_and_option_is_in_the_guide() -> None:
    for name, command in commands():
        assert f"packer {name}" in GUIDE, name
        for option in command.params:
            if isinstance(option, click.Option):
                found = any(re.search(rf"[` ]{flag}(?![\w-])", GUIDE) for flag in option.opts)
                assert found, f"{name} {option.opts}"
    for storage in STORAGES:
        assert f"--format {storage}" in GUIDE


def test_every_command_has_an_example_and_every_option_a_help_text() -> None:
    for name, command in commands():
        assert f"packer {name} " in (command.help or ""), f"{name}: no example"
        assert command.short_help
        for option in command.params:
            assert not isinstance(option, click.Option) or option.help, f"{name}: {option.name}"


def test_every_module_begins_with_a_docstring() -> None:
    for folder in ("packer", "readers", "tools", "tests"):
        for path in (REPO / folder).rglob("*.py"):
            assert path.read_text().startswith('"""'), path


def test_nothing_is_evaluated_or_unpickled() -> None:
    """But functions of the user, on their way to a worker process through a pipe. That file touches no other file."""
    functions = REPO / "packer" / "sources" / "portable_functions.py"
    touches_files = r"\b(open|Path|read_\w+|write\w*|load|dump|eval|exec)\("
    assert not re.search(touches_files, functions.read_text())
    for path in {*(REPO / "readers").rglob("*.py"), *(REPO / "packer").rglob("*.py")} - {functions}:
        assert not re.search(r"\b(pickle|eval|exec|allow_pickle=True)\b", path.read_text()), path


def slug(heading: str) -> str:
    """Return the anchor that GitHub and the site give a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(path: Path) -> set[str]:
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def test_links_in_the_docs_have_a_target() -> None:
    for path in [REPO / "README.md", REPO / "CONTRIBUTING.md", *(REPO / "docs").rglob("*.md")]:
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", path.read_text()):
            if "://" not in target:
                page = path.parent / target if target else path
                assert page.exists(), f"{path}: {target}"
                assert not anchor or anchor in anchors(page), f"{path}: {target}#{anchor}"


def test_a_decoder_that_does_not_load_gives_advice(tmp_path: Path) -> None:
    (tmp_path / "cv2.py").write_text("raise ImportError('libGL.so.1: cannot open shared object file')")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "packer", "probe", str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "--no-deps opencv-python-headless" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("module", "package", "command"),
    [
        ("torch", "torch", "bench npy-index"),
        ("cv2", "opencv-python-headless", "probe raw"),
        ("yaml", "pyyaml", "probe raw"),
    ],
)
def test_a_library_that_is_not_installed_is_named_with_its_package(
    module: str, package: str, command: str, tmp_path: Path
) -> None:
    (tmp_path / f"{module}.py").write_text(f"raise ModuleNotFoundError({module!r}, name={module!r})")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "packer", *command.split()],
        cwd=REPO / "data_samples" / "golden",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    ours = shlex.quote(sys.executable)
    assert done.stderr == f"packer: {module} is not installed: {ours} -m pip install {package}\n"


def test_the_makefile_starts_programs_with_their_launcher() -> None:
    """A program of tools/ that is started as a file alone does nothing: `tools/run` calls its `main`."""
    text = (REPO / "Makefile").read_text()
    assert set(re.findall(r"python3? (tools/\S+)", text)) == {"tools/run"}
    names = set(re.findall(r"tools/run (\S+)", text)) - {"$@"} | {"samples", "picture"}
    assert names >= {"demo", "checks.cli_page"}
    for name in names:
        path = (REPO / "tools" / name.replace(".", "/")).with_suffix(".py")
        assert "def main() -> None:" in path.read_text(), name


def test_commands_that_open_no_picture_need_no_opencv(raw_folder: RawFolder, tmp_path: Path) -> None:
    """A server without libGL can look after packs: `import cv2` fails there."""
    out = pack(raw_folder.path, tmp_path / "out")
    commands = [[name, str(out)] for name in ("info", "log", "gc", "verify", "stats", "unpin")]
    commands += [["rollback", str(out), "1"], ["--version"], ["inspect", str(out), "--keys"]]
    commands += [["stage", str(out), str(tmp_path / "disk")], ["push", str(out), str(tmp_path / "pushed")]]
    program = (
        "import json, sys; sys.modules['cv2'] = None\n"
        "from click.testing import CliRunner; from packer.cli import main\n"
        "for command in json.loads(sys.argv[1]):\n"
        "    done = CliRunner().invoke(main, command)\n"
        "    print(json.dumps([command[0], done.exit_code, done.stderr, repr(done.exception)]))\n"
    )
    done = python("-c", program, json.dumps(commands))
    for line in done.stdout.splitlines():
        _, code, stderr, exception = json.loads(line)
        assert "cv2" not in stderr + exception, line
        assert code == 0, line
