"""The Storm process, run as a script: the only module that imports stormpy. It imports nothing of this package.

Storm crashes, hangs, ignores Ctrl-C and prints to the C standard output. Here it may: the process shares nothing with
its client but two pipes, on which a length and a MessagePack document (the structs below) go each way. Standard output
and error are a third pipe that the client reads. The process ends when its client does.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import struct
import sys
import tempfile
import threading
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LENGTH = struct.Struct(">Q")

#: Messages longer than this are refused by both ends.
MAX_MESSAGE = 1 << 33

#: Numbers: little-endian doubles, or exact rationals as hexadecimal ``numerator/denominator`` and ``inf``.
Numbers = bytes | list[str]

#: How systems of equations are solved: by state elimination (direct), by Gauss-Seidel iteration, by gmm++ (Krylov,
#: component by component), or in rationals.
Solver = Literal["elimination", "gauss-seidel", "gmm", "exact"]

#: Relative change at which the Gauss-Seidel iteration stops.
ITERATION_PRECISION = "1e-13"

# ---------------------------------------------------------------- messages


class RewardNumbers(msgspec.Struct, frozen=True):
    """What each state earns, and what leaving it earns."""

    state: Numbers
    action: Numbers | None = None


class LoadModel(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Keep a chain under an id; CSR arrays of int64, and rewards that formulas call ``r0``, ``r1``, ..."""

    model: int
    indptr: bytes
    indices: bytes
    values: Numbers
    initial: bytes
    rewards: list[RewardNumbers]
    forget: list[int]


