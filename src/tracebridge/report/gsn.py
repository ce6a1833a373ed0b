"""A fragment of an assurance case in the Goal Structuring Notation: what evidence supports, and what it does not.

The top goal is that the agent meets its requirements; each property with a verdict is a goal below it. A goal has a
solution only if it is satisfied, two engines agree on it, and the certificate does not reject the chain for it; every
other goal is undeveloped and says why. Values that were only asked for are context, and so are the limits of the
evidence; assumptions carry the results of their tests.

The notation is that of the GSN Community Standard, version 3; the YAML is what gsn2x reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tracebridge.report.github_summary import corpus_lines, interval_cell, value_cell
from tracebridge.report.markdown import printable

if TYPE_CHECKING:
    from tracebridge.report.evidence import Evidence

Format = Literal["yaml", "mermaid"]

_LONGEST_LINE = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """A node: goal (G), strategy (S), solution (Sn), context (C), assumption (A) or justification (J).

    Attributes:
        name: its kind and a number. lines: its text. supported_by, in_context_of: names of other nodes.
        undeveloped: nothing supports it.
    """

    name: str
    lines: tuple[str, ...]
    supported_by: tuple[str, ...] = ()
    in_context_of: tuple[str, ...] = ()
    undeveloped: bool = False

    @property
    def kind(self) -> str:
        """The letters of its name."""
        return self.name.rstrip("0123456789")


def gsn(evidence: Evidence, form: Format = "yaml") -> str:
    """The fragment as YAML for gsn2x, or as a Mermaid flowchart."""
    return gsn_text(elements(evidence), form)


def gsn_text(found: tuple[Element, ...], form: Format) -> str:
    """Nodes as a text."""
    return gsn_yaml(found) if form == "yaml" else gsn_mermaid(found)


def elements(evidence: Evidence) -> tuple[Element, ...]:
    """The nodes, the top goal first."""
    results = evidence.results
    read = list(zip(results["properties"], evidence.document["readings"], strict=True))
    asked = [item for item, _ in read if item["verdict"] is None]
    judged = [(item, reading["text"]) for item, reading in read if item["verdict"] is not None]
    goals = [_goal(number, *each, evidence.digest) for number, each in enumerate(judged, start=2)]
    limits = [(f"Limit: {limit['statement']}",) for limit in evidence.document["limits"]]
    contexts = [*_contexts(evidence), *(_measured(item) for item in asked), *limits]
    named = [Element(name=f"C{i}", lines=lines) for i, lines in enumerate(contexts, start=1)]
    assumed = [Element(name=f"A{i}", lines=lines) for i, lines in enumerate(_assumptions(evidence), start=1)]
    supported = sum(not goal.undeveloped for goal, _ in goals)
    top = Element(
        name="G1",
        lines=(
            "The agent meets its requirements, as far as its traces show.",
            f"Goals below that this evidence supports: {supported} of {len(goals)}."
            if goals
            else "No property with a verdict was checked.",
        ),
        supported_by=("S1",) if goals else (),
        in_context_of=tuple(each.name for each in (*named, *assumed)),
        undeveloped=not goals,
    )
    if not goals:
        return (top, *named, *assumed)
    strategy = Element(
        name="S1",
        lines=("Argument over each requirement: as a property of a Markov chain that was fitted to the traces.",),
        supported_by=tuple(goal.name for goal, _ in goals),
        in_context_of=("J1",),
    )
    why = Element(
        name="J1",
        lines=(
            "Every property is evaluated by two engines that share no code and must agree."
            if len(results["tool"]["engines"]) > 1
            else "Every property was evaluated by one engine alone: nothing was cross-checked.",
            "Where it asks for that, it is judged by what the traces say, not by the fitted chain alone.",
        ),
    )
    below = [node for goal, solution in goals for node in (goal, solution) if node is not None]
    return (top, strategy, why, *below, *named, *assumed)


def _goal(number: int, item: Mapping[str, Any], reading: str, digest: str) -> tuple[Element, Element | None]:
    """A goal and what supports it."""
    requirement = item["annotations"].get("requirement")
    name = item["name"] or item["formula"]
    head = f"{requirement}: {name}" if requirement else name
    lines = [head, item["formula"], reading]
    doubt = _doubt(item)
    if doubt is not None:
        lines.append(f"NOT SUPPORTED: {doubt}")
        return Element(name=f"G{number}", lines=tuple(lines), undeveloped=True), None
    solution = Element(
        name=f"Sn{number}",
        lines=(
            f"evidence.json, digest {digest}",
            "; ".join(f"{found['engine']} {found['verdict']}" for found in item["engines"])
            + f"; value {value_cell(item)}, interval {interval_cell(item)}",
        ),
    )
    lines.append("satisfied" + (f" ({', '.join(item['marks'])})" if item["marks"] else ""))
    return Element(name=f"G{number}", lines=tuple(lines), supported_by=(solution.name,)), solution


def _doubt(item: Mapping[str, Any]) -> str | None:
    """Why the evidence does not support a property; None if it does."""
    if item["verdict"] != "satisfied":
        return ": ".join(part for part in (item["verdict"], item["reason"]) if part)
    if item["agree"] is None:
        return f"satisfied by one engine alone; {item['reason'] or 'no second engine answered'}"
    standing = item["standing"]
    if standing is not None and standing["verdict"] in ("reject", "refused"):
        return f"satisfied by a chain that the certificate does not let stand: {'; '.join(standing['reasons'])}"
    return None


def _contexts(evidence: Evidence) -> Iterator[tuple[str, ...]]:
    results = evidence.results
    corpus, fit = results["corpus"], results["fit"]
    size, when = corpus_lines(corpus)
    hashes = [f"{file['path']}: SHA-256 {file['sha256']}" for file in corpus["files"][:3]]
    if len(corpus["files"]) > 3:
        hashes.append(f"and {len(corpus['files']) - 3} more files")
    yield (f"Corpus: {size}.", f"{when}.", *hashes)
    yield (
        f"Chain: {fit['model']}, {len(fit['states'])} states.",
        f"Prior {fit['prior']}, {fit['support']} support, censored runs: {fit['censored']}.",
    )
    engines = ", ".join(f"{name} {version}" for name, version in results["tool"]["engines"].items())
    yield (f"Engines: {engines}; tracebridge {results['tool']['version']}.",)


def _measured(item: Mapping[str, Any]) -> tuple[str, ...]:
    marks = f" ({', '.join(item['marks'])})" if item["marks"] else ""
    head = f"Measured: {item['name'] or item['formula']} = {value_cell(item)}, interval {interval_cell(item)}{marks}"
    return (head, item["formula"])


def _assumptions(evidence: Evidence) -> Iterator[tuple[str, ...]]:
    for each in evidence.document["assumptions"]:
        p = "" if each["p"] is None else f", p = {each['p']:.3g}"
        tested = f" by {each['tested_by']}" if each["tested_by"] else ""
        reason = f"; {each['reason']}" if each["reason"] else ""
        yield (each["statement"], f"{each['result']}{tested}{p}{reason}")


# ---------------------------------------------------------------- text


def gsn_yaml(found: tuple[Element, ...]) -> str:
    """YAML with one key a node; texts are quoted, with control characters made visible."""
    return "\n".join(line for element in found for line in _yaml_lines(element))


def _yaml_lines(element: Element) -> Iterator[str]:
    yield f"{element.name}:"
    yield f"  text: {_quoted(element.lines)}"
    if element.supported_by:
        yield f"  supportedBy: [{', '.join(element.supported_by)}]"
    if element.in_context_of:
        yield f"  inContextOf: [{', '.join(element.in_context_of)}]"
    if element.undeveloped:
        yield "  undeveloped: true"
    yield ""


def _quoted(lines: tuple[str, ...]) -> str:
    """A double-quoted YAML scalar, which JSON's strings are if nothing in them needs another escape."""
    return json.dumps("\n".join(map(_line, lines)), ensure_ascii=False)


