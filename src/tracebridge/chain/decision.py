"""DecisionProcess: any Markov decision process with named states and actions, labels, rewards and a start.

In each state something or somebody chooses one of several rows of probabilities. Who chooses, a *scheduler*, makes a
Markov chain of the process (`DecisionProcess.induced`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array

from tracebridge.chain.graph import reachable
from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.model_problems import problem, refuse_if_any
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure, reward_problems
from tracebridge.chain.transition_rows import row_problems, rows_and_rationals, transition_records
from tracebridge.errors import ModelError, Problem
from tracebridge.html_table import SHOWN_ROWS, html_table

if TYPE_CHECKING:
    from tracebridge.chain.decision_scheduler import Scheduler


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DecisionProcess:
    """A discrete-time Markov decision process. Immutable; every invariant is checked here and nothing is normalised.

    Its m *choices* are the rows of the transition matrix, state by state: those of state i are the rows from
    ``choice_starts[i]`` up to ``choice_starts[i + 1]``. A row of doubles denotes the distribution proportional to
    it, as in `MarkovChain`.

    Attributes:
        states: n unique, non-empty names.
        actions: for each state the names of its choices, at least one. The empty name is an action without a name.
            Choices of one state may share a name, as commands of a PRISM module may.
        transitions: CSR, shape (m, n), no stored zeros. A `RationalMatrix` may be given instead; it is then kept in
            `rationals` and this is its rounding.
        initial, labels, variables, constants: as in `MarkovChain`.
        rewards: named reward structures: ``state`` of shape (n,), earned at each time the state is occupied, and
            ``action`` of shape (m,), earned by each choice.
        choice_starts: shape (n + 1,).
        frame: the states, initial distribution, labels, variables, constants and state rewards as a chain that never
            moves.

    Raises:
        ModelError: naming every state, action and number that breaks an invariant.
    """

    states: tuple[str, ...]
    actions: tuple[tuple[str, ...], ...]
    transitions: csr_array
    initial: NDArray[np.float64]
    labels: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    rewards: Mapping[str, RewardStructure] = field(default_factory=dict)
    variables: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    constants: Mapping[str, Fraction | bool] = field(default_factory=dict)
    rationals: RationalMatrix | None = None
    initial_rationals: RationalVector | None = None
    choice_starts: NDArray[np.int64] = field(init=False, repr=False)
    frame: MarkovChain = field(init=False, repr=False)

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "states", tuple(self.states))
        set_(self, "actions", tuple(tuple(names) for names in self.actions))
        rows, rationals = rows_and_rationals(self.transitions)
        set_(self, "transitions", rows)
        if rationals is not None:
            set_(self, "rationals", rationals)
        n, m = len(self.states), sum(map(len, self.actions))
        if len(self.actions) != n:
            raise ModelError(f"{n} states need {n} tuples of actions, not {len(self.actions)}")
        if self.transitions.shape != (m, n):
            raise ModelError(
                f"{m} choices in {n} states need a {m} x {n} transition matrix, not one of shape "
                f"{self.transitions.shape}"
            )
        starts = np.cumsum([0, *map(len, self.actions)], dtype=np.int64)
        set_(self, "choice_starts", starts)
        problems = [*self._action_problems()]
        problems += row_problems(rows, self.rationals, self.states, self.choice_text)
        for name, structure in self.rewards.items():
            if structure.action is not None:
                problems += reward_problems(name, structure.action, m, "choices", self.choice_text)
        refuse_if_any(problems)
        frame = MarkovChain(
            states=self.states,
            transitions=csr_array(eye_array(n, format="csr")),
            initial=self.initial,
            initial_rationals=self.initial_rationals,
            labels=self.labels,
            rewards={
                name: RewardStructure(state=held.state, exact_state=held.exact_state)
                for name, held in self.rewards.items()
            },
            variables=self.variables,
            constants=self.constants,
        )
        set_(self, "frame", frame)
        for name in ("initial", "initial_rationals", "labels", "variables", "constants"):
            set_(self, name, getattr(frame, name))
        set_(self, "rewards", MappingProxyType(dict(self.rewards)))
        for array in (self.transitions.data, self.transitions.indices, self.transitions.indptr, starts):
            array.flags.writeable = False

    @classmethod
    def of_chain(cls, chain: MarkovChain, action: str = "") -> DecisionProcess:
        """A chain as a process that has one choice in each state."""
        return cls(
            states=chain.states,
            actions=((action,),) * chain.n_states,
            transitions=chain.transitions if chain.rationals is None else chain.rationals,
            initial=chain.initial if chain.initial_rationals is None else chain.initial_rationals,  # type: ignore[arg-type]
            labels=chain.labels,
            rewards=chain.rewards,
            variables=chain.variables,
            constants=chain.constants,
        )

    # ------------------------------------------------------------ reading

    @property
    def n_states(self) -> int:
        """The number of states n."""
        return len(self.states)

    @property
    def n_choices(self) -> int:
        """The number of choices m, of all states together."""
        return int(self.choice_starts[-1])

    @property
    def state_of_choice(self) -> NDArray[np.int64]:
        """The state that each choice belongs to, shape (m,)."""
        return np.repeat(np.arange(self.n_states), np.diff(self.choice_starts))

    @property
    def is_exact(self) -> bool:
        """Whether transitions and initial distribution are known as rationals."""
        return self.rationals is not None and self.initial_rationals is not None

    @property
    def edges(self) -> csr_array:
        """Which state may follow which, by some choice: ones, CSR of shape (n, n)."""
        coordinates = self.transitions.tocoo().coords
        pairs = (self.state_of_choice[coordinates[0]], coordinates[1])
        union = csr_array((np.ones(len(pairs[0])), pairs), shape=(self.n_states, self.n_states))
        union.sum_duplicates()
        union.data[:] = 1
        return union

    def index(self, state: str) -> int:
        """The position of a state. Raises ModelError for a name that is no state."""
        return self.frame.index(state)

    def has_label(self, name: str) -> bool:
        """Whether `label` knows this name."""
        return self.frame.has_label(name)

    def label(self, name: str) -> NDArray[np.bool_]:
        """Where the label holds, shape (n,); see `MarkovChain.label`."""
        return self.frame.label(name)

    def label_names(self) -> list[str]:
        """Every name that `label` knows."""
        return self.frame.label_names()

    def word_names(self) -> list[str]:
        """Every bare word that a property may use: variables and formulas of the program, then constants."""
        return self.frame.word_names()

    def exact_transitions(self) -> RationalMatrix:
        """The rows in rationals, shape (m, n): as given, or each row of doubles divided by its exact sum."""
        return self.rationals if self.rationals is not None else RationalMatrix.from_float(self.transitions)

    def exact_initial(self) -> list[Fraction]:
        """The initial distribution in rationals: as given, or the doubles divided by their exact sum."""
        return self.frame.exact_initial()

    def reachable_states(self) -> NDArray[np.bool_]:
        """States that can be visited from the initial distribution by some choices, shape (n,)."""
        return reachable(self.edges, self.initial > 0)

    def induced(self, scheduler: Scheduler) -> MarkovChain:
        """The chain under a memoryless scheduler, deterministic or randomised; see `induced_chain`."""
        from tracebridge.chain.decision_scheduler import induced_chain

        return induced_chain(self, scheduler)

    def to_dict(self) -> dict[str, Any]:
        """A JSON document; see `decision_to_dict`."""
        from tracebridge.chain.decision_document import decision_to_dict

        return decision_to_dict(self)

    @classmethod
    def from_dict(cls, data: Any, path: str | None = None) -> DecisionProcess:
        """Read `to_dict`'s document; see `decision_from_dict`."""
        from tracebridge.chain.decision_document import decision_from_dict

        return decision_from_dict(data, path)

    def to_records(self, first: int | None = None) -> list[dict[str, Any]]:
        """One record a transition: ``source``, ``action``, ``choice``, ``target``, ``probability``, ``exact`` if known.

        ``choice`` is the row of the transition matrix.

        Args:
            first: only so many of them; all by default.
        """
        names = [name for names in self.actions for name in names]
        owner = self.state_of_choice

        def source(choice: int) -> dict[str, Any]:
            return {"source": self.states[owner[choice]], "action": names[choice], "choice": choice}

        return transition_records(self.transitions, self.rationals, self.states, source, first)

    def __repr__(self) -> str:
        kind = "rational" if self.is_exact else "double"
        return f"<DecisionProcess of {self.n_states} states, {self.n_choices} choices, {kind}>"

    def _repr_html_(self) -> str:
        rows = [
            [each[key] for key in ("source", "action", "target", "probability")] for each in self.to_records(SHOWN_ROWS)
        ]
        heads = ("state", "action", "successor", "probability")
        return html_table(heads, rows, caption=repr(self)[1:-1], noun="transitions", total=self.transitions.nnz)

    # ------------------------------------------------------------ invariants

    def choice_text(self, choice: int) -> str:
        """A choice as messages name it: ``state 'a', action 'b'``."""
        state = int(np.searchsorted(self.choice_starts, choice, side="right")) - 1
        position = choice - int(self.choice_starts[state])
        name = self.actions[state][position]
        return f"state {self.states[state]!r}, {f'action {name!r}' if name else f'choice {position}'}"

    def _action_problems(self) -> Iterator[Problem]:
        for state, names in zip(self.states, self.actions, strict=True):
            if not names:
                yield problem(f"state {state!r} has no choice", "if runs end there, give it one that leads back to it")
            for name in names:
                if not isinstance(name, str):
                    yield problem(f"state {state!r}: {name!r} cannot be the name of an action")