class Evaluate(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Check a formula in every state of a loaded chain.

    ``labels`` are packed bit masks, called ``a0``, ``a1`` in the formula. ``reward`` is a state reward called ``v``;
    with it, the states in ``leaving`` (a mask) move to one extra state of reward zero instead of their successors.
    """

    model: int
    formula: str
    solver: Solver
    labels: list[bytes]
    reward: Numbers | None = None
    leaving: bytes | None = None


class BuildProgram(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Explore the reachable chain of a PRISM program; ``check_sums`` refuses updates that do not sum to exactly one."""

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


class Explored(msgspec.Struct, frozen=True, tag=True):
    """The reachable part of a program, states in the order in which Storm found them."""

    states: list[str]
    indptr: bytes
    indices: bytes
    values: Numbers
    initial: bytes
    labels: dict[str, bytes]
    rewards: dict[str, RewardNumbers]
    deadlocks: list[str]
    overlapping: list[str]


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


def pack_mask(mask: NDArray[np.bool_]) -> bytes:
    """A mask as bits."""
    return np.packbits(mask).tobytes()


def unpack_mask(data: bytes, n: int) -> NDArray[np.bool_]:
    """The first n bits as a mask."""
    bits = np.frombuffer(data, dtype=np.uint8)
    if len(bits) != (n + 7) // 8:
        raise WorkerError("protocol", f"a mask of {len(bits)} bytes does not fit {n} states")
    return np.unpackbits(bits, count=n).astype(np.bool_)


def pack_rational(value: Fraction) -> str:
    """A rational as hexadecimal text, which has no limit on its digits."""
    return f"{value.numerator:x}/{value.denominator:x}"


def unpack_rational(text: str) -> Fraction:
    """The reverse of `pack_rational`."""
    top, _, bottom = text.partition("/")
    return Fraction(int(top, 16), int(bottom, 16))


# ---------------------------------------------------------------- the process


class WorkerError(Exception):
    """A request that is answered by a `Failure`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


#: State and action rewards of each structure, in Storm's numbers.
_Rewards = dict[str, tuple[list[Any], list[Any] | None]]


class _Chain:
    """A chain in memory: its numbers, and Storm's model of it."""

    def __init__(self, request: LoadModel) -> None:
        self.indptr = _decode_indices(request.indptr)
        self.indices = _decode_indices(request.indices)
        self.exact = isinstance(request.values, list)
        self.n = len(self.indptr) - 1
        self.values = _decode(request.values)
        starts_right = self.n >= 1 and self.indptr[0] == 0 and not (np.diff(self.indptr) < 0).any()
        if not starts_right or self.indptr[-1] != len(self.indices) or len(self.values) != len(self.indices):
            raise WorkerError("protocol", "the arrays of a chain do not fit together")
        if len(self.indices) and not (self.indices.min() >= 0 and self.indices.max() < self.n):
            raise WorkerError("protocol", "a transition leads to no state")
        self.initial = unpack_mask(request.initial, self.n)
        rewards: _Rewards = {f"r{i}": _decode_rewards(reward, self.n) for i, reward in enumerate(request.rewards)}
        self.model = _storm_model(self.indptr, self.indices, self.values, self.initial, rewards, exact=self.exact)

    def leaving(self, mask: NDArray[np.bool_], reward: list[Any]) -> Any:
        """A model with the state reward ``v`` and one more state, to which the states in the mask move."""
        lengths = np.append(np.where(mask, 1, np.diff(self.indptr)), 1)
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        kept = ~np.repeat(mask, np.diff(self.indptr))
        indices = np.full(indptr[-1], self.n, dtype=np.int64)
        positions = np.flatnonzero(np.repeat(np.append(~mask, False), lengths))
        indices[positions] = self.indices[kept]
        values = [_one(exact=self.exact)] * len(indices)
        for position, value in zip(positions.tolist(), np.flatnonzero(kept).tolist(), strict=True):
            values[position] = self.values[value]
        rewards: _Rewards = {"v": ([*reward, _zero(exact=self.exact)], None)}
        return _storm_model(indptr, indices, values, np.append(self.initial, False), rewards, exact=self.exact)


def _storm_model(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int64],
    values: list[Any],
    initial: NDArray[np.bool_],
    rewards: _Rewards,
    *,
    exact: bool,
    chunk: int = 20_000,
) -> Any:
    """Storm's sparse DTMC with these states in this order, built in chunks to bound the memory for Python's lists."""
    from stormpy import Rational
    from stormpy.datastructures import BitVector, SparseMatrixBuilder
    from stormpy.models import SparseDtmc, SparseModelComponents, SparseRewardModel, StateLabeling

    number = Rational if exact else float
    n = len(indptr) - 1
    builder = SparseMatrixBuilder[number](rows=n, columns=n, entries=len(indices))
    for start in range(0, n, chunk):
        end = min(n, start + chunk)
        first, last = int(indptr[start]), int(indptr[end])
        rows = np.repeat(np.arange(start, end), np.diff(indptr[start : end + 1]))
        builder.add_next_values(rows.tolist(), indices[first:last].tolist(), values[first:last])
    labeling = StateLabeling(n)
    for name, states in (("init", np.flatnonzero(initial).tolist()), ("a0", []), ("a1", [])):
        labeling.add_label(name)
        labeling.set_states(name, BitVector(n, states))
    models = {
        name: SparseRewardModel[number](optional_state_reward_vector=state, optional_state_action_reward_vector=action)
        for name, (state, action) in rewards.items()
    }
    components = SparseModelComponents[number](
        transition_matrix=builder.build(), state_labeling=labeling, reward_models=models
    )
    return SparseDtmc[number](components)


