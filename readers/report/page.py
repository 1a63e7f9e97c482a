"""A page of HTML in one file: text, tables and charts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

STYLE = """
:root{color-scheme:light dark;--ink:#1c2530;--soft:#5b6673;--line:#dfe3e9;--ground:#fff;--code:#f3f5f8}
@media screen and (prefers-color-scheme:dark){
:root{--ink:#e4e9f0;--soft:#9aa6b5;--line:#2b333f;--ground:#14181f;--code:#1d232c}}
body{max-width:760px;margin:2.5rem auto;padding:0 20px;background:var(--ground);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 1rem}h2{font-size:1.15rem;margin:2.2rem 0 .6rem}
p,ul,ol{margin:.6rem 0}small,.soft{color:var(--soft)}svg{display:block;width:100%;height:auto;margin:1.2rem 0}
code,pre{font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;background:var(--code);border-radius:6px}
code{padding:.1em .3em}pre{padding:.8rem 1rem;overflow-x:auto}pre code{padding:0}
.wide{overflow-x:auto;width:max-content;min-width:100%;max-width:calc(100vw - 40px);
position:relative;left:50%;transform:translateX(-50%)}
table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .6rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th{color:var(--soft);font-weight:600}th:first-child,td:first-child{text-align:left;padding-left:0}
"""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return plain texts as a table of HTML: the first column left-aligned, the others right-aligned."""
    lines = [("th", head), *(("td", row) for row in rows)]
    cells = ["".join(f"<{kind}>{escape(cell)}</{kind}>" for cell in row) for kind, row in lines]
    return f'<div class="wide"><table><tr>{"</tr><tr>".join(cells)}</tr></table></div>'


def page(title: str, body: str) -> str:
    """Return a whole page of HTML. `body` is HTML: the caller escapes all other text in it."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n"
        f"<body><h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )
