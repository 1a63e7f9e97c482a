"""A hook of MkDocs: README.md, FORMAT.md and others join docs/ as pages, and links between them are made to fit.

`make docs` runs it. On the site README.md is the first page. A link to a file that is not on the site, such as a source
file, becomes plain text. A built page that loads anything from another host is an error.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "README.md": "index.md",
    "readers/contract/FORMAT.md": "FORMAT.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
}
"""Pages that lie outside docs/: the path in the repository, and the name on the site."""
FACTS = (
    "Commands are `packer COMMAND`; `packer COMMAND --help` lists the options, and cli.md has them all. "
    "Before you propose options for a folder, run `packer probe --json FOLDER`: it says which the folder needs. "
    "Data sets come from `from readers import open_dataset`."
)
MENU: list[tuple[str, Any]] = []
"""The pages in the order of the menu, each with the title of its part."""
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]*)(#[^)\s]*)?\)")
LOADED = re.compile(r"""<(?:script|img|iframe|link rel="(?:stylesheet|preconnect)")[^>]*(?:src|href)="(?:https?:)?//""")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that lie outside docs/."""
    for source, name in PAGES.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the page with links that lead to pages of the site."""
    name = page.file.src_uri
    source = next((source for source, page_name in PAGES.items() if page_name == name), f"docs/{name}")
    return links_for_site(markdown, source)


def links_for_site(markdown: str, source: str) -> str:
    """Rewrite the links of a file of the repository; `source` is its path in the repository."""
    here = posixpath.dirname(site_name(source) or "")

    def rewritten(match: re.Match[str]) -> str:
        mark, text, target, anchor = match.group(1), match.group(2), match.group(3), match.group(4) or ""
        if "://" in target or target.startswith("mailto:") or not target:
            return match.group(0)
        name = site_name(posixpath.normpath(posixpath.join(posixpath.dirname(source), target)))
        return f"{mark}[{text}]({posixpath.relpath(name, here or '.')}{anchor})" if name else text

    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else LINK.sub(rewritten, part) for part in parts)


def site_name(path: str) -> str | None:
    """Return the name on the site of a file of the repository, or None if it is not there."""
    if path in PAGES:
        return PAGES[path]
    return path.removeprefix("docs/") if path.startswith("docs/") and (ROOT / path).is_file() else None


def on_nav(nav: Any, **_: Any) -> None:
    """Keep the pages in the order of the menu."""
    MENU[:] = [(page.parent.title if page.parent else "Start", page) for page in nav.pages]


def index_for_assistants(description: str) -> str:
    """Return llms.txt: every page with its Markdown file and its first sentence, in the order of the menu."""
    lines, heading = ["# segpack", "", f"> {description}", "", FACTS], ""
    for part, page in MENU:
        if part != heading:
            lines += ["", f"## {part}", ""]
        heading = part
        lines.append(f"- [{page.title}]({page.file.src_uri}): {first_sentence(page.markdown)}")
    return "\n".join(lines) + "\n"


def first_sentence(markdown: str) -> str:
    """Return the first sentence of a page that is neither heading, picture, table nor code."""
    text = re.sub(r"^```.*?^```", "", markdown, flags=re.MULTILINE | re.DOTALL)
    prose = [part for part in re.split(r"\n\n+", text) if not re.match(r"[#!|<\-]", part.strip() or "#")]
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|[*`]", r"\1", " ".join(prose[0].split())) if prose else ""
    return re.split(r"(?<=[.:])\s", plain)[0].rstrip(":")


def on_post_build(config: Any, **_: Any) -> None:
    """Write llms.txt, and the pages as Markdown next to it. Refuse a site that loads a file from another host."""
    site = Path(config["site_dir"])
    (site / "llms.txt").write_text(index_for_assistants(config["site_description"]), encoding="utf-8")
    for _part, page in MENU:
        (site / page.file.src_uri).write_text(page.markdown, encoding="utf-8")
    for path in sorted(site.rglob("*.html")):
        if loaded := LOADED.search(path.read_text(encoding="utf-8")):
            raise PluginError(f"{os.fspath(path)} loads from the network: {loaded.group(0)}")