class _Server:
    """Answers requests; holds the chains that were loaded."""

    def __init__(self) -> None:
        self.chains: dict[int, _Chain] = {}

    def answer(self, request: Request) -> Reply:
        match request:
            case LoadModel():
                for model in request.forget:
                    self.chains.pop(model, None)
                self.chains[request.model] = _Chain(request)
                return Loaded()
            case Evaluate():
                return Values(self._evaluate(request))
            case BuildProgram():
                return _explore(request)
            case ParseProperties():
                return Parsed([str(formula.get_raw_formula()) for formula in _parse(request.text)])
            case AskVersion():
                import stormpy

                return Version(stormpy.__version__)

    def _evaluate(self, request: Evaluate) -> Numbers:
        import stormpy
        from stormpy.datastructures import BitVector

        chain = self.chains.get(request.model)
        if chain is None:
            raise WorkerError("protocol", f"there is no chain {request.model}")
        if chain.exact != (request.solver == "exact"):
            raise WorkerError("protocol", f"the solver {request.solver!r} does not fit the numbers of the chain")
        model = chain.model
        if request.reward is not None:
            mask = (
                np.zeros(chain.n, dtype=np.bool_) if request.leaving is None else unpack_mask(request.leaving, chain.n)
            )
            model = chain.leaving(mask, _decode(request.reward, chain.n))
        if len(request.labels) > 2:
            raise WorkerError("protocol", f"{len(request.labels)} labels where two are known")
        for i, packed in enumerate(request.labels):
            states = np.flatnonzero(unpack_mask(packed, chain.n)).tolist()
            model.labeling.set_states(f"a{i}", BitVector(model.nr_states, states))
        formulas = _parse(request.formula)
        if len(formulas) != 1:
            raise WorkerError("protocol", f"{len(formulas)} formulas where one is answered")
        result = stormpy.model_checking(model, formulas[0], environment=_environment(request.solver))
        if result is None:
            raise WorkerError("storm", f"Storm gave no result for {request.formula}")
        if result.is_qualitative():
            truths = result.get_truth_values_vector()
            return np.array([truths.get(i) for i in range(chain.n)], dtype="<f8").tobytes()
        return _encode(result.get_value_vector()[: chain.n], exact=chain.exact)


def _environment(solver: Solver) -> Any:
    import stormpy
    from stormpy import environments

    if solver == "exact":
        return environments.exact()
    environment = environments.Environment()
    settings = environment.solver()
    if solver == "elimination":
        settings.set_linear_equation_solver_type(environments.EquationSolverType.ELIMINATION)
    elif solver == "gauss-seidel":
        settings.set_linear_equation_solver_type(environments.EquationSolverType.NATIVE)
        native = settings.native()
        native.method = environments.NativeLinearEquationSolverMethod.GAUSS_SEIDEL
        native.precision = stormpy.Rational(ITERATION_PRECISION)
    return environment


def _parse(text: str) -> list[Any]:
    import stormpy

    try:
        parsed: list[Any] = stormpy.parse_properties(text)
    except RuntimeError as error:
        raise WorkerError("property", _message(error)) from error
    return parsed


# ---------------------------------------------------------------- PRISM programs


def _explore(request: BuildProgram) -> Explored:
    import stormpy

    try:
        program = _program(request.text, request.constants)
        options = stormpy.BuilderOptions(build_full=True)
        options.set_add_overlapping_guards_label(True)
        options.set_exploration_checks(request.check_sums)
        options.set_add_out_of_bounds_state(not request.check_sums)  # the checks refuse such updates themselves
        model = stormpy.build_model[stormpy.Rational if request.exact else float](program, options=options)
    except (RuntimeError, stormpy.exceptions.StormError) as error:
        message = _message(error)
        raise WorkerError("sums" if "do not sum to one" in message else "model", message) from error
    states = _state_names(program, model)
    labeling = model.labeling
    marked = {name: _mask(labeling.get_states(name), model.nr_states) for name in labeling.get_labels()}
    deadlocks, overlapping = marked.pop("deadlock"), marked.pop("overlap_guards")
    initial = marked.pop("init")
    rows = [
        [(entry.column, entry.value) for entry in model.transition_matrix.get_row(i)] for i in range(model.nr_states)
    ]
    return Explored(
        states=states,
        indptr=np.cumsum([0, *(len(row) for row in rows)]).astype("<i8").tobytes(),
        indices=np.array([column for row in rows for column, _ in row], dtype="<i8").tobytes(),
        values=_encode([value for row in rows for _, value in row], exact=request.exact),
        initial=pack_mask(initial),
        labels={name: pack_mask(marked[name]) for name in sorted(marked)},
        rewards={
            name: _encode_rewards(reward, model.nr_states, exact=request.exact)
            for name, reward in sorted(model.reward_models.items())
        },
        deadlocks=[states[i] for i in np.flatnonzero(deadlocks)],
        overlapping=[states[i] for i in np.flatnonzero(overlapping)],
    )


