"""Reading archives of the unified Markov binary format (UMB): our own, and those of Storm, PRISM and others.

Of an archive of ours the very model comes back, name by name and bit by bit. Of others everything that a chain or a
decision process can say is kept: labels and rewards by their aliases, the names of actions, rationals as rationals,
variables, by which states are then named. Nothing is normalised, and an archive that says more (observations, several
players or initial states, rewards that differ between the branches of a choice) is refused.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from tracebridge.chain.decision import DecisionProcess
from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.errors import Location, ModelError, UsageError
from tracebridge.export.names import name_of
from tracebridge.export.umb_actions import read_actions
from tracebridge.export.umb_archive import INDEX, MAX_BYTES, at_member, read_archive, refuse
from tracebridge.export.umb_arrays import Quotients, decode_indices, decode_offsets, decode_strings, to_vector
from tracebridge.export.umb_index import (
    BRANCHES,
    CHOICES,
    IDENTIFIERS,
    INITIAL,
    INITIAL_PROBABILITIES,
    NAMES,
    PROBABILITIES,
    TARGETS,
    annotation_member,
    own_parameters,
)
from tracebridge.export.umb_members import Members, require_plain
from tracebridge.export.umb_numbers import by_choice, floats_of, head, matrix_of, part, vector_of
from tracebridge.export.umb_variables import variables_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.export.umb_index import Annotation, Entities
    from tracebridge.export.umb_numbers import Numbers

#: The label of states that a tool gave a loop because they had no transition; ``deadlock`` itself means none here.
MENDED = "mended_deadlock"

_CONSTANT = re.compile(r"-?[0-9]{1,4300}/0*[1-9][0-9]{0,4299}", re.ASCII)
_SINGLE_STATE = re.compile(r"state-(0|[1-9][0-9]*)")
_ROUNDING = 1e-12


def read_umb(
    source: str | Path | BinaryIO, *, path: str | None = None, max_bytes: int = MAX_BYTES
) -> MarkovChain | DecisionProcess:
    """The model that a UMB archive holds: a chain, or a decision process where it has a player.

    States are named as `write_umb` wrote them; else by the values of their variables, as ``x=1,y=true``, where those
    differ; else ``state0``, ``state1`` and so on. Names of the actions of a chain are not kept.

    Args:
        source: a file, or an open binary file at its start. path: for messages, where ``source`` is an open file.
        max_bytes: the most that the members of the archive may hold, decompressed.

    Raises:
        ModelError: with the member, the entry or state, and the value: no UMB archive, a damaged or hostile one, an
            array that does not fit the index, a model of another kind, or one that breaks an invariant, such as a row
            that does not sum to one.
    """
    if not isinstance(source, str | Path):
        return _model(read_archive(source, path=path, max_bytes=max_bytes), path)
    place = str(source) if path is None else path
    if not Path(source).exists():
        raise ModelError("there is no such file", location=Location(path=place))
    try:
        file = Path(source).open("rb")  # noqa: SIM115 - closed below; what fails later is told apart
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror}", location=Location(path=place)) from error
    with file:
        return _model(read_archive(file, path=place, max_bytes=max_bytes), place)


def _model(members: dict[str, bytes], path: str | None) -> MarkovChain | DecisionProcess:
    try:
        return _Archive(members).model()
    except ModelError as error:
        raise ModelError(
            replace(problem, location=replace(problem.location, path=path)) for problem in error.problems
        ) from error
    except (OverflowError, ValueError) as error:  # Python turns such integers into no double, or no decimals
        raise ModelError(
            f"a rational number of the archive has too many digits: {error}", location=Location(path=path)
        ) from error


class _Archive:
    """The members of an archive, read as its index declares them."""

    def __init__(self, members: dict[str, bytes]) -> None:
        self._members = Members(members)
        self._index = self._members.index
        self._n, self._m = self._members.n, self._members.m
        self._parameters = own_parameters(self._index)

    def model(self) -> MarkovChain | DecisionProcess:
        starts, indptr, targets, probabilities = self._transitions()
        own = self._parameters
        is_added = own is not None and own.added_state
        n = self._n - is_added  # of the model itself
        if n == 0:
            refuse("the added state is the only one", INDEX)
        m = int(starts[n])  # its choices
        end = int(indptr[m])  # its branches
        if is_added and len(indptr) != m + 2:
            refuse("the added first state has several choices", CHOICES)
        initial = self._initial(n, indptr, targets, probabilities)
        variables = variables_of(self._members)
        labels = {name: mask[:n] for name, mask in self._labels().items()}
        if is_added and np.any(targets[:end] == n):
            refuse("a state leads to the added first state, to which nothing leads", TARGETS)
        parts: dict[str, Any] = {
            "states": self._names(n, variables, labels),
            "transitions": matrix_of(indptr[: m + 1], targets[:end], head(probabilities, end), n),
            "initial": initial,
            "labels": labels,
            "rewards": self._rewards(n, m, indptr),
            "variables": {name: values[:n] for name, values in variables.items()},
            "constants": self._constants(),
        }
        if self._index.transition_system.players == 0:
            return MarkovChain(**parts)
        return DecisionProcess(actions=read_actions(self._members, starts[: n + 1], own=own is not None), **parts)

    # ------------------------------------------------------------ transitions and starts

    def _transitions(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Numbers]:
        """Where the choices of states and the branches of choices begin, and where each branch leads how probably."""
        system, n, m = self._index.transition_system, self._n, self._m
        type_ = system.branch_probability_type
        if type_ is None:
            refuse("the model has no probabilities", INDEX)
        probabilities = self._members.numbers(PROBABILITIES, type_, m)
        starts = self._ranges(CHOICES, "state", n, system.choices)
        indptr = self._ranges(BRANCHES, "state" if system.players == 0 else "choice", system.choices, m)
        data = self._members.member(TARGETS, 8 * m)
        with at_member(TARGETS):
            targets = np.zeros(m, dtype=np.int64) if data is None else decode_indices(data, n)
        return starts, indptr, targets, probabilities

    def _ranges(self, name: str, owner: str, n: int, total: int) -> NDArray[np.int64]:
        """The bounds of the choices of the states, or of the branches of the choices; none has none. Shape (n + 1,)."""
        data = self._members.member(name, 8 * (n + 1))
        if data is None and total != n:
            refuse(f"is absent, but {total} entries are to be divided among {n}", name)
        with at_member(name):
            bounds = np.arange(n + 1) if data is None else decode_offsets(data, total)
        empty = np.flatnonzero(np.diff(bounds) == 0)
        if len(empty):
            refuse(f"{owner} {int(empty[0])} leads nowhere; if runs end there, give it a loop", name)
        return bounds

    def _initial(
        self, n: int, indptr: NDArray[np.int64], targets: NDArray[np.int64], probabilities: Numbers
    ) -> NDArray[np.float64] | RationalVector:
        mask = self._members.bits(INITIAL)
        starts = np.flatnonzero(mask)
        if len(starts) != self._index.transition_system.initial_states:
            declared = self._index.transition_system.initial_states
            refuse(f"{len(starts)} states are initial where the index says {declared}", INITIAL)
        if len(starts) != 1:
            message = f"{len(starts)} states are initial, and the format knows no probabilities of them"
            refuse(message, INITIAL, "give the model one initial state that leads to the others")
        start = int(starts[0])
        type_ = None if self._parameters is None else self._parameters.initial_type
        is_added = n < self._n
        if is_added and (type_ is None or start != n):
            refuse("the file says that a first state was added, and does not start in it, or not as it says", INITIAL)
        if type_ is None:
            point = np.zeros(n, dtype=np.int64)
            point[start] = 1
            return RationalVector(point, 1) if isinstance(probabilities, Quotients) else point.astype(np.float64)
        held = self._members.numbers(INITIAL_PROBABILITIES, type_, n)
        with at_member(INITIAL_PROBABILITIES):
            vector = to_vector(held) if isinstance(held, Quotients) else held
        floats = vector.to_float() if isinstance(vector, RationalVector) else vector
        row = np.zeros(self._n)
        if is_added:
            span = slice(int(indptr[-2]), int(indptr[-1]))
            np.add.at(row, targets[span], floats_of(part(probabilities, span)))
        else:
            row[start] = 1.0
        if not np.allclose(row[:n], floats, rtol=0.0, atol=_ROUNDING):
            refuse("the initial distribution is not that of the first state of the file", INITIAL_PROBABILITIES)
        return vector

    # ------------------------------------------------------------ labels, rewards, names, variables

    def _labels(self) -> dict[str, NDArray[np.bool_]]:
        labels: dict[str, NDArray[np.bool_]] = {}
        for identifier, annotation in self._index.annotations.get("aps", {}).items():
            member = annotation_member("aps", identifier, "states")
            require_plain(annotation, member, {"states"})
            if annotation.type.type != "bool" or annotation.type.bits() != 1:
                refuse(f"an atomic proposition is of type bool, not {annotation.type.type}", member)
            mask = self._members.bits(member)
            if self._parameters is not None and _is_implied(identifier, mask, member):
                continue
            name = self._name(identifier, annotation)
            if name == "init":
                if not np.array_equal(mask, self._members.bits(INITIAL)):
                    refuse("'init' holds in other states than the initial ones", member)
                continue
            if name == "deadlock":
                if not mask.any():
                    continue
                name = MENDED
            if name in labels:
                refuse(f"two atomic propositions are called {name!r}", member)
            labels[name] = mask
        return labels

    def _rewards(self, n: int, m: int, indptr: NDArray[np.int64]) -> dict[str, RewardStructure]:
        """The rewards of the first n states and m choices."""
        rewards = {}
        for identifier, annotation in self._index.annotations.get("rewards", {}).items():
            state_member = annotation_member("rewards", identifier, "states")
            require_plain(annotation, state_member, {"states", "choices", "branches"})
            name = self._name(identifier, annotation)
            if name in rewards:
                refuse(f"two reward structures are called {name!r}", state_member)
            entities: list[Entities] = [key for key in annotation.applies_to if key != "states"]
            if len(entities) > 1:
                refuse("rewards of choices and of branches at once are not read", state_member)
            as_doubles = self._parameters.double_rewards.get(identifier, []) if self._parameters else []
            given = annotation if "states" in annotation.applies_to else None
            states = self._members.numbers(state_member, annotation.type, self._n)
            if given is None and state_member in self._members.held:
                refuse("is there, but the index says that the rewards do not apply to states", state_member)
            state, exact_state = vector_of(head(states, n), state_member, rounded="states" in as_doubles)
            action, exact_action = None, None
            if entities:
                member = annotation_member("rewards", identifier, entities[0])
                actions = self._members.numbers(member, annotation.type, self._members.count(entities[0]))
                if entities[0] == "branches":
                    actions = by_choice(actions, indptr, member)
                action, exact_action = vector_of(head(actions, m), member, rounded=entities[0] in as_doubles)
            rewards[name] = RewardStructure(
                state=state, action=action, exact_state=exact_state, exact_action=exact_action
            )
        return rewards

    def _name(self, identifier: str, annotation: Annotation) -> str:
        alias = identifier if annotation.alias is None else annotation.alias
        if self._parameters is None:
            return alias
        try:
            return name_of(alias)
        except UsageError as error:
            raise ModelError(f"alias of {identifier!r}: {error}", location=Location(field=INDEX)) from error

    def _names(
        self, n: int, variables: dict[str, NDArray[Any]], labels: dict[str, NDArray[np.bool_]]
    ) -> tuple[str, ...]:
        for folder in (NAMES, IDENTIFIERS):
            bounds, strings = f"{folder}/string-mapping.bin", f"{folder}/strings.bin"
            if self._parameters is None or bounds not in self._members.held or strings not in self._members.held:
                continue
            data = self._members.member(bounds, 8 * (n + 1)) or b""
            with at_member(bounds):
                names = decode_strings(data, self._members.held[strings])
            if folder == NAMES:
                return tuple(names)
            try:
                return tuple(map(name_of, names))
            except UsageError as error:
                raise ModelError(str(error), location=Location(field=strings)) from error
        if variables:
            columns = [[f"{name}={_spelled(value)}" for value in held[:n].tolist()] for name, held in variables.items()]
            names = list(map(",".join, zip(*columns, strict=True)))
            if len(set(names)) == n:
                return tuple(names)
        prefix = "state"
        while any(label.startswith(prefix) and label[len(prefix) :].isdigit() for label in labels):
            prefix = f"_{prefix}"
        return tuple(f"{prefix}{i}" for i in range(n))

    def _constants(self) -> dict[str, Fraction | bool]:
        constants: dict[str, Fraction | bool] = {}
        for name, text in (self._parameters.constants if self._parameters else {}).items():
            if isinstance(text, str) and not _CONSTANT.fullmatch(text):
                refuse(f"constant {name!r} is {text[:80]!r}, which is no fraction", INDEX)
            constants[name] = text if isinstance(text, bool) else Fraction(text)
        return constants


def _is_implied(identifier: str, mask: NDArray[np.bool_], member: str) -> bool:
    """Whether a label of an archive of ours follows from the model: the name of a state, or the initial states."""
    if identifier == "initial-states":
        return True
    single = _SINGLE_STATE.fullmatch(identifier)
    if single is None:
        return False
    if np.flatnonzero(mask).tolist() != [int(single[1])]:
        refuse(f"the label of state {single[1]} holds elsewhere; a file of ours was edited", member)
    return True


def _spelled(value: Any) -> str:
    return str(value).lower()