def _line(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _LONGEST_LINE else f"{shown[:_LONGEST_LINE]}…"


#: Mermaid's entity codes of characters that could end a text or start markup.
_ENTITIES = {ord(char): f"#{ord(char)};" for char in '"#<>&`\\$'}

_SHAPES = {"G": ("[", "]"), "S": ("[/", "/]"), "Sn": ("((", "))"), "C": ("([", "])"), "A": ("(", ")"), "J": ("(", ")")}
_WORDS = {"A": " (assumption)", "J": " (justification)"}


def gsn_mermaid(found: tuple[Element, ...]) -> str:
    """A flowchart: solid arrows are support, dotted ones context, dashed goals undeveloped."""
    lines = ["flowchart TD"]
    for element in found:
        begin, end = _SHAPES[element.kind]
        head = f"{element.name}{_WORDS.get(element.kind, '')}"
        if element.undeveloped:
            head += " (undeveloped)"
        text = "<br/>".join((head, *(_line(line).translate(_ENTITIES) for line in element.lines)))
        lines.append(f'  {element.name}{begin}"{text}"{end}')
    for element in found:
        lines += [f"  {element.name} --> {other}" for other in element.supported_by]
        lines += [f"  {element.name} -.-> {other}" for other in element.in_context_of]
    undeveloped = [element.name for element in found if element.undeveloped]
    if undeveloped:
        lines.append("  classDef undeveloped stroke-dasharray: 5 5")
        lines.append(f"  class {','.join(undeveloped)} undeveloped")
    return "\n".join(lines) + "\n"