def _program(text: str, constants: dict[str, str]) -> Any:
    """The program with all its constants defined."""
    import stormpy

    with tempfile.TemporaryDirectory() as folder:  # Storm reads files only
        path = Path(folder, "model.prism")
        path.write_text(text, encoding="utf-8")
        program = stormpy.parse_prism_program(str(path), simplify=False)  # drops variables that never change
    if program.model_type is not None and "DTMC" not in str(program.model_type):
        kind = str(program.model_type).rpartition(".")[2].lower()
        raise WorkerError("model", f"the model is of type {kind}; only dtmc models can be read")
    undefined = {constant.name for constant in program.get_undefined_constants()}
    for name in constants:
        if name not in undefined:
            known = ", ".join(sorted(undefined)) or "none"
            raise WorkerError("model", f"the model has no undefined constant {name!r} (undefined: {known})")
    if missing := sorted(undefined - constants.keys()):
        raise WorkerError("model", f"constants without a value: {', '.join(missing)}")
    if constants:
        definitions = ",".join(f"{name}={value}" for name, value in sorted(constants.items()))
        program, _ = stormpy.instantiate_constants(program, definitions)
    return program


def _state_names(program: Any, model: Any) -> list[str]:
    """``x=1,y=0``: the variables in the order of the program."""
    variables = [*program.global_integer_variables, *program.global_boolean_variables]
    for module in program.modules:
        variables += [*module.integer_variables, *module.boolean_variables]
    order = [variable.name for variable in variables]
    names = []
    for i in range(model.nr_states):
        valuation = json.loads(str(model.state_valuations.to_json(i))) or {}
        parts = [f"{name}={json.dumps(valuation[name])}" for name in order if name in valuation]
        name = ",".join(parts) or f"state{i}"
        if valuation.get("_OutOfBoundsBit"):
            raise WorkerError("model", f"an update leads to a value out of bounds for a variable (at {name})")
        names.append(name)
    return names


def _mask(states: Any, n: int) -> NDArray[np.bool_]:
    mask = np.zeros(n, dtype=np.bool_)
    mask[list(states)] = True
    return mask


# ---------------------------------------------------------------- numbers


def _one(*, exact: bool) -> Any:
    return _decode(["1/1"])[0] if exact else 1.0


def _zero(*, exact: bool) -> Any:
    return _decode(["0/1"])[0] if exact else 0.0


def _decode(numbers: Numbers, n: int | None = None) -> list[Any]:
    """Storm's numbers; of rationals only the text is taken exactly (integers above 2^63 go through doubles)."""
    if isinstance(numbers, bytes):
        if len(numbers) % 8:
            raise WorkerError("protocol", f"{len(numbers)} bytes are no array of doubles")
        values = np.frombuffer(numbers, dtype="<f8").tolist()
    else:
        from stormpy import Rational

        try:
            exact = [unpack_rational(text) for text in numbers]
        except (ValueError, ZeroDivisionError) as error:
            raise WorkerError("protocol", f"not a rational: {error}") from error
        values = [Rational(f"{value.numerator}/{value.denominator}") for value in exact]
    if n is not None and len(values) != n:
        raise WorkerError("protocol", f"{len(values)} numbers for {n} states")
    return list(values)


def _decode_indices(data: bytes) -> NDArray[np.int64]:
    if len(data) % 8:
        raise WorkerError("protocol", f"{len(data)} bytes are no array of 64-bit integers")
    return np.frombuffer(data, dtype="<i8")


