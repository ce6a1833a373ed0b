"""MarkovChain: any discrete-time Markov chain with named states, labels, rewards and an initial distribution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tracebridge.chain.graph import reachable
from tracebridge.chain.model_problems import problem, refuse_if_any
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure, reward_problems
from tracebridge.chain.state_annotations import (
    IMPLICIT_LABELS,
    checked_labels,
    checked_names,
    checked_variables,
    constant_problems,
)
from tracebridge.chain.transition_rows import initial_problems, row_problems, rows_and_rationals, transition_records
from tracebridge.errors import ModelError
from tracebridge.html_table import SHOWN_ROWS, html_table


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
        names, problems = checked_names(self.states)
        rows, rationals = rows_and_rationals(self.transitions)
        set_(self, "transitions", rows)
        if rationals is not None:
            set_(self, "rationals", rationals)
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
        problems += row_problems(rows, self.rationals, self.states, self._state_text)
        problems += initial_problems(self.initial, self.initial_rationals, self.states)
        labels, label_problems = checked_labels(self.labels, self.states, names)
        variables, variable_problems = checked_variables(self.variables, self.states)
        problems += label_problems
        for name, structure in self.rewards.items():
            if not name:
                problems.append(problem("a reward structure needs a name"))
            for values in (structure.state, structure.action):
                if values is not None:
                    problems += reward_problems(name, values, n, "states", self._state_text)
        problems += variable_problems + constant_problems(self.constants, self.variables)
        refuse_if_any(problems)
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
        raise ModelError(problem(f'unknown label "{name}"', self._label_hint(name)))

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
        return transition_records(
            self.transitions, self.rationals, self.states, lambda i: {"source": self.states[i]}, first
        )

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

    def _state_text(self, state: int) -> str:
        """A state as messages name it."""
        return f"state {self.states[state]!r}"

    def _label_hint(self, name: str) -> str:
        from difflib import get_close_matches

        known = self.label_names()
        near = get_close_matches(name, known, n=3, cutoff=0.5)
        quoted = ", ".join(f'"{label}"' for label in (near or known[:8]))
        return f"did you mean {quoted}?" if near else f"known labels: {quoted}"
