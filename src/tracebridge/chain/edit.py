"""Changes to a chain: what if a share of a state's transitions went elsewhere?

A change of one row is ``(dQ, dR)``, the change of each of its probabilities, which sum to zero. Exits may change like
any other transition: a fallback that rescues failed calls takes from failure and gives to success.

In an expanded chain the name of a category means all of its copies: each of their rows changes, and what is sent to a
category goes to the copies of it that the row leads to anyway, in their proportions, as a step there would.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from tracebridge.chain.estimate import parse_fraction
from tracebridge.chain.expanded.copies import category_copies
from tracebridge.chain.model_problems import problem
from tracebridge.chain.rational import RationalMatrix
from tracebridge.errors import ModelError, Problem, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain

# Between a colon and an arrow. Names may hold either too, so every such place is tried.
_SHARE = re.compile(r":\s*(\d[0-9./eE+-]{0,99}\s*%?|\.\d{1,99}\s*%?)\s*->")
_LONGEST_TEXT = 10_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowChange:
    """What is added to the probabilities of one row.

    Attributes:
        state: the state whose row changes.
        by: the change of the probability of each successor, by its name; sums to zero, and zeros are left out.

    Raises:
        ModelError: if the changes do not sum to zero, exactly.
    """

    state: str
    by: Mapping[str, Fraction]

    def __post_init__(self) -> None:
        by = {successor: Fraction(change) for successor, change in self.by.items() if change}
        total = sum(by.values(), Fraction(0))
        if total:
            raise ModelError(f"state {self.state!r}: the changes of its row sum to {total}, which must be 0")
        object.__setattr__(self, "by", MappingProxyType(by))


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirection:
    """A share of a state's transitions goes to ``target`` instead.

    Attributes:
        state: where the transitions start: a state, or a category for all of its copies.
        share: of the probability that is redirected, 0 to 1.
        target: a state, a category or an outcome.
        successor: the only successor whose probability is taken from; None takes the share of every one.
    """

    state: str
    share: Fraction
    target: str
    successor: str | None = None

    def __str__(self) -> str:
        source = self.state if self.successor is None else f"{self.state}->{self.successor}"
        return f"{source}:{self.share}->{self.target}"


# ---------------------------------------------------------------- from words to changes


def parse_redirection(text: str, chain: MarkovChain) -> Redirection:
    """Read ``STATE:SHARE->TARGET``, or ``STATE->SUCCESSOR:SHARE->TARGET`` to redirect only what goes to one successor.

    The share is a decimal, a fraction or a percentage: ``tool_error:0.3->fallback``, ``plan->failure:50%->plan``. Names
    of states may contain colons and arrows; only readings whose names are states or categories count.

    Raises:
        UsageError: for a text of another form, a share outside 0..1, or a text that can be read in two ways.
        ModelError: for a name that is no state or category of the chain.
    """
    if len(text) > _LONGEST_TEXT:
        raise UsageError(f"a redirection of {len(text)} characters is too long (at most {_LONGEST_TEXT})")
    known = [*category_copies(chain), *chain.states]
    states = set(known)
    readings: list[Redirection] = []
    unknown: list[str] = []
    for match in _SHARE.finditer(text):
        source, target = text[: match.start()].strip(), text[match.end() :].strip()
        if target not in states:
            unknown.append(target)
            continue
        sources = [(source, None)] if source in states else _transitions(source, states)
        unknown += [] if sources else [source]
        readings += [Redirection(state=s, successor=to, share=_share(match[1]), target=target) for s, to in sources]
    if len(readings) > 1:
        raise UsageError(f"{text!r} can be read as {' or as '.join(map(str, readings))}")
    if readings:
        return readings[0]
    if unknown:
        raise ModelError(_no_state(unknown[0], known))
    raise UsageError(f"a redirection is STATE:SHARE->TARGET, such as tool_error:0.3->fallback, not {text!r}")


def row_changes(chain: MarkovChain, redirections: Iterable[Redirection]) -> tuple[RowChange, ...]:
    """The changes that redirections mean together, one a state, in the order of the chain.

    A category means all of its copies. Every share is of the row as it is in ``chain``, so that the order of the
    redirections does not matter.

    Raises:
        ModelError: for a name that is no state or category, an absorbing state, shares of one transition that exceed 1
            together, a copy that never goes to the target category, so that it is not known to which copy it would, or
            a target copy that a step from there would not lead to, because it remembers another past.
        UsageError: for a share outside 0..1.
    """
    copies = {name: positions.tolist() for name, positions in category_copies(chain).items()}
    remembering = {position: name for name, positions in copies.items() for position in positions}
    taken: dict[int, dict[int, Fraction]] = {}
    changes: dict[int, dict[int, Fraction]] = {}
    for redirection in redirections:
        if not 0 <= redirection.share <= 1:
            raise UsageError(f"{redirection}: the share lies between 0 and 1")
        sources, targets = _members(chain, copies, redirection.state), _members(chain, copies, redirection.target)
        taken_from = None
        if redirection.successor is not None:
            taken_from = set(_members(chain, copies, redirection.successor))
        found = False
        for i in sources:
            row = _exact_row(chain, i)
            losing = {j: p for j, p in row.items() if taken_from is None or j in taken_from}
            if not losing:
                continue
            found = True
            if targets[0] in remembering and targets[0] not in row and redirection.target not in copies:
                raise ModelError(_never_leads(redirection, chain.states[i], remembering[targets[0]]))
            gaining = _arrivals(row, targets, redirection, chain.states[i])
            change, shares = changes.setdefault(i, {}), taken.setdefault(i, {})
            for successor, probability in losing.items():
                shares[successor] = shares.get(successor, Fraction(0)) + redirection.share
                if shares[successor] > 1:
                    raise ModelError(
                        f"{redirection}: together {shares[successor]} of what goes from {chain.states[i]!r} to "
                        f"{chain.states[successor]!r} would be redirected, which is more than there is"
                    )
                change[successor] = change.get(successor, Fraction(0)) - redirection.share * probability
            moved = redirection.share * sum(losing.values(), Fraction(0))
            for target, part in gaining.items():
                change[target] = change.get(target, Fraction(0)) + part * moved
        if not found:
            raise ModelError(f"{redirection}: {redirection.state!r} never goes to {redirection.successor!r}")
    return tuple(
        RowChange(state=chain.states[i], by={chain.states[j]: value for j, value in sorted(change.items())})
        for i, change in sorted(changes.items())
    )


def _members(chain: MarkovChain, copies: Mapping[str, list[int]], name: str) -> list[int]:
    """The states that a name means."""
    if name in copies:
        return copies[name]
    try:
        return [chain.index(name)]
    except ModelError:
        raise ModelError(_no_state(name, [*copies, *chain.states])) from None


def _never_leads(redirection: Redirection, state: str, category: str) -> str:
    return (
        f"{redirection}: no step leads from {state!r} to {redirection.target!r}, which remembers another past; name "
        f"the category, {category!r}, and what is remembered goes on with the step"
    )


def _arrivals(
    row: Mapping[int, Fraction], targets: list[int], redirection: Redirection, state: str
) -> dict[int, Fraction]:
    """The parts of what is sent to a target that arrive in each of its states."""
    if len(targets) == 1:
        return {targets[0]: Fraction(1)}
    weights = {j: row[j] for j in targets if j in row}
    if not weights:
        raise ModelError(
            f"{redirection}: {state!r} never goes to {redirection.target!r}, so that it is not known to which of its "
            f"{len(targets)} copies it would"
        )
    total = sum(weights.values(), Fraction(0))
    return {j: weight / total for j, weight in weights.items()}


# ---------------------------------------------------------------- applying them


def edited(chain: MarkovChain, changes: Iterable[RowChange]) -> MarkovChain:
    """The chain with the rows changed; all else stays.

    A chain of rationals stays one. In a chain of doubles only the changed rows are computed anew, in rationals, and
    rounded.

    Raises:
        ModelError: for a probability that leaves 0..1, a name that is no state, a state that is absorbing or would
            become so, or two changes of one row. All such places are named.
    """
    rows: dict[int, dict[int, Fraction]] = {}
    problems: list[Problem] = []
    for i, by in checked_changes(chain, changes).items():
        row = _exact_row(chain, i)
        for j, change in by.items():
            value = row.get(j, Fraction(0)) + change
            if not 0 <= value <= 1:
                problems.append(
                    problem(f"from {chain.states[i]!r} to {chain.states[j]!r}: the probability would be {value}")
                )
            row[j] = value
        rows[i] = {j: value for j, value in sorted(row.items()) if value}
        if list(rows[i]) == [i]:
            problems.append(problem(f"state {chain.states[i]!r} would never be left"))
    if problems:
        raise ModelError(problems)
    transitions: Any
    if chain.rationals is not None:
        transitions = _spliced_rationals(chain.rationals, rows)
    else:
        transitions = _spliced_doubles(chain.transitions, rows)
    initial: Any = chain.initial if chain.initial_rationals is None else chain.initial_rationals
    return replace(chain, transitions=transitions, rationals=None, initial=initial, initial_rationals=None)


def checked_changes(chain: MarkovChain, changes: Iterable[RowChange]) -> dict[int, dict[int, Fraction]]:
    """The changes by positions: row, column, value.

    Raises:
        ModelError: for a name that is no state, an absorbing state, or two changes of one row.
    """
    absorbing = chain.absorbing
    found: dict[int, dict[int, Fraction]] = {}
    for change in changes:
        i = _index(chain, change.state)
        if absorbing[i]:
            raise ModelError(f"{change.state!r} is where runs end: it has no transitions to change")
        if i in found:
            raise ModelError(f"the row of {change.state!r} is changed twice: add the two changes up")
        found[i] = {_index(chain, name): value for name, value in change.by.items()}
    return found


def _spliced_rationals(matrix: RationalMatrix, rows: Mapping[int, Mapping[int, Fraction]]) -> RationalMatrix:
    replacement = RationalMatrix.from_rows([dict(row) for _, row in sorted(rows.items())], matrix.n_columns)
    denominators = matrix.denominators.astype(object)
    denominators[sorted(rows)] = replacement.denominators.astype(object)
    indptr, (indices, numerators) = _spliced(
        matrix.indptr, (matrix.indices, matrix.numerators), sorted(rows), replacement.indptr,
        (replacement.indices, replacement.numerators),
    )  # fmt: skip
    return RationalMatrix(indptr, indices, numerators, denominators, matrix.n_columns)


def _spliced_doubles(matrix: csr_array, rows: Mapping[int, Mapping[int, Fraction]]) -> csr_array:
    replacement = RationalMatrix.from_rows([dict(row) for _, row in sorted(rows.items())], matrix.shape[1]).to_float()
    indptr, (indices, data) = _spliced(
        matrix.indptr, (matrix.indices, matrix.data), sorted(rows), replacement.indptr,
        (replacement.indices, replacement.data),
    )  # fmt: skip
    return csr_array((data, indices, indptr), shape=matrix.shape)


def _spliced(
    indptr: NDArray[Any],
    arrays: tuple[NDArray[Any], NDArray[Any]],
    rows: Sequence[int],
    new_indptr: NDArray[Any],
    new_arrays: tuple[NDArray[Any], NDArray[Any]],
) -> tuple[NDArray[np.int64], tuple[NDArray[Any], NDArray[Any]]]:
    """CSR arrays with some rows (ascending) replaced; nothing else is touched."""
    lengths = np.diff(indptr).astype(np.int64)
    lengths[list(rows)] = np.diff(new_indptr)
    pieces: list[list[NDArray[Any]]] = [[], []]
    begin = 0
    for k, row in enumerate(rows):
        for part, old, new in zip(pieces, arrays, new_arrays, strict=True):
            part += [old[begin : indptr[row]], new[new_indptr[k] : new_indptr[k + 1]]]
        begin = int(indptr[row + 1])
    for part, old in zip(pieces, arrays, strict=True):
        part.append(old[begin:])
    first, second = (np.concatenate(part) for part in pieces)
    return np.concatenate([[0], np.cumsum(lengths)]), (first, second)


def _exact_row(chain: MarkovChain, i: int) -> dict[int, Fraction]:
    if chain.rationals is not None:
        return chain.rationals.row(i)
    return RationalMatrix.from_float(csr_array(chain.transitions[[i]])).row(0)


# ---------------------------------------------------------------- names


def _transitions(source: str, states: Container[str]) -> list[tuple[str, str | None]]:
    """Every way to read the text as ``STATE->SUCCESSOR``."""
    pairs = [(source[: arrow.start()].strip(), source[arrow.end() :].strip()) for arrow in re.finditer("->", source)]
    return [(state, successor) for state, successor in pairs if state in states and successor in states]


def _share(text: str) -> Fraction:
    number = ("0" if text.startswith(".") else "") + text.removesuffix("%").strip()
    try:
        share = parse_fraction(number) / (100 if text.endswith("%") else 1)
    except ValueError as error:
        raise UsageError(f"the share of a redirection: {error}") from None
    if share > 1:
        raise UsageError(f"the share of a redirection lies between 0 and 1, {text} does not")
    return share


def _index(chain: MarkovChain, name: str) -> int:
    try:
        return chain.index(name)
    except ModelError:
        raise ModelError(_no_state(name, chain.states)) from None


def _no_state(name: str, states: Sequence[str]) -> Problem:
    near = get_close_matches(name, states, n=3, cutoff=0.5) or list(states[:8])
    return problem(f"there is no state {name[:80]!r}", f"states: {', '.join(repr(state) for state in near)}")
