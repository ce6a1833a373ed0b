"""What explicit model files cannot say, kept beside them or in their comments: names, starts, and rational rewards.

The explicit formats of PRISM and Storm number their states, take only identifiers for labels and reward structures, and
know one initial state. A chain is therefore written as `tracebridge.export.single_start` says it, and a record keeps
the rest: the names, the initial distribution, rewards that are rationals, variables and constants. With its record a
file becomes the very chain again. Transitions are in the file alone; what stands in both must agree.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from tracebridge.chain.document import checked_document
from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.errors import Location, ModelError, Problem
from tracebridge.export.file_numbers import ratio_text
from tracebridge.export.names import identifier_of
from tracebridge.export.single_start import single_start

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

KIND = "explicit-names"

SCHEMA_VERSION = 1

#: States are labels under their own names up to this many; each label takes a truth value a state in every tool.
MAX_STATE_LABELS = 1_000

_MAX_LABEL_ENTRIES = 10**9  # truth values of all labels; a short record could ask for far more

_INTEGER = re.compile(r"-?[0-9]{1,4300}", re.ASCII)
_DTYPES = {"int": np.int64, "bool": np.bool_, "double": np.float64}


class _Rationals(msgspec.Struct, forbid_unknown_fields=True):
    """A vector over one denominator; zeros are left out."""

    denominator: str
    numerators: dict[str, str]


class _Reward(msgspec.Struct, forbid_unknown_fields=True):
    """``state`` and ``action`` are there where they are rationals; ``has_action`` where there are any."""

    name: str
    has_action: bool
    state: _Rationals | None = None
    action: _Rationals | None = None


class _Variable(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    type: Literal["int", "bool", "double"]
    values: list[bool | int | float]


class NameRecord(msgspec.Struct, forbid_unknown_fields=True):
    """The document; see the module."""

    kind: str
    schema_version: int
    exact: bool
    states: list[str]
    labels: list[str]
    rewards: list[_Reward]
    initial: dict[str, float] | None = None
    initial_rationals: _Rationals | None = None
    variables: list[_Variable] = []
    constants: dict[str, str | bool] = {}


# ---------------------------------------------------------------- writing


def in_doubles(chain: MarkovChain) -> MarkovChain:
    """The chain with every rational rounded to a double."""
    rewards = {name: RewardStructure(state=held.state, action=held.action) for name, held in chain.rewards.items()}
    return MarkovChain(
        states=chain.states,
        transitions=chain.transitions,
        initial=chain.initial,
        labels=chain.labels,
        rewards=rewards,
        variables=chain.variables,
        constants=chain.constants,
    )


def labels_to_write(written: MarkovChain) -> dict[str, NDArray[np.int64]]:
    """Where each label of a file holds, as positions; states under their own names too where they are few."""
    labels = {name: np.flatnonzero(mask) for name, mask in written.labels.items()}
    if written.n_states <= MAX_STATE_LABELS:
        for i, name in enumerate(written.states):
            labels.setdefault(name, np.array([i], dtype=np.int64))
    return labels


def record_of(chain: MarkovChain) -> dict[str, Any]:
    """The record of a chain, as a JSON document."""
    rewards = []
    for name, structure in chain.rewards.items():
        reward: dict[str, Any] = {"name": name, "has_action": structure.action is not None}
        for key, exact in (("state", structure.exact_state), ("action", structure.exact_action)):
            if exact is not None:
                reward[key] = _rationals(exact)
        rewards.append(reward)
    record: dict[str, Any] = {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "exact": chain.rationals is not None,
        "states": list(chain.states),
        "labels": list(chain.labels),
        "rewards": rewards,
    }
    if chain.initial_rationals is not None:
        record["initial_rationals"] = _rationals(chain.initial_rationals)
    else:
        record["initial"] = {str(i): float(chain.initial[i]) for i in np.flatnonzero(chain.initial).tolist()}
    if chain.variables:
        names = {np.dtype(dtype): name for name, dtype in _DTYPES.items()}
        record["variables"] = [
            {"name": name, "type": names[values.dtype], "values": values.tolist()}
            for name, values in chain.variables.items()
        ]
    if chain.constants:
        record["constants"] = {
            name: value if isinstance(value, bool) else f"{value.numerator}/{value.denominator}"
            for name, value in chain.constants.items()
        }
    return record


def _rationals(vector: RationalVector) -> dict[str, Any]:
    numerators = {str(i): ratio_text(top, 1) for i, top in enumerate(vector.numerators.tolist()) if top}
    return {"denominator": ratio_text(vector.denominator, 1), "numerators": numerators}


# ---------------------------------------------------------------- reading


def checked_record(data: Any, path: str) -> NameRecord:
    """A parsed JSON document as a record. Raises ModelError with the field."""
    return checked_document(data, NameRecord, kind=KIND, version=SCHEMA_VERSION, path=path)


def restore_names(found: MarkovChain, record: NameRecord, *, path: str) -> MarkovChain:
    """The chain that was written, given what its file says without the record.

    Args:
        found: the chain of the file, its states by position, its labels and rewards by identifiers. A label that holds
            nowhere may be missing. path: of the record, for messages.

    Raises:
        ModelError: file and record do not belong together, or the chain breaks an invariant.
    """
    return _Restoration(found, record, path).chain()


class _Restoration:
    def __init__(self, found: MarkovChain, record: NameRecord, path: str) -> None:
        self._found = found
        self._record = record
        self._path = path
        self._n = len(record.states)

    def chain(self) -> MarkovChain:
        found, record, n = self._found, self._record, self._n
        if n * len(record.labels) > _MAX_LABEL_ENTRIES:
            self._refuse(f"{len(record.labels)} labels over {n} states are more than can be held", "labels")
        initial = self._initial()
        spread = np.count_nonzero(initial.numerators if isinstance(initial, RationalVector) else initial) != 1
        if found.n_states != n + spread:
            self._refuse(f"{n} states are named where the file has {found.n_states - spread}", "states")
        if record.exact != (found.rationals is not None):
            self._refuse("the numbers of the file are not of this kind", "exact")
        try:
            chain = MarkovChain(
                states=tuple(record.states),
                transitions=self._transitions(),
                initial=initial,  # type: ignore[arg-type]  # the constructor takes a RationalVector too
                labels={name: self._label(name) for name in record.labels},
                rewards={reward.name: self._reward(reward) for reward in record.rewards},
                variables={variable.name: self._variable(variable) for variable in record.variables},
                constants={name: self._constant(name, value) for name, value in record.constants.items()},
            )
        except ModelError as error:
            raise ModelError(
                Problem(location=Location(path=self._path), message=problem.message, hint=problem.hint)
                if problem.location.path is None
                else problem
                for problem in error.problems
            ) from error
        self._compare(single_start(chain), has_start=bool(spread))
        return chain

    def _compare(self, written: MarkovChain, *, has_start: bool) -> None:
        """What stands both in the file and in the record."""
        found = self._found
        if not _same_matrix(found, written) or not np.array_equal(found.initial > 0, written.initial > 0):
            self._refuse("the file starts in other states, or with other probabilities", "initial")
        for name, structure in written.rewards.items():
            held = found.rewards[name]
            if not np.array_equal(held.state, structure.state) or not np.array_equal(
                _or_zero(held.action, found.n_states), _or_zero(structure.action, found.n_states)
            ):
                self._refuse(f"the file has other rewards {name!r}", "rewards")
        extra = found.labels.keys() - labels_to_write(written).keys()
        extra |= found.rewards.keys() - written.rewards.keys()
        if extra:
            self._refuse(f"the file has {sorted(extra)[0]!r}, which is not named here", "labels")
        if has_start and any(mask[-1] for name, mask in found.labels.items() if name != written.states[-1]):
            self._refuse("a label holds in the added first state of the file", "labels")

    def _transitions(self) -> csr_array | RationalMatrix:
        n, exact = self._n, self._found.rationals
        if exact is None:
            return self._found.transitions[:n, :n]
        end = int(exact.indptr[n])
        return RationalMatrix(
            exact.indptr[: n + 1], exact.indices[:end], exact.numerators[:end], exact.denominators[:n], n
        )

    def _initial(self) -> NDArray[np.float64] | RationalVector:
        if (rationals := self._record.initial_rationals) is not None:
            return self._vector(rationals, "initial_rationals")
        vector = np.zeros(self._n)
        for key, value in (self._record.initial or {}).items():
            vector[self._position(key, "initial")] = value
        return vector

    def _label(self, name: str) -> NDArray[np.bool_]:
        held = self._found.labels.get(identifier_of(name))
        return np.zeros(self._n, dtype=np.bool_) if held is None else held[: self._n]

    def _reward(self, reward: _Reward) -> RewardStructure:
        held = self._found.rewards.get(identifier_of(reward.name))
        if held is None:
            self._refuse(f"the file has no reward structure {identifier_of(reward.name)!r}", "rewards")
        state = None if reward.state is None else self._vector(reward.state, "rewards")
        action = None if reward.action is None else self._vector(reward.action, "rewards")
        actions = _or_zero(held.action, self._found.n_states)[: self._n] if reward.has_action else None
        return RewardStructure(
            state=held.state[: self._n] if state is None else state.to_float(),
            action=actions if action is None else action.to_float(),
            exact_state=state,
            exact_action=action,
        )

    def _variable(self, variable: _Variable) -> NDArray[Any]:
        accepted = {"int": (int,), "bool": (bool,), "double": (int, float)}[variable.type]
        for value in variable.values:
            if not isinstance(value, accepted) or isinstance(value, bool) != (variable.type == "bool"):
                self._refuse(f"{value!r} is no value of type {variable.type}", "variables")
        try:
            return np.array(variable.values, dtype=_DTYPES[variable.type])
        except OverflowError:
            self._refuse(f"a value of {variable.name!r} is beyond 64 bits", "variables")

    def _constant(self, name: str, value: str | bool) -> Fraction | bool:
        if isinstance(value, bool):
            return value
        top, _, bottom = value.partition("/")
        return Fraction(self._integer(top, "constants"), self._positive(bottom, f"constants.{name}"))

    def _vector(self, held: _Rationals, field: str) -> RationalVector:
        numerators = np.zeros(self._n, dtype=object)
        for key, top in held.numerators.items():
            numerators[self._position(key, field)] = self._integer(top, field)
        return RationalVector(numerators, self._positive(held.denominator, field))

    def _position(self, key: str, field: str) -> int:
        position = self._integer(key, field)
        if not 0 <= position < self._n:
            self._refuse(f"there is no state {key[:20]}", field)
        return position

    def _positive(self, text: str, field: str) -> int:
        value = self._integer(text, field)
        if value < 1:
            self._refuse(f"{text[:20]} is no denominator", field)
        return value

    def _integer(self, text: str, field: str) -> int:
        if not _INTEGER.fullmatch(text):
            self._refuse(f"{text[:20]!r} is no integer", field)
        return int(text)

    def _refuse(self, message: str, field: str) -> NoReturn:
        hint = "file and names belong together: undo the edit, or take the names away to read the file by itself"
        raise ModelError(Problem(location=Location(path=self._path, field=field), message=message, hint=hint))


def _or_zero(values: NDArray[np.float64] | None, n: int) -> NDArray[np.float64]:
    return np.zeros(n) if values is None else values


def _same_matrix(first: MarkovChain, second: MarkovChain) -> bool:
    a, b = first.transitions, second.transitions
    if not (np.array_equal(a.indptr, b.indptr) and np.array_equal(a.indices, b.indices)):
        return False
    if first.rationals is None or second.rationals is None:
        return np.array_equal(a.data, b.data)
    return np.array_equal(first.rationals.numerators, second.rationals.numerators) and np.array_equal(
        first.rationals.denominators, second.rationals.denominators
    )


def one_start(start: int, n: int, *, exact: bool) -> NDArray[np.float64] | RationalVector:
    """The initial distribution of a file that starts in one state, shape (n,)."""
    vector = np.zeros(n, dtype=np.int64)
    vector[start] = 1
    return RationalVector(vector, 1) if exact else vector.astype(np.float64)


def file_states(n: int, variables: Mapping[str, Sequence[Any]]) -> tuple[str, ...]:
    """What states are called that have no names: by the values of their variables, ``s=4`` or ``s=4,d=1``."""
    columns = variables or {"s": range(n)}
    return tuple(
        ",".join(f"{name}={_spelled(value)}" for name, value in zip(columns, row, strict=True))
        for row in zip(*columns.values(), strict=True)
    )


def _spelled(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
