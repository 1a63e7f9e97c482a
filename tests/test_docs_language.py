"""The check of language finds each habit, passes plain sentences, and finds nothing in the repository."""

from __future__ import annotations

import pytest
from checks.language import VAGUE_NAMES, all_findings, findings, room_of

HEADLESS = ("What", "How", "Where", "Whether", "Which", "When", "Why", "Of", "As", "For to")
PHRASES = (
    "The user is told.",
    "The classes are said by name.",
    "It must be told.",
    "The label that was told",
    "The receipt tells the rows.",
    "Two kinds are told apart",
    "It is written anew.",
    "It takes long for to read it.",
    "A colour of no class",
    "The file is no TOML.",
    "Columns that are no part of it",
    "Meanwhile others read.",
    "Away with the old files.",
    "A condemned pair",
    "It lies beside the image.",
    "Mend the file.",
    "a file left lying about",
    "where there is one",
    "The pack is as it was.",
    "The worker is buried.",
)
PLAIN = (
    "Return the rows of a shard.",
    "There is no pack in this folder.",
    "if there\n    # is no manifest",
    "This is no longer read, and no smaller than before.",
    "This is no larger, and is no more than a check.",
    "The house besides the whatever",
    "An off-season of pairs, as of now; how to build, and where the pack lies.",
    "for to_device in devices",
    "retelling, amended, condemn, soldier",
)


HABITS = (
    "Files are packed as they are.",
    "The rows of a pack are those of its shards.",
    "It takes so many bytes.",
    "Three rows, of which one is bad.",
    "Order and state work as ever.",
    "The file lies next to its picture.",
    "Whoever may read it, and nobody else.",
    "Two pictures of one name are a problem.",
    "Of rows in tiles only the tiles that it touches are read.",
    "The first; the second; the third; the fourth.",
)
PASSING = (
    ("docs/page.md", "Most of the rows are read, as usual."),
    ("docs/page.md", "The picture lies flat; this problem has a name; many rows."),
    ("docs/page.md", "`packer: nobody` and [a link](those-of.md)"),
    ("docs/page.md", "```\nso many rows lie in it\n```"),
    *(("packer/plan/plan.py", f'"""{word} it."""') for word in ("Often", "Ask", "Assemble", "However", "Whatever")),
    *(("packer/plan/plan.py", f'"""{word} it."""') for word in ("Offsets", "Whole", "For")),
    ("packer/plan/plan.py", "tag.one()\nmake(one=1)\nplaced = onehot = 1\n"),
)


def phrases(path: str, text: str) -> list[str]:
    return [finding.phrase for finding in findings(path, text)]


@pytest.mark.parametrize("sentence", PHRASES)
def test_each_phrase_is_found_in_code_and_pages(sentence: str) -> None:
    assert phrases("docs/page.md", f"# A page\n\n{sentence}\n")
    assert phrases("packer/plan/plan.py", f"x = 1  # {sentence}\n")
    assert phrases("packer/plan/plan.py", f'raise ValueError("{sentence}")\n')
    assert phrases("packer/plan/plan.py", f'"""Module.\n\n{sentence}\n"""\n')


@pytest.mark.parametrize("sentence", HABITS)
def test_each_habit_is_found_in_pages(sentence: str) -> None:
    assert phrases("docs/page.md", f"# A page\n\n{sentence}\n")
    assert phrases("docs/page.md", f"# A page\n\n- {sentence}\n")


@pytest.mark.parametrize("sentence", HABITS)
def test_each_habit_is_found_in_docstrings_comments_and_texts_of_the_product(sentence: str) -> None:
    for code in (
        f'"""Module.\n\n{sentence}\n"""\n',
        f"x = 1  # {sentence}\n",
        f'raise ValueError("{sentence}")\n',
        f'raise ValueError(f"{{path}}: {sentence} See {{page}}.")\n',
        f'text(\n    "{sentence[:10]}"\n    "{sentence[10:]}"\n)\n',
        "# " + "\n# ".join(sentence.split()) + "\n",
    ):
        assert phrases("packer/plan/plan.py", code), code
        assert phrases("readers/loader.py", code), code
        assert phrases("tests/test_plan.py", code) == []


@pytest.mark.parametrize(
    "code",
    [
        'f"{those.of} are {so_many}"',
        'name = "those of"',
        '"""Call `nobody` with `so many`."""',
        "\"script-src 'self'; style-src 'self'; base-uri 'none'; img-src 'self'\"",
        '"""a -> b; c -> d; e -> f; g -> h"""',
        "those.of(x)  # the rows are read",
    ],
)
def test_names_fields_policies_and_diagrams_are_no_habits(code: str) -> None:
    assert phrases("packer/plan/plan.py", code) == []


def test_a_habit_in_a_comment_has_its_line() -> None:
    [finding] = findings("packer/plan/plan.py", "x = 1\n# The rows\n# of all, and those of others\n")
    assert (finding.line, finding.phrase) == (3, "those of")


@pytest.mark.parametrize(("path", "text"), PASSING)
def test_pages_and_code_that_only_look_alike_pass(path: str, text: str) -> None:
    assert phrases(path, f"# A page\n\n{text}\n" if path.endswith(".md") else text) == []


@pytest.mark.parametrize("word", HEADLESS)
@pytest.mark.parametrize(
    "code",
    [
        '"""{} it does."""',
        'def size():\n    """{} it does."""',
        'async def size():\n    """{} it does."""',
        'class Size:\n    """{} it does."""',
        'SIZE = 1\n"""{} it does."""',
        'class Size:\n    rows: int\n    """{} it does."""',
        'class Size:\n    def rows(self):\n        """\n        {} it does.\n        """',
    ],
)
def test_headless_docstrings_are_found(word: str, code: str) -> None:
    assert f"docstring begins with {word.split()[0]}" in phrases("packer/plan/plan.py", code.format(word))


@pytest.mark.parametrize("sentence", PLAIN)
def test_plain_sentences_pass(sentence: str) -> None:
    assert phrases("docs/page.md", sentence) == []
    assert phrases("packer/plan/plan.py", f'def size():\n    """Return it.\n\n    {sentence}\n    """\n') == []


def test_a_finding_has_the_line_of_its_phrase_also_across_lines_of_a_comment() -> None:
    [finding] = findings("docs/page.md", "one\ntwo\nthree anew\n")
    assert (finding.line, finding.phrase, finding.advice) == (3, "anew", "again")
    [finding] = findings("packer/plan/plan.py", "x = 1\ny = 2  # the user is\n# told about it\n")
    assert (finding.line, finding.phrase) == (2, "is told")


def test_names_of_tests_are_read() -> None:
    assert phrases("tests/test_x.py", "def test_a_crash_is_told() -> None: ...\n") == ["is told"]
    assert phrases("tests/test_x.py", "def is_told() -> None: ...\n") == []


def test_rooms_are_folders() -> None:
    paths = ("packer/plan/reuse.py", "packer/build.py", "readers/loader.py", "docs/guide/x.md", "README.md")
    assert [room_of(path) for path in paths] == ["packer/plan", "packer", "readers", "docs", "README.md"]


BINDINGS = pytest.mark.parametrize(
    "code",
    [
        "{} = 1",
        "for {} in rows: ...",
        "for number, {} in rows: ...",
        "[{0} for {0} in rows]",
        "def size({}): ...",
        "def size(*, {}=1): ...",
        "size = lambda {}: 1",
        "with shard as {}: ...",
        "if ({} := row): ...",
        "try: ...\nexcept OSError as {}: ...",
        "match row:\n    case [*_, {}]: ...",
        "match row:\n    case [*{}]: ...",
    ],
)


@pytest.mark.parametrize("name", sorted(VAGUE_NAMES))
@BINDINGS
def test_vague_variables_are_found(name: str, code: str) -> None:
    for path in ("packer/plan/plan.py", "readers/loader.py"):
        assert phrases(path, code.format(name)) == [f"variable {name}"]
    assert phrases("tests/test_plan.py", code.format(name)) == []


def test_a_parameter_that_programs_of_users_pass_keeps_its_name() -> None:
    code = "def repair_pack(out, *, found=None): ..."
    assert phrases("packer/packs/repair.py", code) == []
    assert phrases("packer/packs/push.py", code) == ["variable found"]


def test_the_repository_has_no_findings() -> None:
    assert all_findings() == []
