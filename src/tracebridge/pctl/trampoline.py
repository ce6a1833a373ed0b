"""Recursion on trees of any depth: a recursive function written as a generator, run on a stack of its own.

Where a recursive function would call itself, the generator yields the call and is sent its result::

    def height(node: Node) -> Recursion[int]:
        tallest = 0
        for child in children(node):
            tallest = max(tallest, (yield height(child)))
        return tallest + 1

    run(height(formula))

Python's own stack, which ends at about a thousand calls, stays flat.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

T = TypeVar("T")

Recursion = Generator[Any, Any, T]
"""A call of a recursive function with a result of type T; it yields further calls."""


def run(call: Recursion[T]) -> T:
    """The result of a call, with all the calls that it makes.

    An exception ends them all: it cannot be caught around a ``yield``.
    """
    stack: list[Recursion[Any]] = [call]
    result: Any = None
    while stack:
        try:
            inner = stack[-1].send(result)
        except StopIteration as done:
            stack.pop()
            result = done.value
        else:
            stack.append(inner)
            result = None
    return result  # type: ignore[no-any-return]  # what the first call returned
