"""The Markdown that this package writes, as HTML: so that a page and ``summary.md`` have the same words.

Headings, paragraphs, lists and tables of one line an item; within a line ``code``, **bold**, *emphasis* and escapes.
Whatever else is in a line is text: no input can make an element of its own.
"""

from __future__ import annotations

import re
from itertools import groupby

from markupsafe import Markup, escape

_INLINE = re.compile(
    r"\\(?P<literal>.)|`(?P<code>[^`]*)`|\*\*(?P<bold>(?:\\.|[^*\\])+)\*\*|\*(?P<stress>(?:\\.|[^*\\])+)\*"
)
_RULE = re.compile(r"\|(?: --- \|)+")


def markdown_html(text: str, *, caption: str = "", heading: int = 3) -> Markup:
    """The text as HTML elements.

    Args:
        caption: of tables before any heading; that of others is their heading. It is there for those who do not see.
        heading: the level of its top headings in the page.
    """
    parts = []
    for block in re.split(r"\n{2,}", text.strip("\n")):
        for kind, group in groupby(block.split("\n"), _kind):
            lines = list(group)
            if kind == "table":
                parts.append(_table(lines, caption))
            elif kind == "list":
                items = Markup("").join(Markup("<li>{}</li>").format(_inline(line[2:])) for line in lines)
                parts.append(Markup("<ul>{}</ul>").format(items))
            elif kind == "heading":
                parts += [_heading(line, heading) for line in lines]
                caption = _inline(lines[-1].split(" ", 1)[1]).striptags()
            else:
                parts.append(Markup("<p>{}</p>").format(_inline(" ".join(lines))))
    return Markup("\n").join(parts)


def _kind(line: str) -> str:
    if line.startswith("| "):
        return "table"
    if line.startswith("- "):
        return "list"
    return "heading" if re.match(r"#{1,6} ", line) else "paragraph"


def _heading(line: str, level: int) -> Markup:
    marks, text = line.split(" ", 1)
    return Markup("<h{0}>{1}</h{0}>").format(min(6, level + len(marks) - 1), _inline(text))


def _table(lines: list[str], caption: str) -> Markup:
    rows = [_cells(line) for line in lines if not _RULE.fullmatch(line)]
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(_inline(cell)) for cell in rows[0])
    body = Markup("").join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            _inline(row[0]), Markup("").join(Markup("<td>{}</td>").format(_inline(cell)) for cell in row[1:])
        )
        for row in rows[1:]
    )
    return Markup(
        '<div class="scroll" tabindex="0" role="group" aria-label="{0}"><table><caption class="quiet">{0}</caption>'
        "<thead><tr>{1}</tr></thead><tbody>{2}</tbody></table></div>"
    ).format(caption, head, body)


def _cells(line: str) -> list[str]:
    """The cells of a row; an escaped bar ends none."""
    return [cell.strip() for cell in re.findall(r" ((?:\\.|[^|\\])*) \|", line)]


def _inline(text: str) -> Markup:
    parts, place = [], 0
    for found in _INLINE.finditer(text):
        parts.append(escape(text[place : found.start()]))
        place = found.end()
        if (literal := found["literal"]) is not None:
            parts.append(escape(literal))
        elif (code := found["code"]) is not None:
            parts.append(Markup("<code>{}</code>").format(code))
        elif (bold := found["bold"]) is not None:
            parts.append(Markup("<strong>{}</strong>").format(_inline(bold)))
        else:
            parts.append(Markup("<em>{}</em>").format(_inline(found["stress"])))
    return Markup("").join([*parts, escape(text[place:])])
