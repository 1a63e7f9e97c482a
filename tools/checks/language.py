"""Find sentences that a reader has to read twice: headless docstrings, and phrases with a plain word for them.
Pages, and the docstrings, comments and texts of the product, are also read for six further habits.

    tools/run checks.language [ROOM ...]     count the findings of each room; name rooms to list theirs

Reads code, docstrings, comments, messages, names of tests, pages, and names of variables. Exits 1 if a room has
findings.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from program import REPO, parser

ROOTS = ("packer", "readers", "tools", "tests", "docs", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")
SUFFIXES = (".py", ".md", ".toml", ".c")
ALLOWED = ("tools/checks/language.py", "tests/test_docs_language.py", "docs/measured/public_sets.md")
"""Files that are not read: this check, which lists the phrases; its tests; a page that `public_sets` writes."""

HEADLESS = re.compile(r"(What|How|Where|Whether|Which|When|Why|Of|As|For to)\b")
HEAD_ADVICE = "begin with a verb or a noun"
VAGUE_NAMES = frozenset({"each", "found", "given", "known", "one", "said", "there", "told", "wanted"})
NAME_ADVICE = "name the thing: shard, row, field, message, index, path"
PRODUCT = ("packer/", "readers/")
"""Folders whose variables and texts are checked, too."""
PUBLIC_NAMES = frozenset({("packer/packs/repair.py", "found")})
"""Parameters that programs of users pass by name, so they stay."""
PHRASES = {
    r"(?:is|are|was|were|be|been) told(?! apart)": "is printed, is reported, gets",
    r"(?:is|are|was|were|be|been) said": "is set, is described, is printed",
    r"tells": "reports, prints, shows",
    r"told apart": "distinguished",
    r"anew": "again",
    r"for to": "to",
    r"of no class": "in no class, unknown class",
    r"(?:there )?(?:is|are|was|were) no (?!\w+er\b|more\b|less\b|worse\b|different\b)\w+": "is not a (valid) ...",
    r"meanwhile": "at the same time, in between",
    r"away with": "remove, without",
    r"condemned": "rejected",
    r"beside": "next to, besides, as well as",
    r"mend(?:s|ed|ing)?": "fix, repair",
    r"(?:lie|lies|lying|left lying) about": "are left over",
    r"[Ww]here there (?:is|are|was|were) (?:one|none|any|some)": "name the thing",
    r"as it was|as they were": "unchanged",
    r"buried|doctors?|graves?": "the plain word, not an image",
}
PATTERNS = [
    (re.compile(rf"(?<![\w-])(?:{phrase})(?![\w-])".replace(" ", r"\s+"), re.IGNORECASE), advice)
    for phrase, advice in PHRASES.items()
]
PROSE_PHRASES = {
    r"as they are|as it is|(?:those|that) of": "name the thing again",
    r"so many|of which|as ever": "give the number; start a new sentence; as usual",
    r"(?:lies?|lay|lying) (?:in|on|at|next|below|above|under|behind|between|outside|inside|within|near|partly)": (
        "is, is stored, is next to"
    ),
    r"(?:some|no|any|every)body|(?:some|any|every)one|whoever": "the process, the user, the reader",
    r"(?:is|are) (?:problems?|questions?|a problem|a question)": "say what the program does",
}
"""Habits of prose: of pages outside of code blocks and code words, and of the texts in the code of the product."""
PROSE_PATTERNS = [
    (re.compile(rf"\b(?:{phrase})\b".replace(" ", r"\s+"), re.IGNORECASE), advice)
    for phrase, advice in PROSE_PHRASES.items()
]
OF_A = r"Of (?:an?|the|all|each|both|these|those|rows|several|\d[\d,.]*)\b"
SUBJECT_FIRST = "begin with the subject"
SHORTER = "a sentence for each fact"
PAGE_PATTERNS = [
    *PROSE_PATTERNS,
    (re.compile(rf"(?:^|(?<=[.:;|] )|(?<=- )){OF_A}", re.MULTILINE), SUBJECT_FIRST),
    (re.compile(r"^(?![|\d])[^|\n]*?(?:[^.:;|\n]+;){3}", re.MULTILINE), SHORTER),
]
TEXT_PATTERNS = [
    *PROSE_PATTERNS,
    (re.compile(rf"\b{OF_A}".replace(" ", r"\s+")), SUBJECT_FIRST),
    (re.compile(r"(?:[^.:;|'>]+;){3}"), SHORTER),
]
"""The same habits in wrapped texts: a capital letter begins a sentence, and a chain goes over lines.

A chain has no quotes or arrows: policies of browsers and drawn steps have semicolons, too.
"""
LEAST_WORDS = 3
"""Words of a string that is read as prose. Shorter ones are names and patterns."""
CODE = re.compile(r"^```.*?^```|`[^`\n]*`|\]\([^)\n]*\)", re.MULTILINE | re.DOTALL)
TEST_NAME = re.compile(r"def test_\w+")
COMMENT = re.compile(r"^( *)#", re.MULTILINE)
"""The mark of a comment, between whose lines a phrase may be wrapped."""


class Finding(NamedTuple):
    """A phrase in a file, and the plain words for it."""

    path: str
    line: int
    phrase: str
    advice: str


def findings(path: str, text: str) -> Iterator[Finding]:
    """Yield the habits in one file."""
    plain = COMMENT.sub(r"\1 ", TEST_NAME.sub(lambda name: name[0].replace("_", " "), text))
    yield from matches(path, plain, PATTERNS)
    if path.endswith(".md"):
        yield from matches(path, without_code(text), PAGE_PATTERNS)
    if path.endswith(".py"):
        tree = ast.parse(text)
        for line, prose in texts(tree, text) if path.startswith(PRODUCT) else ():
            for finding in matches(path, without_code(prose), TEXT_PATTERNS):
                yield finding._replace(line=finding.line + line - 1)
        for line, doc in docstrings(tree):
            if HEADLESS.match(doc):
                yield Finding(path, line, f"docstring begins with {doc.split()[0]}", HEAD_ADVICE)
        for line, name in variables(tree) if path.startswith(PRODUCT) else ():
            if name in VAGUE_NAMES and (path, name) not in PUBLIC_NAMES:
                yield Finding(path, line, f"variable {name}", NAME_ADVICE)


def matches(path: str, text: str, patterns: Iterable[tuple[re.Pattern[str], str]]) -> Iterator[Finding]:
    """Yield what the patterns find in a text."""
    for pattern, advice in patterns:
        for match in pattern.finditer(text):
            if not match[0].lower().startswith("there"):  # there is no such file
                yield Finding(path, text.count("\n", 0, match.start()) + 1, " ".join(match[0].split()), advice)


def without_code(text: str) -> str:
    """Return a text with a mark in place of each character of code blocks, code words and addresses."""
    return CODE.sub(lambda code: re.sub(r"[^\n]", "_", code[0]), text)


def texts(tree: ast.Module, code: str) -> Iterator[tuple[int, str]]:
    """Yield the first line and the text of each docstring, message and comment. A mark stands for a field.

    Strings of less than three words are left out, because they are names, patterns and keys.
    """
    parts = set[int]()
    for node in ast.walk(tree):  # an f-string comes before its parts
        match node:
            case ast.JoinedStr(values=values):
                parts.update(map(id, values))
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "_" for part in values)
            case ast.Constant(value=str(value)) if id(node) not in parts:
                text = value
            case _:
                continue
        if len(text.split()) >= LEAST_WORDS:
            yield node.lineno, text
    yield from comments(code)


def comments(code: str) -> Iterator[tuple[int, str]]:
    """Yield the first line and the text of each comment, which may have several lines."""
    first, lines = 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type != tokenize.COMMENT:
            continue
        if token.start[0] != first + len(lines):
            yield first, "\n".join(lines)
            first, lines = token.start[0], []
        lines.append(token.string.lstrip("# "))
    yield first, "\n".join(lines)


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of the docstring of the module, each class and function, and each attribute."""
    blocks: list[ast.AST] = [tree]
    while blocks:  # only statements, of which a tree has few
        node = blocks.pop()
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            blocks += getattr(node, field, ())
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            for statement in node.body:
                match statement:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        yield statement.lineno, text.strip()


def variables(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each variable where it is bound, and of each parameter."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.ExceptHandler(name=str(name)):
                yield node.lineno, name


def room_of(path: str) -> str:
    """Return `packer/plan` for packer/plan/reuse.py, `packer` for packer/build.py. Docs and tests are one room each."""
    folders = path.split("/")[:-1]
    if not folders:
        return path
    return folders[0] if folders[0] in ("docs", "tests") else "/".join(folders[:2])


def files() -> Iterator[str]:
    for name in ROOTS:
        root = REPO / name
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            relative = path.relative_to(REPO).as_posix()
            if path.suffix in SUFFIXES and relative not in ALLOWED:
                yield relative


def all_findings() -> list[Finding]:
    return [finding for path in files() for finding in findings(path, Path(REPO, path).read_text(encoding="utf-8"))]


def main() -> int:
    options = parser(__doc__)
    options.add_argument(
        "rooms", nargs="*", metavar="ROOM", help="list the findings of these rooms, such as packer/cli"
    )
    chosen = options.parse_args().rooms
    found = all_findings()
    counts = Counter(room_of(finding.path) for finding in found)
    for path, line, phrase, advice in found:
        if not chosen or any(path.startswith(room) for room in chosen):
            print(f"{path}:{line}: {phrase!r}: {advice}")
    for room, count in sorted(counts.items()):
        print(f"{room:<24}{count:>5}", file=sys.stderr)
    return 1 if counts else 0
