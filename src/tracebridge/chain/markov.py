"""MarkovChain: any discrete-time Markov chain with named states, labels, rewards and an initial distribution."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from tracebridge.chain.graph import reachable
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.errors import Location, ModelError, Problem
from tracebridge.html_table import SHOWN_ROWS, html_table

#: A row of doubles may differ from one by this much, no more; rationals not at all.
ROW_SUM_TOLERANCE = 1e-12

#: Labels that every chain has without being given them.
IMPLICIT_LABELS = ("init", "deadlock")

_MAX_PROBLEMS = 20

_BARE_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RewardStructure:
    """A named reward: what a state earns at each time it is occupied, and what leaving it earns.

    In a sum over steps both count (``C``, ``F``, long-run ``S``); ``I=k`` looks at the state reward alone, as PRISM and
    Storm do.

    Attributes:
        state: shape (n,), non-negative and finite. action: the same, or None for zero.
        exact_state, exact_action: the same numbers as rationals; without them the doubles are taken as exact.
    """

    state: NDArray[np.float64]
    action: NDArray[np.float64] | None = None
    exact_state: RationalVector | None = None
    exact_action: RationalVector | None = None

    @classmethod
    def from_fractions(
        cls, state: Sequence[Fraction | int], action: Sequence[Fraction | int] | None = None
    ) -> RewardStructure:
        """Exact rewards."""
        exact_state = RationalVector.from_fractions(state)
        exact_action = None if action is None else RationalVector.from_fractions(action)
        return cls(
            state=exact_state.to_float(),
            action=None if exact_action is None else exact_action.to_float(),
            exact_state=exact_state,
            exact_action=exact_action,
        )

    def __post_init__(self) -> None:
        for name in ("state", "action"):
            values = getattr(self, name)
            if values is not None:
                object.__setattr__(self, name, _frozen(np.array(values, dtype=np.float64)))

    @property
    def per_step(self) -> NDArray[np.float64]:
        """State plus action reward, shape (n,)."""
        return self.state if self.action is None else self.state + self.action

    def fractions(self, *, action: bool) -> list[Fraction]:
        """The state rewards as Fractions; with ``action`` plus the action rewards."""
        state = self.exact_state.to_fractions() if self.exact_state else [Fraction(x) for x in self.state.tolist()]
        if not action or self.action is None:
            return state
        extra = self.exact_action.to_fractions() if self.exact_action else [Fraction(x) for x in self.action.tolist()]
        return [a + b for a, b in zip(state, extra, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarkovChain:
    """A discrete-time Markov chain. Immutable; every invariant is checked here and nothing is normalised.

    A row of doubles denotes the distribution proportional to it: its sum must be one within 1e-12, and the exact chain
    it stands for is the row divided by its exact sum (`exact_transitions`).

    Attributes:
        states: n unique, non-empty names.
        transitions: P, CSR, shape (n, n), no stored zeros. A `RationalMatrix` may be given instead; it is then kept
            in `rationals` and P is its rounding.
        initial: the initial distribution, shape (n,). A `RationalVector` may be given instead.
        labels: atomic propositions, each a boolean array of shape (n,). The name of a state is a label too, holding in
            that state only, and so are ``init`` (states with initial mass) and ``deadlock`` (none: rows sum to one).
        rewards: named reward structures.
        variables: what the states of a program are made of, each an array of shape (n,) of int64, bool or finite
            float64: its variables, and its formulas, which are computed from them. Properties name them as bare words;
            labels stand in quotes, so that a label and a variable may share a name.
        constants: the constants of a program by their exact values, also bare words. No variable has their name; a
            constant of a property file hides either.

    Raises:
        ModelError: naming every state and number that breaks an invariant.
    """

    states: tuple[str, ...]
    transitions: csr_array
    initial: NDArray[np.float64]
    labels: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    rewards: Mapping[str, RewardStructure] = field(default_factory=dict)
    variables: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    constants: Mapping[str, Fraction | bool] = field(default_factory=dict)
    rationals: RationalMatrix | None = None
    initial_rationals: RationalVector | None = None
    _index: dict[str, int] | None = field(init=False, repr=False)  # made when it is first asked for

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "states", tuple(self.states))
        set_(self, "_index", None)
        n = len(self.states)
        names, problems = _names(self.states)
        if isinstance(self.transitions, RationalMatrix):
            set_(self, "rationals", self.transitions)
            set_(self, "transitions", self.transitions.to_float())
        else:
            set_(self, "transitions", _canonical(self.transitions))
        if isinstance(self.initial, RationalVector):
            set_(self, "initial_rationals", self.initial)
            set_(self, "initial", self.initial.to_float())
        else:
            set_(self, "initial", np.array(self.initial, dtype=np.float64))
        if self.transitions.shape != (n, n):
            raise ModelError(
                f"{n} states need a {n} x {n} transition matrix, not one of shape {self.transitions.shape}"
            )
        if self.initial.shape != (n,):
            raise ModelError(f"{n} states need {n} initial probabilities, not an array of shape {self.initial.shape}")
        if n == 0:
            raise ModelError("a chain needs at least one state")
        problems += self._row_problems() + self._initial_problems()
        labels, label_problems = self._checked_labels(names)
        variables, variable_problems = self._checked_variables()
        problems += label_problems + self._reward_problems() + variable_problems + self._constant_problems()
        if problems:
            raise ModelError(problems[:_MAX_PROBLEMS] + _left_out(problems))
        for array in (self.transitions.data, self.transitions.indices, self.transitions.indptr, self.initial):
            array.flags.writeable = False
        set_(self, "labels", MappingProxyType(labels))
        set_(self, "rewards", MappingProxyType(dict(self.rewards)))
        set_(self, "variables", MappingProxyType(variables))
        set_(self, "constants", MappingProxyType(dict(self.constants)))

    # ------------------------------------------------------------ reading

    @property
    def n_states(self) -> int:
        """The number of states n."""
        return len(self.states)

    @property
    def is_exact(self) -> bool:
        """Whether transitions and initial distribution are known as rationals."""
        return self.rationals is not None and self.initial_rationals is not None

    @property
    def absorbing(self) -> NDArray[np.bool_]:
        """States whose only successor is themselves, by structure and not by closeness to one, shape (n,)."""
        single = np.diff(self.transitions.indptr) == 1
        alone = np.zeros(self.n_states, dtype=np.bool_)
        first = self.transitions.indptr[:-1][single]
        alone[single] = self.transitions.indices[first] == np.flatnonzero(single)
        return alone

    def index(self, state: str) -> int:
        """The position of a state. Raises ModelError for a name that is no state."""
        try:
            return self._positions()[state]
        except KeyError:
            raise ModelError(f"there is no state {state!r}") from None

    def has_label(self, name: str) -> bool:
        """Whether `label` knows this name."""
        return name in self.labels or name in self._positions() or name in IMPLICIT_LABELS

    def label(self, name: str) -> NDArray[np.bool_]:
        """Where the label holds, shape (n,): a given label, a state's own name, ``init`` or ``deadlock``.

        Raises:
            ModelError: for an unknown label, with the nearest known names.
        """
        if name in self.labels:
            return self.labels[name]
        position = self._positions().get(name)
        if position is not None:
            mask = np.zeros(self.n_states, dtype=np.bool_)
            mask[position] = True
            return mask
        if name == "init":
            return self.initial > 0
        if name == "deadlock":
            return np.zeros(self.n_states, dtype=np.bool_)
        raise ModelError(Problem(location=Location(), message=f'unknown label "{name}"', hint=self._label_hint(name)))

    def label_names(self) -> list[str]:
        """Every name that `label` knows: given labels, then states, then the implicit ones; each once."""
        return list(dict.fromkeys([*self.labels, *self.states, *IMPLICIT_LABELS]))

    def word_names(self) -> list[str]:
        """Every bare word that a property may use: variables and formulas of the program, then constants."""
        return [*self.variables, *self.constants]

    def exact_transitions(self) -> RationalMatrix:
        """P in rationals: as given, or each row of doubles divided by its exact sum."""
        return self.rationals if self.rationals is not None else RationalMatrix.from_float(self.transitions)

    def exact_initial(self) -> list[Fraction]:
        """The initial distribution in rationals: as given, or the doubles divided by their exact sum."""
        if self.initial_rationals is not None:
            return self.initial_rationals.to_fractions()
        values = [Fraction(value) for value in self.initial.tolist()]
        total = sum(values)
        return [value / total for value in values]

    def reachable_states(self) -> NDArray[np.bool_]:
        """States that the chain can visit from its initial distribution, shape (n,)."""
        return reachable(self.transitions, self.initial > 0)

    def to_networkx(self) -> Any:
        """A ``networkx.DiGraph`` over the state names with the edge attribute ``probability``."""
        import networkx as nx

        graph = nx.DiGraph()
        for i, name in enumerate(self.states):
            held = sorted(label for label, mask in self.labels.items() if mask[i])
            graph.add_node(name, initial=float(self.initial[i]), labels=held)
        rows, columns = self.transitions.tocoo().coords
        for i, j, value in zip(rows.tolist(), columns.tolist(), self.transitions.data.tolist(), strict=True):
            graph.add_edge(self.states[i], self.states[j], probability=value)
        return graph

    def to_records(self, first: int | None = None) -> list[dict[str, Any]]:
        """One record a transition: ``source``, ``target``, ``probability`` and, where known, ``exact``.

        Args:
            first: only so many of them; all by default.
        """
        rows, columns = (part[:first] for part in self.transitions.tocoo().coords)
        records: list[dict[str, Any]] = [
            {"source": self.states[i], "target": self.states[j], "probability": value}
            for i, j, value in zip(rows.tolist(), columns.tolist(), self.transitions.data[:first].tolist(), strict=True)
        ]
        if self.rationals is not None:
            bottoms = self.rationals.denominators[self.rationals.row_of_entry[:first]].tolist()
            for record, top, bottom in zip(records, self.rationals.numerators[:first].tolist(), bottoms, strict=True):
                record["exact"] = f"{top}/{bottom}"
        return records

    def __repr__(self) -> str:
        kind = "rational" if self.is_exact else "double"
        return f"<MarkovChain of {self.n_states} states, {self.transitions.nnz} transitions, {kind}>"

    def _repr_html_(self) -> str:
        rows = [(each["source"], each["target"], each["probability"]) for each in self.to_records(SHOWN_ROWS)]
        heads = ("state", "successor", "probability")
        return html_table(heads, rows, caption=repr(self)[1:-1], noun="transitions", total=self.transitions.nnz)

    def _positions(self) -> dict[str, int]:
        """The position of each state by its name."""
        if self._index is None:
            object.__setattr__(self, "_index", dict(zip(self.states, range(len(self.states)), strict=True)))
        assert self._index is not None  # noqa: S101 - for the type checker
        return self._index

    # ------------------------------------------------------------ invariants

    def _row_problems(self) -> list[Problem]:
        problems = []
        matrix = self.transitions
        row_of_entry = np.repeat(np.arange(len(self.states)), np.diff(matrix.indptr))
        for k in np.flatnonzero(~(matrix.data > 0) | ~np.isfinite(matrix.data)).tolist():
            source, target = self.states[row_of_entry[k]], self.states[matrix.indices[k]]
            number = float(matrix.data[k])
            problems.append(_problem(f"state {source!r}: the probability of going to {target!r} is {number!r}"))
        if problems:
            return problems
        if self.rationals is not None:
            sums, bottoms = self.rationals.row_sums(), self.rationals.denominators
            for i in np.flatnonzero(sums != bottoms).tolist():
                problems.append(
                    _problem(f"state {self.states[i]!r}: its row sums to {Fraction(int(sums[i]), int(bottoms[i]))}")
                )
            return problems
        row_sums = np.asarray(matrix.sum(axis=1)).ravel()
        for i in np.flatnonzero(np.abs(row_sums - 1) > ROW_SUM_TOLERANCE).tolist():
            problems.append(
                _problem(
                    f"state {self.states[i]!r}: its row sums to {float(row_sums[i])!r}",
                    "rows must sum to one; nothing is normalised",
                )
            )
        return problems

    def _initial_problems(self) -> list[Problem]:
        bad = np.flatnonzero(~(self.initial >= 0) | ~np.isfinite(self.initial)).tolist()
        if bad:
            numbers = [(self.states[i], float(self.initial[i])) for i in bad]
            return [_problem(f"state {state!r}: its initial probability is {number!r}") for state, number in numbers]
        if self.initial_rationals is not None:
            total = sum(self.initial_rationals.numerators.tolist())
            if total != self.initial_rationals.denominator:
                return [
                    _problem(f"the initial distribution sums to {Fraction(total, self.initial_rationals.denominator)}")
                ]
        elif abs(self.initial.sum() - 1) > ROW_SUM_TOLERANCE:
            return [_problem(f"the initial distribution sums to {float(self.initial.sum())!r}")]
        return []

    def _checked_labels(self, names: set[str]) -> tuple[dict[str, NDArray[np.bool_]], list[Problem]]:
        labels, problems = {}, []
        for name, given in self.labels.items():
            mask = _frozen(np.array(given, dtype=np.bool_))
            labels[name] = mask
            if not name or name in IMPLICIT_LABELS:
                problems.append(
                    _problem(f"{name!r} cannot be given as a label", "init and deadlock follow from the chain")
                )
            elif mask.shape != (len(self.states),):
                problems.append(_problem(f"label {name!r} has shape {mask.shape} for {len(self.states)} states"))
            elif name in names and (mask.sum() != 1 or self.states[int(mask.argmax())] != name):
                problems.append(
                    _problem(f"label {name!r} is the name of a state but holds elsewhere too", "rename the state")
                )
        return labels, problems

    def _reward_problems(self) -> list[Problem]:
        problems = []
        n = len(self.states)
        for name, structure in self.rewards.items():
            if not name:
                problems.append(_problem("a reward structure needs a name"))
            for values in (structure.state, structure.action):
                if values is None:
                    continue
                if values.shape != (n,):
                    problems.append(_problem(f"reward {name!r} has shape {values.shape} for {n} states"))
                    continue
                for i in np.flatnonzero(~(values >= 0) | ~np.isfinite(values)).tolist():
                    problems.append(
                        _problem(
                            f"state {self.states[i]!r}: its reward {name!r} is {float(values[i])!r}",
                            "rewards are finite and not negative",
                        )
                    )
        return problems

    def _checked_variables(self) -> tuple[dict[str, NDArray[Any]], list[Problem]]:
        variables, problems = {}, []
        for name, given in self.variables.items():
            values = np.array(given)
            if values.dtype.kind in "iu" and np.can_cast(values.dtype, np.int64):
                values = values.astype(np.int64)
            elif values.dtype.kind == "f":
                values = values.astype(np.float64)
            variables[name] = _frozen(values)
            if not isinstance(name, str) or not _BARE_WORD.fullmatch(name):
                problems.append(_problem(f"{name!r} cannot be the name of a variable", "use letters, digits and _"))
            elif values.shape != (len(self.states),):
                problems.append(_problem(f"variable {name!r} has shape {values.shape} for {len(self.states)} states"))
            elif values.dtype not in (np.int64, np.bool_, np.float64):
                problems.append(
                    _problem(f"variable {name!r} has values of type {values.dtype}", "give int64, bool or float64")
                )
            elif values.dtype == np.float64:
                for i in np.flatnonzero(~np.isfinite(values)).tolist():
                    problems.append(_problem(f"state {self.states[i]!r}: variable {name!r} is {float(values[i])!r}"))
        return variables, problems

    def _constant_problems(self) -> list[Problem]:
        problems = []
        for name, value in self.constants.items():
            if not isinstance(name, str) or not _BARE_WORD.fullmatch(name):
                problems.append(_problem(f"{name!r} cannot be the name of a constant", "use letters, digits and _"))
            elif name in self.variables:
                problems.append(_problem(f"{name!r} is both a variable and a constant", "rename one of them"))
            elif not isinstance(value, Fraction | bool):
                problems.append(_problem(f"constant {name!r} is {value!r}", "give a Fraction, or true or false"))
        return problems

    def _label_hint(self, name: str) -> str:
        from difflib import get_close_matches

        known = self.label_names()
        near = get_close_matches(name, known, n=3, cutoff=0.5)
        quoted = ", ".join(f'"{label}"' for label in (near or known[:8]))
        return f"did you mean {quoted}?" if near else f"known labels: {quoted}"


def _problem(message: str, hint: str | None = None) -> Problem:
    return Problem(location=Location(), message=message, hint=hint)


def _left_out(problems: list[Problem]) -> list[Problem]:
    extra = len(problems) - _MAX_PROBLEMS
    return [_problem(f"and {extra} more problems")] if extra > 0 else []


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def _names(states: tuple[str, ...]) -> tuple[set[str], list[Problem]]:
    """The names as a set, and what is wrong with them: looked for one by one only where something is."""
    names = set(states)
    sound = len(names) == len(states) and "" not in names and set(map(type, states)) <= {str}
    return names, [] if sound else _name_problems(states)


def _name_problems(states: tuple[str, ...]) -> list[Problem]:
    seen: set[str] = set()
    problems = []
    for name in states:
        if not isinstance(name, str) or not name:
            problems.append(_problem(f"{name!r} cannot be the name of a state"))
        elif name in seen:
            problems.append(_problem(f"two states are called {name!r}"))
        seen.add(name)
    return problems


def _canonical(matrix: csr_array | ArrayLike) -> csr_array:
    """A private CSR copy: sorted, duplicates added, zeros left out, int64 indices."""
    sparse = (
        csr_array(matrix, dtype=np.float64, copy=True)
        if issparse(matrix)
        else csr_array(np.asarray(matrix, dtype=np.float64))
    )
    sparse.sum_duplicates()
    sparse.eliminate_zeros()
    return csr_array((sparse.data, sparse.indices.astype(np.int64), sparse.indptr.astype(np.int64)), shape=sparse.shape)