def _decode_rewards(rewards: RewardNumbers, n: int) -> tuple[list[Any], list[Any] | None]:
    return _decode(rewards.state, n), None if rewards.action is None else _decode(rewards.action, n)


def _encode(values: Any, *, exact: bool) -> Numbers:
    """Storm's numbers as bytes or text; among its rationals infinity is a double."""
    if not exact:
        doubles = np.array(values, dtype="<f8")
        if np.isnan(doubles).any():
            raise WorkerError("storm", "Storm's result is not a number")
        return doubles.tobytes()
    texts = []
    for value in values:
        if isinstance(value, float):
            if value != float("inf"):
                raise WorkerError("storm", f"Storm's exact result is {value!r}")
            texts.append("inf")
        else:
            texts.append(pack_rational(Fraction(str(value))))
    return texts


def _encode_rewards(reward: Any, n: int, *, exact: bool) -> RewardNumbers:
    if reward.has_transition_rewards:
        raise WorkerError("model", "rewards on transitions are not supported; put them on states or commands")
    state = reward.state_rewards if reward.has_state_rewards else [_zero(exact=exact)] * n
    action = _encode(reward.state_action_rewards, exact=exact) if reward.has_state_action_rewards else None
    return RewardNumbers(state=_encode(state, exact=exact), action=action)


def _message(error: Exception) -> str:
    """What Storm says, without its layers of exception names and the advice about its own interface."""
    text = str(error).partition("\nNote that the used API function")[0].strip()
    while (head := text.partition(": "))[0].endswith("Exception"):
        text = head[2]
    return text


# ---------------------------------------------------------------- the loop


def _reply_to(server: _Server, data: bytes) -> Reply:
    try:
        return server.answer(msgspec.msgpack.decode(data, type=Request))
    except msgspec.DecodeError as error:
        return Failure("protocol", str(error))
    except WorkerError as error:
        return Failure(error.kind, str(error))  # type: ignore[arg-type]
    except MemoryError:
        return Failure("memory", "out of memory")
    except RuntimeError as error:  # what Storm's C++ exceptions arrive as
        kind: Literal["memory", "storm"] = "memory" if "bad_alloc" in str(error) else "storm"
        return Failure(kind, _message(error))


def _exit_with(client: int) -> None:
    """End the process when the client closes its end of the pipe, even in the middle of a check."""
    poll = select.poll()
    poll.register(client, 0)  # a hang-up is always reported
    poll.poll()
    os._exit(0)


def serve(requests: int, replies: int, *, memory_limit: int | None = None) -> None:
    """Answer requests from one file descriptor on the other until the first is closed.

    Args:
        requests, replies: file descriptors. memory_limit: bytes of address space.
    """
    import stormpy

    if memory_limit is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory_limit, memory_limit))
    sys.set_int_max_str_digits(0)  # exact results may have many digits; this process reads only Storm's
    stormpy.developer.set_log_level(stormpy.developer.LogLevel.OFF)
    libc = ctypes.CDLL(None)
    server = _Server()
    with open(requests, "rb") as source, open(replies, "wb") as sink:
        threading.Thread(target=_exit_with, args=(requests,), daemon=True).start()
        while head := source.read(LENGTH.size):
            (length,) = LENGTH.unpack(head)
            if length > MAX_MESSAGE:
                raise SystemExit(f"a message of {length} bytes is too long")
            reply = msgspec.msgpack.encode(_reply_to(server, source.read(length)))
            libc.fflush(None)  # what Storm printed must be in the pipe before the reply is
            sink.write(LENGTH.pack(len(reply)) + reply)
            sink.flush()


def main() -> None:
    """Serve: the arguments are the two file descriptors and, optionally, the memory limit."""
    requests, replies, *limit = (int(argument) for argument in sys.argv[1:])
    serve(requests, replies, memory_limit=limit[0] if limit else None)


if __name__ == "__main__":
    main()
