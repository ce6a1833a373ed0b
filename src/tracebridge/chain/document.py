"""Chains as JSON documents, by state names: exact numbers as "numerator/denominator", doubles as they print shortest.

What is written is read back bit for bit. Documents from elsewhere are checked field by field before anything is built.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from math import gcd, lcm
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.errors import InputError, Location, ModelError, Problem
from tracebridge.traces.atomic_file import write_whole
from tracebridge.traces.text_document import decoded, parse_document

KIND = "markov-chain"

#: Version 2 added ``variables`` and ``constants``. A chain without them is written as version 1, as it always was.
SCHEMA_VERSION = 2

Number = str | float  # "1/3" or 0.25
_Document = TypeVar("_Document", bound=msgspec.Struct)

_FRACTION = re.compile(r"([0-9]{1,4000})/([0-9]{1,4000})", re.ASCII)
_CONSTANT = re.compile(r"-?[0-9]{1,4300}/0*[1-9][0-9]{0,4299}", re.ASCII)
_MAX_BITS = 2**33  # of all numerators that share a denominator


# ---------------------------------------------------------------- chains


class _RewardDocument(msgspec.Struct, forbid_unknown_fields=True):
    state: dict[str, Number]
    action: dict[str, Number] | None = None


_VariableType = Literal["int", "bool", "double"]
_DTYPES: Mapping[_VariableType, type] = {"int": np.int64, "bool": np.bool_, "double": np.float64}


class _VariableDocument(msgspec.Struct, forbid_unknown_fields=True):
    type: _VariableType
    values: dict[str, bool | int | float]


class _ChainDocument(msgspec.Struct, forbid_unknown_fields=True):
    kind: str
    schema_version: int
    states: list[str]
    initial: dict[str, Number]
    transitions: dict[str, dict[str, Number]]
    labels: dict[str, list[str]]
    rewards: dict[str, _RewardDocument]
    variables: dict[str, _VariableDocument] = {}
    constants: dict[str, str | bool] = {}


def chain_to_dict(chain: MarkovChain) -> dict[str, Any]:
    """The chain as a JSON document; zeros are left out.

    Numbers that the chain knows exactly are strings, in lowest terms; the others are doubles. ``variables`` (with a
    type and the value in every state) and ``constants`` are there where the chain has some.
    """
    states = chain.states
    matrix = chain.transitions
    values: Sequence[Any] = matrix.data.tolist()
    if (exact := chain.rationals) is not None:
        bottoms = exact.denominators[exact.row_of_entry].tolist()
        values = [_lowest_terms(*pair) for pair in zip(exact.numerators.tolist(), bottoms, strict=True)]
        matrix = exact
    indptr, indices = matrix.indptr.tolist(), matrix.indices.tolist()
    words: dict[str, Any] = {}
    if chain.variables:
        words["variables"] = {name: _variable_to_dict(states, held) for name, held in chain.variables.items()}
    if chain.constants:
        words["constants"] = {
            name: value if isinstance(value, bool) else fraction_text(value) for name, value in chain.constants.items()
        }
    return {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION if words else 1,
        "states": list(states),
        "initial": _by_state(states, chain.initial, chain.initial_rationals),
        "transitions": {
            source: {states[indices[k]]: values[k] for k in range(indptr[i], indptr[i + 1])}
            for i, source in enumerate(states)
        },
        "labels": {name: [states[i] for i in np.flatnonzero(mask).tolist()] for name, mask in chain.labels.items()},
        "rewards": {name: _reward_to_dict(states, structure) for name, structure in chain.rewards.items()},
        **words,
    }


def chain_from_dict(data: Any, path: str | None = None) -> MarkovChain:
    """Read `chain_to_dict`'s document, of this version or an older one.

    Args:
        data: what `json.loads` gives.
        path: where it comes from, for messages.

    Raises:
        ModelError: naming the field and state: an unknown version, a wrong type, an unknown or repeated state, exact
            numbers among doubles, or a chain that breaks an invariant.
    """
    document = checked_document(data, _ChainDocument, kind=KIND, version=SCHEMA_VERSION, oldest=1, path=path)
    reader = _Reader(document.states, path)
    rewards = {}
    for name, reward in document.rewards.items():
        state, exact_state = reader.vector(reward.state, f"rewards.{name}.state")
        action, exact_action = None, None
        if reward.action is not None:
            action, exact_action = reader.vector(reward.action, f"rewards.{name}.action")
        rewards[name] = RewardStructure(state=state, action=action, exact_state=exact_state, exact_action=exact_action)
    initial, exact_initial = reader.vector(document.initial, "initial")
    try:
        return MarkovChain(
            states=tuple(document.states),
            transitions=reader.matrix(document.transitions),
            initial=initial if exact_initial is None else exact_initial,  # type: ignore[arg-type]
            labels={name: reader.mask(held, f"labels.{name}") for name, held in document.labels.items()},
            rewards=rewards,
            variables={name: reader.variable(held, f"variables.{name}") for name, held in document.variables.items()},
            constants={name: reader.constant(text, f"constants.{name}") for name, text in document.constants.items()},
        )
    except ModelError as error:
        if path is None or any(problem.location.path for problem in error.problems):
            raise
        place = Location(path=path)
        raise ModelError([Problem(location=place, message=p.message, hint=p.hint) for p in error.problems]) from error


class _Reader:
    """Names to positions and texts to numbers, with the field in every complaint."""

    def __init__(self, states: Sequence[str], path: str | None) -> None:
        self._path = path
        self._position = {name: i for i, name in enumerate(states)}
        if len(self._position) != len(states):
            twice = Counter(states).most_common(1)[0][0]
            self._refuse(f"two states are called {twice!r}", "states")

    def mask(self, held: Iterable[str], field: str) -> NDArray[np.bool_]:
        mask = np.zeros(len(self._position), dtype=np.bool_)
        mask[[self._index(name, field) for name in held]] = True
        return mask

    def vector(self, values: Mapping[str, Number], field: str) -> tuple[NDArray[np.float64], RationalVector | None]:
        positions = [self._index(name, field) for name in values]
        if self._is_exact(values.values(), field):
            tops, bottom = self._over_one_denominator(values.values(), field)
            numerators = [0] * len(self._position)
            for position, top in zip(positions, tops, strict=True):
                numerators[position] = top
            exact = RationalVector(np.array(numerators, dtype=object), bottom)
            return exact.to_float(), exact
        floats = np.zeros(len(self._position))
        floats[positions] = list(values.values())
        return floats, None

    def variable(self, held: _VariableDocument, field: str) -> NDArray[Any]:
        """The values by state; every state has one, of the type that is named (a whole number may be a double)."""
        accepted: tuple[type, ...] = {"int": (int,), "bool": (bool,), "double": (int, float)}[held.type]
        values: NDArray[Any] = np.zeros(len(self._position), dtype=_DTYPES[held.type])
        missing = dict.fromkeys(self._position)
        for name, value in held.values.items():
            position = self._index(name, field)
            is_truth = isinstance(value, bool)
            if is_truth != (held.type == "bool") or not isinstance(value, accepted):
                self._refuse(f"{value!r} is no value of type {held.type}", field)
            try:
                values[position] = value
            except OverflowError:
                self._refuse(f"a value of {name!r} is beyond 64 bits", field)
            del missing[name]
        if missing:
            self._refuse(f"state {next(iter(missing))!r} has no value", field)
        return values

    def constant(self, text: str | bool, field: str) -> Fraction | bool:
        if isinstance(text, bool):
            return text
        if not _CONSTANT.fullmatch(text):
            self._refuse(f"{text[:80]!r} is no fraction such as '1/3'", field)
        return Fraction(text)

    def matrix(self, rows: Mapping[str, Mapping[str, Number]]) -> RationalMatrix | csr_array:
        n = len(self._position)
        kinds: set[bool] = set()
        entries: list[list[tuple[int, Any]]] = [[] for _ in range(n)]
        denominators = [1] * n
        for source, row in rows.items():
            i, field = self._index(source, "transitions"), f"transitions.{source}"
            numbers: list[Any] = list(row.values())
            if row:
                kinds.add(self._is_exact(numbers, field))
            if len(kinds) > 1:
                self._refuse("some numbers are exact and some are doubles", "transitions")
            if True in kinds:
                numbers, denominators[i] = self._over_one_denominator(numbers, field)
            positions = [self._index(name, field) for name in row]
            entries[i] = sorted((j, number) for j, number in zip(positions, numbers, strict=True) if number)
        indptr = np.cumsum([0, *map(len, entries)], dtype=np.int64)
        indices = np.array([j for entry in entries for j, _ in entry], dtype=np.int64)
        numbers = [number for entry in entries for _, number in entry]
        if True in kinds:
            bottoms = np.array(denominators, dtype=object)
            return RationalMatrix(indptr, indices, np.array(numbers, dtype=object), bottoms, n)
        return csr_array((np.array(numbers, dtype=np.float64), indices, indptr), shape=(n, n))

    def _index(self, name: str, field: str) -> int:
        if name not in self._position:
            self._refuse(f"there is no state {name!r}", field)
        return self._position[name]

    def _is_exact(self, values: Iterable[Number], field: str) -> bool:
        kinds = {isinstance(value, str) for value in values}
        if len(kinds) > 1:
            self._refuse("some numbers are exact and some are doubles", field)
        return True in kinds

    def _over_one_denominator(self, values: Collection[Number], field: str) -> tuple[list[int], int]:
        """Numerators over the least common denominator, which is not let grow beyond all memory."""
        pairs = []
        common = 1
        for value in values:
            match = _FRACTION.fullmatch(str(value))
            if match is None or not int(match[2]):
                self._refuse(f"{str(value)[:80]!r} is no fraction such as '1/3'", field)
            pairs.append((int(match[1]), int(match[2])))
            common = lcm(common, pairs[-1][1])
            if common.bit_length() * len(values) > _MAX_BITS:
                self._refuse("the common denominator of these fractions has too many digits", field)
        return [top * (common // bottom) for top, bottom in pairs], common

    def _refuse(self, message: str, field: str) -> NoReturn:
        raise ModelError(message, location=Location(path=self._path, field=field))


def fraction_text(value: Fraction) -> str:
    """``numerator/denominator`` in lowest terms."""
    return f"{value.numerator}/{value.denominator}"


def _lowest_terms(top: int, bottom: int) -> str:
    common = gcd(top, bottom)
    return f"{top // common}/{bottom // common}"


def _by_state(states: Sequence[str], values: NDArray[np.float64], exact: RationalVector | None) -> dict[str, Any]:
    if exact is not None:
        pairs = zip(states, exact.numerators.tolist(), strict=True)
        return {state: _lowest_terms(top, exact.denominator) for state, top in pairs if top}
    return {state: value for state, value in zip(states, values.tolist(), strict=True) if value}


def _variable_to_dict(states: Sequence[str], values: NDArray[Any]) -> dict[str, Any]:
    kind = next(name for name, dtype in _DTYPES.items() if values.dtype == dtype)
    return {"type": kind, "values": dict(zip(states, values.tolist(), strict=True))}


def _reward_to_dict(states: Sequence[str], reward: RewardStructure) -> dict[str, Any]:
    written = {"state": _by_state(states, reward.state, reward.exact_state)}
    if reward.action is not None:
        written["action"] = _by_state(states, reward.action, reward.exact_action)
    return written


# ---------------------------------------------------------------- documents and files


def checked_document(
    data: Any, schema: type[_Document], *, kind: str, version: int, path: str | None, oldest: int | None = None
) -> _Document:
    """``data`` as ``schema``, after its kind and version were looked at; versions from ``oldest`` on are read.

    Raises:
        ModelError: naming the field.
    """
    if not isinstance(data, Mapping):
        raise ModelError(f"a {kind} document is an object, not {type(data).__name__}", location=Location(path=path))
    if data.get("kind") != kind:
        found = repr(data.get("kind"))[:80]
        raise ModelError(f"this is {found}, not {kind!r}", location=Location(path=path, field="kind"))
    known = range(version if oldest is None else oldest, version + 1)
    found_version = data.get("schema_version")
    if type(found_version) is not int or found_version not in known:
        named = " and ".join(map(str, known))
        raise ModelError(
            Problem(
                location=Location(path=path, field="schema_version"),
                message=f"version {repr(found_version)[:80]} of {kind!r} is unknown, "
                f"{named} {'is' if len(known) == 1 else 'are'} known",
                hint="read it with the version of tracebridge that wrote it",
            )
        )
    try:
        return msgspec.convert(data, schema, strict=True)
    except msgspec.ValidationError as error:
        message, _, field = str(error).partition(" - at ")
        place = Location(path=path, field=field.strip("`").removeprefix("$.") or None)
        raise ModelError(message, location=place) from error


def read_document(path: str | Path) -> Any:
    """Parse a JSON file.

    Raises:
        ModelError: if there is no such file, or with line and column if it is not JSON; also for a key given twice,
            NaN, infinities and nesting beyond what can be parsed.
    """
    place = Location(path=str(path))
    if not Path(path).exists():
        raise ModelError("there is no such file", location=place)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror}", location=place) from error
    return parse_document(decoded(data, str(path)), str(path))


def document_text(data: Mapping[str, Any]) -> str:
    """JSON as every document of ours is written: in ASCII, keys in the order given, with one line end at its end."""
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def write_document(path: str | Path, data: Mapping[str, Any]) -> None:
    """Write JSON in ASCII; the file appears whole or not at all.

    Raises:
        InputError: if the place cannot be written to.
    """
    try:
        write_whole(path, document_text(data).encode("ascii"))
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", location=Location(path=str(path))) from error


def read_chain(path: str | Path) -> MarkovChain:
    """The chain in a JSON file: a ``markov-chain`` document, or the chain of a ``chain-fit`` document.

    Raises:
        ModelError: as `read_document` and `chain_from_dict` do.
    """
    data = read_document(path)
    if isinstance(data, dict) and data.get("kind") == "chain-fit":
        data = data.get("chain")
    return chain_from_dict(data, str(path))


def write_chain(path: str | Path, chain: MarkovChain) -> None:
    """Write the chain as a ``markov-chain`` document."""
    write_document(path, chain_to_dict(chain))
