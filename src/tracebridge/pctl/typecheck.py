"""What can be known about types without a model: truth values, whole numbers, numbers.

A name that no constant of the file declares may be a variable of the model, and is accepted wherever it could fit. A
label that is the name of a property of the file has the type of that property. Trees are walked bottom-up, without
recursion; what has an error in it has no type, so that one mistake is one message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tracebridge.errors import PropertyError
from tracebridge.pctl import ast
from tracebridge.pctl.formula_types import FormulaTypes, Scope
from tracebridge.pctl.operand_types import DESCRIPTION, OperandTypes, Type
from tracebridge.pctl.source import MAX_PROBLEMS, Source


def check_file(file: ast.PropertyFile, source: Source) -> None:
    """Check every declaration and property of a parsed file.

    Raises:
        PropertyError: the operands that have the wrong type, with their places, up to ``MAX_PROBLEMS``.
    """
    checker = _Checker(source, file)
    checker.check_declarations()
    checker.check_properties()
    checker.finish()


def check_formula(formula: ast.Formula, source: Source) -> None:
    """Check one formula that stands alone.

    Raises:
        PropertyError: the operands that have the wrong type, with their places, up to ``MAX_PROBLEMS``.
    """
    checker = _Checker(source, ast.PropertyFile(properties=()))
    checker.check(formula)
    checker.finish()


class _Checker:
    """A file that is being checked: its declarations first, then its properties in the order of their references."""

    def __init__(self, source: Source, file: ast.PropertyFile) -> None:
        self._file = file
        self._formulas = FormulaTypes(
            constants={constant.name: constant.type for constant in file.constants},
            labels=frozenset(label.name for label in file.labels),
            times=Counter(entry.name for entry in file.properties if entry.name),
        )
        self._types = OperandTypes(source, self._formulas.times)

    def finish(self) -> None:
        """Raise what was refused, in the order of the text."""
        problems = self._types.problems
        if problems:
            problems.sort(key=lambda problem: (problem.location.line or 0, problem.location.column or 0))
            raise PropertyError(problems[:MAX_PROBLEMS])

    def check_declarations(self) -> None:
        """Each name is declared once, and constants have values of their types."""
        self._refuse_repeated(self._file.constants, "the constant {} is declared twice", "remove one declaration")
        self._refuse_repeated(self._file.labels, 'the label "{}" is defined twice', "remove one definition")
        for constant in self._file.constants:
            if constant.value is not None:
                self._constant(constant, constant.value)

    def _refuse_repeated(self, entries: Sequence[ast.Constant | ast.LabelDefinition], message: str, hint: str) -> None:
        seen: set[str] = set()
        for entry in entries:
            if entry.name in seen:
                self._types.refuse(entry, message.format(entry.name), hint)
            seen.add(entry.name)

    def check_properties(self) -> None:
        """Properties after those that they refer to; a reference that closes a circle has no type."""
        entries = {entry.name: entry for entry in reversed(self._file.properties) if entry.name}
        started: set[int] = set()
        for first in self._file.properties:
            stack = [] if id(first) in started else [(first, _references(first, entries))]
            started.add(id(first))
            while stack:
                entry, references = stack[-1]
                reference = next((other for other in references if id(other) not in started), None)
                if reference is not None:
                    started.add(id(reference))
                    stack.append((reference, _references(reference, entries)))
                    continue
                stack.pop()
                found = self.check(entry.formula)
                if entry.name and self._formulas.times[entry.name] == 1:
                    self._formulas.properties[entry.name] = found
        for label in self._file.labels:
            self.check(label.formula)
            self._types.truth(label.formula, "a label definition")

    def _constant(self, constant: ast.Constant, value: ast.Formula) -> None:
        self.check(value)
        if not self._types.constant(value, f"the value of the constant {constant.name}"):
            return
        actual = self._types.of(value)
        fits = {"bool": ("bool",), "int": ("int",), "double": ("int", "double")}[constant.type]
        if actual not in (*fits, "unknown"):
            self._types.refuse(
                value,
                f"the constant {constant.name} is declared {constant.type}, but its value is {DESCRIPTION[actual]}",
                f"declare it const {actual}",
            )

    def check(self, root: ast.Formula) -> Type:
        """The type of a formula; every node in it is checked."""
        stack: list[tuple[ast.Node, Scope, bool]] = [(root, frozenset(), False)]
        while stack:
            node, scope, ready = stack.pop()
            if ready:
                self._types.note(node, self._formulas.type_of(node, scope, self._types))
                continue
            if isinstance(node, ast.Quantile):
                scope |= {variable.name for variable in node.variables}
            stack.append((node, scope, True))
            stack.extend((child, scope, False) for child in reversed(list(ast.children(node))))
        return self._types.of(root)


def _references(entry: ast.Property, entries: Mapping[str, ast.Property]) -> Iterator[ast.Property]:
    """The properties of the file that a property names, each where it does."""
    labels = (node.name for node in ast.walk(entry.formula) if isinstance(node, ast.Label))
    return (entries[name] for name in labels if name in entries)
