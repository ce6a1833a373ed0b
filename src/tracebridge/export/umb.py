"""Chains and decision processes as archives of the unified Markov binary format (UMB), which Storm and PRISM read.

The archive says the model as every exported file does: labels, reward structures and actions go by their identifiers
(`tracebridge.export.names`), and a spread initial distribution becomes one added first state, the last in number.
Action rewards of a process are those of its choices; those of a chain are written as equal rewards of all branches of a
state, the form that both tools read in a chain without choices. What UMB has no place for is kept beside
(`tracebridge.export.umb_index`), so that `tracebridge.export.umb_reader` gives back the very model.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tracebridge.chain.decision import DecisionProcess
from tracebridge.chain.document import fraction_text
from tracebridge.chain.rational import RationalVector
from tracebridge.errors import InputError, Location, UsageError
from tracebridge.export.names import identifier_of
from tracebridge.export.prism_text import MAX_INTEGER_BITS
from tracebridge.export.single_start import added_state, single_start
from tracebridge.export.umb_actions import action_members
from tracebridge.export.umb_archive import INDEX, write_archive
from tracebridge.export.umb_arrays import (
    Quotients,
    encode_bits,
    encode_doubles,
    encode_indices,
    encode_rationals,
    encode_strings,
    rational_size,
)
from tracebridge.export.umb_index import (
    BRANCHES,
    CHOICES,
    FORMAT_VERSION,
    IDENTIFIERS,
    INITIAL,
    INITIAL_PROBABILITIES,
    LAYOUT,
    MAX_INDEX_BYTES,
    MAX_STATES,
    NAMES,
    PROBABILITIES,
    TARGETS,
    TOOL,
    VALUATIONS,
    Annotation,
    FileData,
    Index,
    Parameters,
    TransitionSystem,
    Type,
    Valuation,
    ValuationClass,
    Valuations,
    Variable,
    annotation_member,
)
from tracebridge.export.umb_numbers import quotients_of, repeated
from tracebridge.traces.atomic_file import replacing
from tracebridge.version import __version__

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.chain.reward_structure import RewardStructure
    from tracebridge.export.umb_archive import Compression
    from tracebridge.export.umb_index import Entities

#: States are labels under their own names up to this many; each label takes a bit a state.
MAX_STATE_LABELS = 1_000

_VARIABLE_TYPES = {"i": Type("int", 64), "b": Type("bool", 8), "f": Type("double", 64)}
_RECORD_TYPES = {"i": "<i8", "b": "u1", "f": "<f8"}


def write_umb(
    model: MarkovChain | DecisionProcess, path: str | Path, *, compression: Compression | None = None
) -> None:
    """Write a model as a UMB archive; the file appears whole or not at all, and the same model gives the same bytes.

    Args:
        compression: of the archive as a whole; plain archives are the fastest, and the largest.

    Raises:
        UsageError: more states, or labels and rewards, than are read back, or a constant of too many digits.
        InputError: the place cannot be written to.
    """
    members = umb_members(model)
    try:
        with replacing(path) as file:
            write_archive(file, members.items(), compression)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", location=Location(path=str(path))) from error


def umb_members(model: MarkovChain | DecisionProcess) -> dict[str, bytes]:
    """The members of the archive by name, the index first. Raises UsageError as `write_umb` does."""
    if model.n_states >= MAX_STATES:
        raise UsageError(f"{model.n_states} states are more than the {MAX_STATES} that are read back")
    return _Members(model).written()


class _Members:
    """The arrays of an archive, and its index as they are added."""

    def __init__(self, model: MarkovChain | DecisionProcess) -> None:
        self._model = model
        self._process = model if isinstance(model, DecisionProcess) else None
        self._frame = model.frame if isinstance(model, DecisionProcess) else model  # all but the transitions
        self._added = added_state(self._frame)
        self._n = model.n_states + (self._added is not None)
        self._choice_actions = 0
        self._members: dict[str, bytes] = {INDEX: b""}
        self._annotations: dict[str, dict[str, Annotation]] = {}
        self._double_rewards: dict[str, list[Any]] = {}
        self._initial_type: Type | None = None
        self._valuations: Valuations | None = None

    def written(self) -> dict[str, bytes]:
        probabilities = self._add_transitions()
        self._add_choices()
        self._add_labels()
        for i, (name, structure) in enumerate(self._model.rewards.items()):
            self._add_reward(f"reward-{i}", name, structure)
        self._add_initial()
        self._add_names()
        self._add_variables()
        self._members[INDEX] = self._index(probabilities)
        return self._members

    def _index(self, probabilities: Type) -> bytes:
        constants: dict[str, str | bool] = {}
        for name, value in self._model.constants.items():
            if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_INTEGER_BITS:
                raise UsageError(f"constant {name!r} has more than {MAX_INTEGER_BITS} bits")
            constants[name] = value if isinstance(value, bool) else fraction_text(value)
        index = Index(
            format_version=FORMAT_VERSION,
            format_revision=0,
            transition_system=TransitionSystem(
                time="discrete",
                players=0 if self._process is None else 1,
                states=self._n,
                initial_states=1,
                choices=len(self._members[BRANCHES]) // 8 - 1,
                choice_actions=self._choice_actions,
                branches=len(self._members[TARGETS]) // 8,
                branch_actions=0,
                observations=0,
                branch_probability_type=probabilities,
            ),
            file_data=FileData(
                tool=TOOL,
                tool_version=__version__,
                parameters=Parameters(
                    layout=LAYOUT,
                    added_state=self._added is not None,
                    initial_type=self._initial_type,
                    constants=constants,
                    double_rewards=self._double_rewards,
                ),
            ),
            annotations=self._annotations,
            valuations=self._valuations,
        )
        data = msgspec.json.format(msgspec.json.encode(index), indent=1) + b"\n"
        if len(data) > MAX_INDEX_BYTES:
            raise UsageError(f"the index of this model takes {len(data)} bytes, and {MAX_INDEX_BYTES} are read back")
        return data

    # ------------------------------------------------------------ transitions and starts

    def _add_transitions(self) -> Type:
        chain, exact = self._frame, self._model.rationals
        matrix = self._model.transitions if exact is None else exact
        indptr, targets = np.asarray(matrix.indptr), np.asarray(matrix.indices)
        exact_values = None if exact is None else Quotients(exact.numerators, exact.denominators[exact.row_of_entry])
        doubles = self._model.transitions.data
        start = int(np.flatnonzero(_initial_support(chain))[0])
        if self._added is not None:
            start = chain.n_states
            if exact_values is None:
                support = np.flatnonzero(chain.initial)
                doubles = np.concatenate([doubles, chain.initial[support]])
            else:
                first = RationalVector.from_fractions(chain.exact_initial())
                if chain.initial_rationals is not None:
                    first = chain.initial_rationals
                support = np.flatnonzero(first.numerators)
                row = Quotients(first.numerators[support], repeated(first.denominator, len(support)))
                exact_values = Quotients(*(np.concatenate(parts) for parts in zip(exact_values, row, strict=True)))
            indptr = np.append(indptr, indptr[-1] + len(support))
            targets = np.concatenate([targets, support])
        self._members[INITIAL] = encode_bits(np.arange(self._n) == start)
        self._members[BRANCHES] = encode_indices(indptr)
        self._members[TARGETS] = encode_indices(targets)
        if exact_values is None:
            self._members[PROBABILITIES] = encode_doubles(doubles)
            return Type("double", 64)
        size = rational_size(exact_values)
        self._members[PROBABILITIES] = encode_rationals(exact_values, size)
        return Type("rational", size)

    def _add_choices(self) -> None:
        """The choices of each state and their actions; an added state has one, without a name."""
        if self._process is None:
            return
        starts, actions = self._process.choice_starts, self._process.actions
        if self._added is not None:
            starts, actions = np.append(starts, starts[-1] + 1), (*actions, ("",))
        self._members[CHOICES] = encode_indices(starts)
        members, self._choice_actions = action_members(actions)
        self._members |= members

    def _add_initial(self) -> None:
        """The initial distribution, where it is no plain one of the kind of the transitions in one state."""
        chain, exact = self._frame, self._frame.initial_rationals
        if self._added is None and (exact is None) == (self._model.rationals is None):
            if exact is None and float(chain.initial.max()) == 1.0:
                return
            if exact is not None and exact.denominator == 1:
                return
        if exact is None:
            self._initial_type = Type("double", 64)
            self._members[INITIAL_PROBABILITIES] = encode_doubles(chain.initial)
        else:
            quotients = quotients_of(chain.initial, exact)
            self._initial_type = Type("rational", rational_size(quotients))
            self._members[INITIAL_PROBABILITIES] = encode_rationals(quotients, self._initial_type.bits())

    # ------------------------------------------------------------ labels, rewards, names, variables

    def _add_labels(self) -> None:
        chain = self._frame
        for i, (name, mask) in enumerate(chain.labels.items()):
            self._add_label(f"label-{i}", identifier_of(name), name, mask)
        if self._added is not None:
            self._add_label("initial-states", self._added.initial_label, None, _initial_support(chain))
        if self._n <= MAX_STATE_LABELS:
            for i, name in enumerate(chain.states):
                if name not in chain.labels:
                    self._add_label(f"state-{i}", identifier_of(name), name, np.arange(chain.n_states) == i)
            if self._added is not None:
                self._add_label(f"state-{self._n - 1}", self._added.label, None, np.arange(self._n) == self._n - 1)

    def _add_label(self, identifier: str, alias: str, name: str | None, mask: NDArray[np.bool_]) -> None:
        self._members[annotation_member("aps", identifier, "states")] = encode_bits(self._padded(mask))
        described = name if name is not None and name != alias and _is_text(name) else None
        self._annotations.setdefault("aps", {})[identifier] = Annotation(
            applies_to=["states"], type=Type("bool", 1), alias=alias, description=described
        )

    def _add_reward(self, identifier: str, name: str, structure: RewardStructure) -> None:
        """State rewards, and action rewards as those of the choices, or in a chain of the branches."""
        parts: dict[Entities, tuple[NDArray[np.float64], RationalVector | None]] = {
            "states": (structure.state, structure.exact_state)
        }
        if structure.action is not None:
            entities: Entities = "branches" if self._process is None else "choices"
            parts[entities] = (structure.action, structure.exact_action)
        is_exact = any(exact is not None for _, exact in parts.values())
        if doubles := [key for key, (_, exact) in parts.items() if exact is None and is_exact]:
            self._double_rewards[identifier] = doubles
        arrays: dict[Entities, Quotients | NDArray[np.float64]] = {}
        for key, (values, exact) in parts.items():
            numbers = quotients_of(values, exact) if is_exact else values
            arrays[key] = self._spread(numbers) if key == "branches" else self._lengthened(numbers)
        kind = Type("double", 64)
        if is_exact:
            kind = Type("rational", max(rational_size(held) for held in arrays.values() if isinstance(held, Quotients)))
        for key, held in arrays.items():
            data = encode_rationals(held, kind.bits()) if isinstance(held, Quotients) else encode_doubles(held)
            self._members[annotation_member("rewards", identifier, key)] = data
        alias = identifier_of(name)
        described = name if name != alias and _is_text(name) else None
        self._annotations.setdefault("rewards", {})[identifier] = Annotation(
            applies_to=list(arrays), type=kind, alias=alias, description=described
        )

    def _add_names(self) -> None:
        names, folder = self._frame.states, NAMES
        if not _is_text("".join(names)):
            names, folder = tuple(map(identifier_of, names)), IDENTIFIERS
        bounds, data = encode_strings(names)
        self._members[f"{folder}/string-mapping.bin"] = bounds
        self._members[f"{folder}/strings.bin"] = data

    def _add_variables(self) -> None:
        """Valuations; an added state has the values that it has in every exported file, or else zeros."""
        variables = self._frame.variables
        if not variables:
            return
        kinds = {name: values.dtype.kind for name, values in variables.items()}
        records = np.zeros(self._n, dtype=[(name, _RECORD_TYPES[kind]) for name, kind in kinds.items()])
        as_exported = {} if self._added is None else single_start(self._frame).variables
        for name, values in variables.items():
            exported = as_exported.get(name)
            if exported is not None and np.array_equal(exported[: len(values)], values):
                records[name] = exported
            else:
                records[name][: len(values)] = values
        self._members[VALUATIONS] = records.tobytes()
        layout = [Variable(name=name, type=_VARIABLE_TYPES[kind]) for name, kind in kinds.items()]
        self._valuations = Valuations(states=Valuation(unique=False, classes=[ValuationClass(layout)]))

    # ------------------------------------------------------------ the added state

    def _padded(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return mask if len(mask) == self._n else np.append(mask, False)

    def _lengthened(self, numbers: Quotients | NDArray[np.float64]) -> Quotients | NDArray[np.float64]:
        """With a zero for the added state."""
        if self._added is None:
            return numbers
        if isinstance(numbers, Quotients):
            return Quotients(np.append(numbers.numerators, 0), np.append(numbers.denominators, numbers.denominators[0]))
        return np.append(numbers, 0.0)

    def _spread(self, numbers: Quotients | NDArray[np.float64]) -> Quotients | NDArray[np.float64]:
        """By branches: that of the choice which each belongs to."""
        indptr = np.frombuffer(self._members[BRANCHES], dtype="<i8")
        source = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        held = self._lengthened(numbers)
        if isinstance(held, Quotients):
            return Quotients(held.numerators[source], held.denominators[source])
        return held[source]


def _initial_support(chain: MarkovChain) -> NDArray[np.bool_]:
    """Where the initial distribution is not zero; a rational may round to zero without being zero."""
    if chain.initial_rationals is None:
        return chain.initial > 0
    return np.asarray(chain.initial_rationals.numerators != 0, dtype=np.bool_)


def _is_text(name: str) -> bool:
    """Whether UTF-8 can say it: no half of a surrogate pair stands alone."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
