"""What the Storm process and its client say to each other: a length, then a MessagePack document, each way.

Arrays are bytes, masks are packed bits, rationals are text. Nothing here knows Storm.
"""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LENGTH = struct.Struct(">Q")

#: Messages longer than this are refused by both ends.
MAX_MESSAGE = 1 << 33

#: Numbers: little-endian doubles, or exact rationals as hexadecimal ``numerator/denominator`` and ``inf``.
Numbers = bytes | list[str]

#: The most labels that a formula may use.
MAX_LABELS = 64

#: How systems of equations are solved: by state elimination (direct), by Gauss-Seidel iteration, by gmm++ (Krylov,
#: component by component), or in rationals. Of decision processes those of optimality: by policy iteration with state
#: elimination, by sound value iteration, or in rationals.
Solver = Literal["elimination", "gauss-seidel", "gmm", "policy-iteration", "sound", "exact"]


class RewardNumbers(msgspec.Struct, frozen=True):
    """What each state earns, and what leaving it earns."""

    state: Numbers
    action: Numbers | None = None


class LoadModel(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Keep a chain under an id; CSR arrays of int64, and rewards that formulas call ``r0``, ``r1``, ...

    With ``groups`` it is a decision process: state i has the rows ``groups[i]`` up to ``groups[i + 1]``, an array of
    int64, and action rewards are those of rows.
    """

    model: int
    indptr: bytes
    indices: bytes
    values: Numbers
    initial: bytes
    rewards: list[RewardNumbers]
    forget: list[int]
    groups: bytes | None = None


class Evaluate(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Check a formula in every state of a loaded chain.

    ``labels`` are packed bit masks, called ``a0``, ``a1``, ... in the formula. With ``rewards``, the chain gets one
    more state that is never left, and state rewards ``v0``, ``v1``, ... for all n + 1 states instead of its own; the
    states in ``leaving`` (a mask) move to the extra state instead of their successors. Formulas of LTL are to be asked
    with rewards: Storm's product with an automaton fails (2.0.0) where nothing leads to the last state.

    ``bounded`` says that the formula bounds these rewards. Such formulas Storm checks in initial states only, and gets
    wrong or crashes on (2.0.0) where too few states earn nothing: all states are made initial, and each moves on
    through a copy of itself that earns nothing and has no label. Of a decision process such rewards are those of its m
    choices and of the extra state: each choice leads to a state of its own that earns its reward.

    ``conditional`` says that the formula has the condition ``F "a1"``, which must be possible in the initial states,
    and lets Storm crash (2.0.0) where nothing leads to the last state in which it is: the extra state is the initial
    one, and a1 holds there.

    ``at_start`` asks for the one value in the initial state alone, which is all that Storm has for several objectives.
    It is asked in rationals only: in doubles Storm (2.0.0) may be wrong there, by far with sound value iteration.
    """

    model: int
    formula: str
    solver: Solver
    labels: list[bytes]
    rewards: list[Numbers] = []
    leaving: bytes | None = None
    bounded: bool = False
    conditional: bool = False
    at_start: bool = False


class BuildProgram(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Explore the reachable part of a PRISM program; ``check_sums`` refuses updates that do not sum to exactly one."""

    text: str
    constants: dict[str, str]
    exact: bool
    check_sums: bool


class ParseProperties(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Ask Storm's parser whether it takes a property text."""

    text: str


class AskVersion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Ask for the version of Storm."""


Request = LoadModel | Evaluate | BuildProgram | ParseProperties | AskVersion


class Loaded(msgspec.Struct, frozen=True, tag=True):
    """The chain is there."""


class Values(msgspec.Struct, frozen=True, tag=True):
    """One number a state; truth values are 0 and 1."""

    values: Numbers


class VariableValues(msgspec.Struct, frozen=True):
    """A variable of a program in every state: int64, or a mask of packed bits if it is Boolean."""

    boolean: bool
    values: bytes


class Explored(msgspec.Struct, frozen=True, tag=True):
    """The reachable part of a program, states in the order in which Storm found them.

    Few probabilities are different: ``values`` has each of them once, and ``value_of`` says for each entry of the
    matrix which it has (int64). ``variables`` come module by module. Of a decision process ``groups`` has the first row
    of each state and their number (int64), and ``actions`` the action of each row, empty where it has none.
    """

    states: list[str]
    indptr: bytes
    indices: bytes
    values: Numbers
    value_of: bytes
    initial: bytes
    labels: dict[str, bytes]
    rewards: dict[str, RewardNumbers]
    variables: dict[str, VariableValues]
    deadlocks: list[str]
    overlapping: list[str]
    groups: bytes | None = None
    actions: list[str] = []


class Parsed(msgspec.Struct, frozen=True, tag=True):
    """The properties as Storm prints them."""

    properties: list[str]


class Version(msgspec.Struct, frozen=True, tag=True):
    """The version of stormpy, which is that of Storm."""

    version: str


class Failure(msgspec.Struct, frozen=True, tag=True):
    """Why there is no answer.

    ``model`` and ``property`` blame the text that was sent; ``sums`` is a model whose updates do not sum to exactly
    one; ``memory`` is the memory limit, ``protocol`` a message that makes no sense, ``storm`` anything else Storm says.
    """

    kind: Literal["storm", "model", "sums", "property", "memory", "protocol"]
    message: str


Reply = Loaded | Values | Explored | Parsed | Version | Failure


class WorkerError(Exception):
    """A request that is answered by a `Failure`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def pack_mask(mask: NDArray[np.bool_]) -> bytes:
    """A mask as bits."""
    return np.packbits(mask).tobytes()


def unpack_mask(data: bytes, n: int) -> NDArray[np.bool_]:
    """The first n bits as a mask."""
    bits = np.frombuffer(data, dtype=np.uint8)
    if len(bits) != (n + 7) // 8:
        raise WorkerError("protocol", f"a mask of {len(bits)} bytes does not fit {n} states")
    return np.unpackbits(bits, count=n).astype(np.bool_)


def unpack_doubles(data: Numbers) -> NDArray[np.float64]:
    """The doubles of a model of doubles."""
    if not isinstance(data, bytes) or len(data) % 8:
        raise WorkerError("protocol", "these numbers are no array of doubles")
    return np.frombuffer(data, dtype="<f8").astype(np.float64)


def pack_rational(value: Fraction) -> str:
    """A rational as hexadecimal text, which has no limit on its digits."""
    return f"{value.numerator:x}/{value.denominator:x}"


def unpack_rational(text: str) -> Fraction:
    """The reverse of `pack_rational`."""
    top, _, bottom = text.partition("/")
    return Fraction(int(top, 16), int(bottom, 16))
