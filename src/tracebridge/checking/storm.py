"""The Storm engine: a worker process that is started when needed, and a session that asks it about one chain.

Storm answers in every state of the chain as it is, in our state order, with nothing in between that could rename or
round: arrays go in, numbers come out. Operands of an operator are sent as sets of states, never as names.

What Storm's language lacks is rewritten here, into queries that Storm does answer (`storm_formulation` says which):
``G``, ``W`` and ``R`` as complements of ``U``, and a lower step bound k as the mean, over the state after k steps, of
the value that remains from there.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import re
import selectors
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tracebridge.chain.markov import ROW_SUM_TOLERANCE, MarkovChain, RewardStructure
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.checking import worker as protocol
from tracebridge.checking.engine import STORM, Holds
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.modelcheck import rounding_amplification
from tracebridge.errors import EngineError, EngineTimeoutError, ModelError, PropertyError, UnsupportedError
from tracebridge.pctl import ast
from tracebridge.pctl.printer import format_formula

if TYPE_CHECKING:
    from tracebridge.checking.worker import Numbers, Reply, Request, Solver

    Mask = NDArray[np.bool_]

#: Seconds that one request may take unless the caller says otherwise.
TIME_LIMIT = 60.0

#: Seconds that the process may take to start.
START_LIMIT = 60.0

#: Up to this many states equations are solved by state elimination, which takes 0.1 s here and grows with the cube.
ELIMINATION_STATES = 300

#: Up to this many where an iteration would be slow or imprecise; state elimination takes one or two seconds here.
SLOW_ELIMINATION_STATES = 600

#: Entries that a quick iteration multiplies in all; some ten seconds.
ITERATION_WORK = 2e9

#: The module as a script: it needs nothing of this package, whose import would take longer than Storm's.
_COMMAND = ("-P", protocol.__file__)

_OUTPUT_KEPT = 8_192
_CHUNK = 1 << 16


class StormUnavailableError(EngineError):
    """stormpy is not installed, or cannot be loaded."""


# ---------------------------------------------------------------- the process, from outside


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    """A running worker with our ends of its pipes."""

    popen: subprocess.Popen[bytes]
    requests: int
    replies: int
    output: int
    stop: Callable[[], object]


def _stop(owner: int, popen: subprocess.Popen[bytes], descriptors: tuple[int, int]) -> None:
    """Kill the process and leave nothing of it behind; it holds no data of ours. A forked child only lets go of it."""
    if owner == os.getpid():
        popen.kill()
        popen.wait()
    if popen.stdout is not None:
        popen.stdout.close()
    for descriptor in descriptors:
        os.close(descriptor)


class StormWorker:
    """A Storm process, started at the first request and again after it died.

    The process is in a session of its own, so that Ctrl-C reaches only us; waiting for it is interruptible at any time,
    and whatever interrupts the wait kills it. A context manager; without ``with`` it ends with the object or the
    interpreter. Threads may share one worker and take turns; a forked child starts its own.
    """

    def __init__(self, *, memory_limit: int | None = None) -> None:
        """Nothing is started yet.

        Args:
            memory_limit: bytes of address space for the process; Storm itself takes about half a gigabyte.
        """
        self._memory_limit = memory_limit
        self._process: _Process | None = None
        self._owner = os.getpid()
        self._lock = threading.RLock()
        self._output = b""
        self._forgotten: list[int] = []
        self._ids = itertools.count()
        self._version = ""
        self._generation = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process; a later request starts a new one."""
        with self._lock:
            process, self._process = self._process, None
            if process is not None:
                process.stop()

    def version(self) -> str:
        """The version of Storm, such as ``2.0.0``.

        Raises:
            StormUnavailableError: stormpy is not there.
        """
        self.ensure_running()
        return self._version

    def parse_properties(self, text: str) -> list[str]:
        """The properties of a text as Storm understands and prints them.

        Raises:
            PropertyError: Storm's parser refuses the text.
        """
        reply = self.request(protocol.ParseProperties(text))
        if isinstance(reply, protocol.Failure):
            raise PropertyError(f"Storm does not take this property text: {reply.message}")
        assert isinstance(reply, protocol.Parsed)  # noqa: S101 - the worker pairs replies with requests
        return reply.properties

    def ensure_running(self) -> int:
        """Start the process unless it runs; the number of starts so far, which tells whether loaded chains are gone."""
        with self._lock:
            if self._owner != os.getpid():  # we are a forked child: the process is our parent's
                self.close()
                self._owner = os.getpid()
            if self._process is not None and self._process.popen.poll() is not None:
                self.close()
            if self._process is None:
                self._start()
            return self._generation

    def request(self, message: Request, *, time_limit: float = TIME_LIMIT) -> Reply:
        """Send a message and wait for the reply; only a `Failure` that blames the text sent is returned as such.

        Args:
            time_limit: seconds, not counting the start of the process.

        Raises:
            EngineTimeoutError: no reply in time; the process was killed.
            EngineError: the process died, ran out of memory, or Storm failed.
        """
        with self._lock:
            self.ensure_running()
            return self._exchange(message, time_limit)

    # ------------------------------------------------------------ inside

    def _start(self) -> None:
        if importlib.util.find_spec("stormpy") is None:
            raise StormUnavailableError('Storm is not installed; try: pip install "stormpy>=2,<3"')
        requests_read, requests_write = os.pipe()
        replies_read, replies_write = os.pipe()
        arguments = [requests_read, replies_write, *([] if self._memory_limit is None else [self._memory_limit])]
        try:
            popen = subprocess.Popen(
                [sys.executable, *_COMMAND, *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(requests_read, replies_write),
                start_new_session=True,
            )
        except BaseException:
            os.close(requests_write)
            os.close(replies_read)
            raise
        finally:
            os.close(requests_read)
            os.close(replies_write)
        stop = weakref.finalize(self, _stop, os.getpid(), popen, (requests_write, replies_read))
        assert popen.stdout is not None  # noqa: S101 - it is a pipe
        self._process = _Process(
            popen=popen, requests=requests_write, replies=replies_read, output=popen.stdout.fileno(), stop=stop
        )
        for descriptor in (self._process.requests, self._process.output):
            os.set_blocking(descriptor, False)
        self._generation += 1
        self._forgotten.clear()
        try:
            reply = self._exchange(protocol.AskVersion(), START_LIMIT)
        except EngineError as error:
            raise StormUnavailableError(f"Storm does not start: {error}") from error
        assert isinstance(reply, protocol.Version)  # noqa: S101 - the worker pairs replies with requests
        self._version = reply.version

    def _exchange(self, message: Request, time_limit: float) -> Reply:
        process = self._process
        assert process is not None  # noqa: S101 - the caller started it
        body = msgspec.msgpack.encode(message)
        if len(body) > protocol.MAX_MESSAGE:
            raise UnsupportedError(f"the chain is too large for one message to Storm ({len(body):,} bytes)")
        self._output = b""
        try:
            data = self._converse(process, protocol.LENGTH.pack(len(body)) + body, monotonic() + time_limit)
        except TimeoutError:
            self.close()
            raise EngineTimeoutError(
                f"Storm did not answer within {time_limit:g} s and was stopped{self._captured()}"
            ) from None
        except EOFError:
            self._report_death(process)
        except BaseException:  # Ctrl-C above all: Storm itself would go on
            self.close()
            raise
        reply: Reply = msgspec.msgpack.decode(data, type=protocol.Reply)
        if isinstance(reply, protocol.Failure) and reply.kind in {"storm", "memory", "protocol"}:
            if reply.kind == "memory":
                self.close()
                self._report_memory()
            raise EngineError(f"Storm failed: {reply.message}{self._captured()}")
        return reply

    def _converse(self, process: _Process, message: bytes, deadline: float) -> bytes:
        """Write the message and read the reply, while taking in whatever the process prints."""
        unsent = memoryview(message)
        received = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(process.requests, selectors.EVENT_WRITE)
            selector.register(process.replies, selectors.EVENT_READ)
            selector.register(process.output, selectors.EVENT_READ)
            while True:
                remaining = deadline - monotonic()
                if remaining <= 0:
                    raise TimeoutError
                for key, _ in selector.select(remaining):
                    if key.fd == process.requests:
                        try:
                            unsent = unsent[os.write(key.fd, unsent[:_CHUNK]) :]
                        except BrokenPipeError:
                            raise EOFError from None
                        if not unsent:
                            selector.unregister(key.fd)
                    elif key.fd == process.output:
                        if not self._take_output(process):
                            selector.unregister(key.fd)
                    else:
                        chunk = os.read(key.fd, 1 << 20)
                        if not chunk:
                            raise EOFError
                        received += chunk
                if len(received) >= protocol.LENGTH.size:
                    (length,) = protocol.LENGTH.unpack_from(received)
                    if length > protocol.MAX_MESSAGE:
                        raise EOFError
                    if len(received) == protocol.LENGTH.size + length:
                        self._take_output(process)
                        return bytes(received[protocol.LENGTH.size :])

    def _take_output(self, process: _Process) -> bool:
        """Read what was printed and keep the end of it; whether there may be more."""
        try:
            while chunk := os.read(process.output, _CHUNK):
                self._output = (self._output + chunk)[-_OUTPUT_KEPT:]
        except BlockingIOError:
            return True
        return False

    def _captured(self) -> str:
        text = self._output.decode(errors="replace").strip()
        return f"; it printed: {text}" if text else ""

    def _report_death(self, process: _Process) -> NoReturn:
        try:
            status = process.popen.wait(timeout=5)
        except subprocess.TimeoutExpired:  # it closed its pipe but lives on
            status = None
        self._take_output(process)
        self.close()
        if b"annot allocate memory" in self._output or b"bad_alloc" in self._output:  # GMP's last words, and C++'s
            self._report_memory()
        if status is None:
            how = "closed its pipe"
        elif status < 0:
            how = f"was killed by {signal.Signals(-status).name}"
        else:
            how = f"ended with status {status}"
        raise EngineError(f"the Storm process {how}{self._captured()}")

    def _report_memory(self) -> NoReturn:
        limit = "" if self._memory_limit is None else f" within its limit of {self._memory_limit:,} bytes"
        raise EngineError(f"Storm ran out of memory{limit}{self._captured()}")


def storm_version() -> str | None:
    """The version of Storm, or None where stormpy is not installed."""
    if importlib.util.find_spec("stormpy") is None:
        return None
    with StormWorker() as worker:
        return worker.version()


# ---------------------------------------------------------------- operators as Storm queries

#: Operands that must all hold: formulas, each as it stands or negated.
_Conjunction = tuple[tuple[ast.Formula, bool], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Query:
    """What Storm is asked for an operator.

    Attributes:
        formula: Storm's text; ``a0`` stands for the first operand and ``a1`` for the second.
        operands: at most two. steps: how many steps the formula looks ahead; None if it needs equations solved.
        complemented: the operator is one minus the answer. long_run: a long-run average.
        delay: the answer is about the state after that many steps, all of them spent in a1.
    """

    formula: str
    operands: tuple[_Conjunction, ...] = ()
    steps: int | None = None
    complemented: bool = False
    delay: int = 0
    long_run: bool = False


def _query(operator: ast.Operator, structure: str) -> _Query:
    """The query for an operator, whose reward structure Storm knows as ``structure``."""
    match operator:
        case ast.SteadyState(operand):
            return _Query(formula='S=? [ "a0" ]', operands=(((operand, True),),), long_run=True)
        case ast.Probability(ast.Next(operand)):
            return _Query(formula='P=? [ X "a0" ]', operands=(((operand, True),),), steps=1)
        case ast.Probability(path):
            return _until_query(path)
        case ast.Reward(ast.ReachReward(operand)):
            return _Query(formula=f'R{{"{structure}"}}=? [ F "a0" ]', operands=(((operand, True),),))
        case ast.Reward(ast.CumulativeReward(None)):
            return _Query(formula=f'R{{"{structure}"}}=? [ C ]')
        case ast.Reward(ast.CumulativeReward(bound, strict)) if bound is not None:
            steps = max(_whole(bound) - strict, 0)
            return _Query(formula=f'R{{"{structure}"}}=? [ C<={steps} ]', steps=steps)
        case ast.Reward(ast.InstantaneousReward(time)):
            steps = _whole(time)
            return _Query(formula=f'R{{"{structure}"}}=? [ I={steps} ]', steps=steps)
        case ast.Reward(ast.LongRunReward()):
            return _Query(formula=f'R{{"{structure}"}}=? [ S ]', long_run=True)
    raise UnsupportedError(f"Storm is not asked about {type(operator).__name__}")


def _until_query(path: ast.PathFormula) -> _Query:
    """Every path operator but X as ``a1 U a0`` or one minus it (PRISM's own reduction, step bounds carried over)."""
    stay: _Conjunction
    goal: _Conjunction
    match path:
        case ast.Eventually(a):
            stay, goal, complemented = (), ((a, True),), False
        case ast.Globally(a):
            stay, goal, complemented = (), ((a, False),), True
        case ast.Until(a, b):
            stay, goal, complemented = ((a, True),), ((b, True),), False
        case ast.WeakUntil(a, b):
            stay, goal, complemented = ((a, True), (b, False)), ((a, False), (b, False)), True
        case ast.Release(a, b):
            stay, goal, complemented = ((a, False),), ((b, False),), True
        case _:
            raise UnsupportedError(f"Storm is not asked about {type(path).__name__}")
    first, last = _window(path.bound)
    if last is not None and last < first:
        return _Query(formula="P=? [ F<=0 false ]", steps=0, complemented=complemented)
    # Storm has no lower bound without an upper one; and before the first step of [first,last] it lets a run of
    # a1 U a0 pass through states of a0 that are not in a1 (2.0.0). With a1 true it is right.
    delay = 0 if last is not None and not stay else first
    bound = "" if last is None else f"<={last - delay}" if delay == first else f"[{first},{last}]"
    return _Query(
        formula=f'P=? [ "a1" U{bound} "a0" ]' if stay else f'P=? [ F{bound} "a0" ]',
        operands=(goal, stay) if stay else (goal,),
        steps=last,
        complemented=complemented,
        delay=delay,
    )


def _window(bound: ast.StepBound | None) -> tuple[int, int | None]:
    """The first and the last step that count, the last None if all later ones do; none counts if last < first."""
    if bound is None:
        return 0, None
    first = 0 if bound.lower is None else _whole(bound.lower) + bound.lower_strict
    last = None if bound.upper is None else _whole(bound.upper) - bound.upper_strict
    return first, last


def _whole(number: ast.Formula) -> int:
    if not isinstance(number, ast.Number) or number.value.denominator != 1 or number.value < 0:
        raise PropertyError(f"a step bound must be a whole number of steps, not {format_formula(number)}")
    if number.value >= 1 << 63:
        raise UnsupportedError(f"Storm counts steps in 64 bits, too few for {format_formula(number)}")
    return number.value.numerator


def storm_formulation(operator: ast.Operator) -> str:
    """How Storm is asked about an operator, as a text for reports: the query, and what is made of its answer."""
    structure = operator.structure if isinstance(operator, ast.Reward) and operator.structure else "r0"
    query = _query(operator, structure)
    text = query.formula
    for label, operand in zip(('"a0"', '"a1"'), query.operands, strict=False):
        text = text.replace(label, _conjunction_text(operand), 1)
    if query.delay:
        stay = f" spent where {_conjunction_text(query.operands[1])}" if len(query.operands) > 1 else ""
        text = f"R{{v}}=? [ I={query.delay} ] with v = {text}, over runs with {query.delay} steps{stay}"
    return f"1 - ({text})" if query.complemented else text


def _conjunction_text(conjunction: _Conjunction) -> str:
    literals = [
        f"({format_formula(formula)})" if holds else f"!({format_formula(formula)})" for formula, holds in conjunction
    ]
    return literals[0] if len(literals) == 1 else f"({' & '.join(literals)})"


# ---------------------------------------------------------------- one chain


class StormSession:
    """An `EngineSession`: Storm with one chain loaded.

    In exact mode Storm computes in rationals and the values are Fractions. In float mode the values carry an *assumed*
    accuracy, since Storm's own bounds cannot be relied on: a relative error of at most

    * ``4 w eps (1 + k)`` for k steps, w the largest number of successors, eps = 2^-52;
    * ``4 n eps (1 + s)`` for equations in n states solved by state elimination; s is the largest expected number of
      steps (`rounding_amplification`), which is what a double loses in ``1 - p``;
    * ``1e-12 (1 + j)`` more by Gauss-Seidel iteration to 1e-13; j is the largest expected number of moves, which are
      steps to another state: the solvers divide by ``1 - p``;
    * ``1e-6 (1 + j)`` more by gmm++, whose precision cannot be set.

    Against rational solutions of random chains, sticky and nearly decomposable ones among them, the error was below a
    tenth of that. Probabilities of one have bounds of width zero where Storm's graph analysis finds them. Numbers below
    1e-307 may be given as zero.
    """

    name = STORM

    def __init__(self, chain: MarkovChain, *, exact: bool, worker: StormWorker, time_limit: float = TIME_LIMIT) -> None:
        """Nothing is sent yet.

        Args:
            exact: work in rationals. worker: may serve several sessions. time_limit: seconds for each query.
        """
        self.chain = chain
        self.exact = exact
        self._worker = worker
        self._time_limit = time_limit
        self._structures = {name: f"r{i}" for i, name in enumerate(chain.rewards)}
        self._id = next(worker._ids)
        self._loaded_in = -1
        weakref.finalize(self, worker._forgotten.append, self._id)

    def evaluate(self, operator: ast.Operator, holds: Holds) -> EnclosureVector:
        """The value of the operator in every state, shape (n,); see `EngineSession.evaluate`.

        Raises:
            PropertyError: a step bound that is no number of steps, or a reward structure that the chain lacks.
            UnsupportedError: Storm has no answer to this operator.
            EngineTimeoutError: Storm took longer than the time limit.
            EngineError: Storm failed or crashed.
        """
        query = _query(operator, self._structure(operator))
        masks = [self._mask(operand, holds) for operand in query.operands]
        if self.exact:
            answer = self._exactly(query, masks)
        else:
            answer = self._roughly(query, masks, self._expectation(query, operator, holds))
        return self._complement(answer) if query.complemented else answer

    # ------------------------------------------------------------ queries

    def _exactly(self, query: _Query, masks: list[Mask]) -> EnclosureVector:
        numbers = self._ask(query.formula, masks, "exact")
        if query.delay:
            numbers = self._ask_delayed(query, masks, numbers, "exact")
        return EnclosureVector.from_fractions([_rational(text) for text in numbers])

    def _roughly(self, query: _Query, masks: list[Mask], expected: _Expectation) -> EnclosureVector:
        solver = self._solver(query, expected)
        numbers = self._ask(query.formula, masks, solver)
        if query.delay:
            numbers = self._ask_delayed(query, masks, numbers, solver)
        values = _doubles(numbers)
        is_probability = query.formula.startswith(("P", "S"))
        certain = np.zeros(self.chain.n_states, dtype=np.bool_)
        if query.formula.startswith("P") and query.steps is None and not query.delay and bool((values == 1).any()):
            certain = _doubles(self._ask(query.formula.replace("=?", ">=1", 1), masks, solver)) == 1
        error = self._relative_error(query, solver, expected)
        certain |= np.isinf(values)
        if error < 1:
            lower, upper = values * (1 - error), values / (1 - error)
        else:  # every digit may be lost
            lower, upper = np.zeros_like(values), np.full_like(values, np.inf)
        if self._may_underflow(query):
            upper = np.maximum(upper, np.finfo(np.float64).tiny)
        if is_probability:
            upper = np.minimum(upper, 1)
        return EnclosureVector.from_bounds(values, np.where(certain, values, lower), np.where(certain, values, upper))

    def _expectation(self, query: _Query, operator: ast.Operator, holds: Holds) -> _Expectation:
        if query.steps is not None:
            return _Expectation(steps=0, moves=0)
        steps = rounding_amplification(self.chain, operator, holds)
        if self.chain.n_states <= ELIMINATION_STATES:
            return _Expectation(steps=steps, moves=steps)
        return _Expectation(steps=steps, moves=rounding_amplification(_jump_chain(self.chain), operator, holds))

    def _solver(self, query: _Query, expected: _Expectation) -> Solver:
        n = self.chain.n_states
        if n <= ELIMINATION_STATES:
            return "elimination"
        # Each expected move needs about ln(1/precision) = 30 sweeps; for long-run averages the iteration diverges.
        if not query.long_run and 30 * (1 + expected.moves) * self.chain.transitions.nnz <= ITERATION_WORK:
            return "gauss-seidel"
        return "elimination" if n <= SLOW_ELIMINATION_STATES else "gmm"

    def _relative_error(self, query: _Query, solver: Solver, expected: _Expectation) -> float:
        eps = float(np.finfo(np.float64).eps)
        widest = int(np.diff(self.chain.transitions.indptr).max())
        if query.steps is not None:
            return 4 * widest * eps * (1 + query.steps)
        error = 4 * self.chain.n_states * eps * (1 + expected.steps) + 4 * widest * eps * query.delay
        if solver == "gauss-seidel":
            error += 1e-12 * (1 + expected.moves)
        elif solver == "gmm":
            error += 1e-6 * (1 + expected.moves)
        return error

    def _may_underflow(self, query: _Query) -> bool:
        """Whether a product of so many transition probabilities can leave the range of doubles."""
        steps = query.steps if query.steps is not None else query.delay
        return -float(np.log10(self.chain.transitions.data.min())) * steps > 300

    def _ask(
        self,
        formula: str,
        masks: list[Mask],
        solver: Solver,
        *,
        reward: Numbers | None = None,
        leaving: Mask | None = None,
    ) -> Numbers:
        self._load()
        message = protocol.Evaluate(
            model=self._id,
            formula=formula,
            solver=solver,
            labels=[protocol.pack_mask(mask) for mask in masks],
            reward=reward,
            leaving=None if leaving is None else protocol.pack_mask(leaving),
        )
        reply = self._worker.request(message, time_limit=self._time_limit)
        if isinstance(reply, protocol.Failure):
            raise EngineError(f"Storm refuses {formula}: {reply.message}")
        assert isinstance(reply, protocol.Values)  # noqa: S101 - the worker pairs replies with requests
        return reply.values

    def _ask_delayed(self, query: _Query, masks: list[Mask], numbers: Numbers, solver: Solver) -> Numbers:
        """``E[v(X_k); a1 holds on steps 0 .. k-1]``: states outside a1 move on to a state of value zero."""
        leaving = ~masks[1] if len(masks) > 1 else None
        return self._ask(f'R{{"v"}}=? [ I={query.delay} ]', [], solver, reward=numbers, leaving=leaving)

    def _load(self) -> None:
        """Send the chain unless the running process has it."""
        generation = self._worker.ensure_running()
        if self._loaded_in == generation:
            return
        chain = self.chain
        forgotten, self._worker._forgotten[:] = list(self._worker._forgotten), []
        message = protocol.LoadModel(
            model=self._id,
            indptr=chain.transitions.indptr.astype("<i8").tobytes(),
            indices=chain.transitions.indices.astype("<i8").tobytes(),
            values=_entries(chain, exact=self.exact),
            initial=protocol.pack_mask(chain.initial > 0),
            rewards=[_reward_numbers(structure, exact=self.exact) for structure in chain.rewards.values()],
            forget=forgotten,
        )
        reply = self._worker.request(message, time_limit=self._time_limit)
        assert isinstance(reply, protocol.Loaded)  # noqa: S101 - the worker pairs replies with requests
        self._loaded_in = generation

    # ------------------------------------------------------------ operands

    def _mask(self, conjunction: _Conjunction, holds: Holds) -> Mask:
        mask = np.ones(self.chain.n_states, dtype=np.bool_)
        for formula, wanted in conjunction:
            mask &= holds(formula) == wanted
        return mask

    def _structure(self, operator: ast.Operator) -> str:
        if not isinstance(operator, ast.Reward):
            return ""
        names = ", ".join(f'"{name}"' for name in self._structures) or "none"
        if operator.structure is None:
            if len(self._structures) != 1:
                raise PropertyError(f"R without a reward structure needs a chain with exactly one; it has: {names}")
            return "r0"
        if operator.structure not in self._structures:
            raise PropertyError(f'there is no reward structure "{operator.structure}"; the chain has: {names}')
        return self._structures[operator.structure]

    def _complement(self, answer: EnclosureVector) -> EnclosureVector:
        """One minus a probability."""
        rest = EnclosureVector.constant(len(answer), Fraction(1), exact=self.exact) - answer
        if self.exact:
            return rest
        return EnclosureVector.from_bounds(*(np.clip(x, 0, 1) + 0.0 for x in (rest.value, rest.lower, rest.upper)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Expectation:
    """The largest expected number of steps in the states that equations are solved for, and of moves among them."""

    steps: float
    moves: float


def _jump_chain(chain: MarkovChain) -> MarkovChain:
    """The chain seen only when it moves: no self-loops but those of absorbing states."""
    moving = csr_array(chain.transitions, copy=True)
    rows = np.repeat(np.arange(chain.n_states), np.diff(moving.indptr))
    moving.data = np.where((moving.indices == rows) & ~chain.absorbing[rows], 0.0, moving.data)
    moving.data = moving.data / np.asarray(moving.sum(axis=1))[rows]
    return MarkovChain(
        states=chain.states, transitions=moving, initial=chain.initial, labels=chain.labels, rewards=chain.rewards
    )


def _entries(chain: MarkovChain, *, exact: bool) -> Numbers:
    """The stored entries of P; exact ones in the same places as the doubles."""
    if not exact:
        doubles: bytes = chain.transitions.data.astype("<f8").tobytes()
        return doubles
    matrix = chain.exact_transitions()
    bottoms = matrix.denominators[matrix.row_of_entry].tolist()
    return [protocol.pack_rational(Fraction(a, b)) for a, b in zip(matrix.numerators.tolist(), bottoms, strict=True)]


def _reward_numbers(structure: RewardStructure, *, exact: bool) -> protocol.RewardNumbers:
    def numbers(doubles: NDArray[np.float64], rationals: RationalVector | None) -> Numbers:
        if not exact:
            return doubles.astype("<f8").tobytes()
        fractions = rationals.to_fractions() if rationals else [Fraction(value) for value in doubles.tolist()]
        return [protocol.pack_rational(value) for value in fractions]

    action = None if structure.action is None else numbers(structure.action, structure.exact_action)
    return protocol.RewardNumbers(state=numbers(structure.state, structure.exact_state), action=action)


def _doubles(numbers: Numbers) -> NDArray[np.float64]:
    assert isinstance(numbers, bytes)  # noqa: S101 - what a float model yields
    return np.frombuffer(numbers, dtype="<f8").astype(np.float64)


def _rational(text: Any) -> Fraction | float:
    return float("inf") if text == "inf" else protocol.unpack_rational(text)


# ---------------------------------------------------------------- PRISM programs


def build_prism_chain(
    text: str,
    *,
    worker: StormWorker,
    constants: Mapping[str, str] | None = None,
    exact: bool = True,
    fix_deadlocks: bool = False,
    time_limit: float = TIME_LIMIT,
) -> MarkovChain:
    """The reachable chain of a PRISM program of type ``dtmc``; states are named by their variables, ``x=1,y=0``.

    Decimals in the text are exact. A program whose rows sum to one only within rounding, or that uses functions Storm
    cannot evaluate in rationals, becomes a chain of doubles.

    Args:
        text: the program. constants: its undefined constants: whole numbers, decimals, fractions, true or false.
        exact: work in rationals where the text allows it.
        fix_deadlocks: give states without a transition a loop to themselves instead of refusing them.

    Raises:
        ModelError: the text is no such program, or not a sound one: a syntax error, an undefined constant, commands
            whose guards overlap, an update out of bounds, a deadlock, a row that does not sum to one, several initial
            states.
        EngineError: Storm failed, or took longer than the time limit (the state space may be infinite).
    """
    given = dict(constants or {})
    for name, value in given.items():
        if not _IDENTIFIER.fullmatch(name) or not _CONSTANT.fullmatch(value):
            raise ModelError(f"{name}={value} does not give a constant a number, true or false")

    def explore(*, exact: bool, check_sums: bool) -> Reply:
        message = protocol.BuildProgram(text=text, constants=given, exact=exact, check_sums=check_sums)
        return worker.request(message, time_limit=time_limit)

    reply = explore(exact=exact, check_sums=exact)
    if isinstance(reply, protocol.Failure) and reply.kind == "sums":  # judged by MarkovChain, with its tolerance
        reply = explore(exact=True, check_sums=False)
    if isinstance(reply, protocol.Explored):
        return _sound_chain(reply, fix_deadlocks=fix_deadlocks)
    assert isinstance(reply, protocol.Failure)  # noqa: S101 - the worker pairs replies with requests
    error = ModelError(f"Storm cannot build this PRISM program: {reply.message}")
    if exact:  # perhaps rationals cannot express it, such as pow(0.5, 0.5); else the first message is the better one
        floating = explore(exact=False, check_sums=False)
        if isinstance(floating, protocol.Explored):
            try:
                return _sound_chain(floating, fix_deadlocks=fix_deadlocks)
            except ModelError:
                raise error from None
    raise error


def _sound_chain(explored: protocol.Explored, *, fix_deadlocks: bool) -> MarkovChain:
    """The explored chain, unless Storm had to add or choose transitions."""
    if explored.overlapping:
        state = explored.overlapping[0]
        raise ModelError(f"several commands are enabled in state {state!r}; a dtmc needs disjoint guards")
    if explored.deadlocks and not fix_deadlocks:
        state = explored.deadlocks[0]
        raise ModelError(f"state {state!r} has no transition; give absorbing states a loop to themselves")
    return _chain(explored)


_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONSTANT = re.compile(r"true|false|-?\d{1,400}(/\d{1,400}|(\.\d{1,400})?([eE][+-]?\d{1,3})?)")


def _chain(explored: protocol.Explored) -> MarkovChain:
    n = len(explored.states)
    indptr = np.frombuffer(explored.indptr, dtype="<i8").astype(np.int64)
    indices = np.frombuffer(explored.indices, dtype="<i8").astype(np.int64)
    initial = protocol.unpack_mask(explored.initial, n)
    if initial.sum() != 1:
        raise ModelError(
            f"the program has {int(initial.sum())} initial states; a chain starts in one, or by a distribution"
        )
    start: Any = np.where(initial, 1.0, 0.0)
    matrix: Any
    if isinstance(explored.values, bytes):
        matrix = csr_array((_doubles(explored.values), indices, indptr), shape=(n, n))
    else:
        entries = [protocol.unpack_rational(value) for value in explored.values]
        rows = [
            dict(zip(indices[a:b].tolist(), entries[a:b], strict=True)) for a, b in itertools.pairwise(indptr.tolist())
        ]
        sums = [sum(row.values(), Fraction(0)) for row in rows]
        matrix = RationalMatrix.from_rows(rows)
        if any(total != 1 for total in sums) and all(abs(total - 1) <= ROW_SUM_TOLERANCE for total in sums):
            matrix = matrix.to_float()
        else:
            start = RationalVector.from_fractions([Fraction(bool(mark)) for mark in initial])
    return MarkovChain(
        states=tuple(explored.states),
        transitions=matrix,
        initial=start,
        labels={name: protocol.unpack_mask(mask, n) for name, mask in explored.labels.items()},
        rewards={name or "rewards": _reward_structure(rewards) for name, rewards in explored.rewards.items()},
    )


def _reward_structure(rewards: protocol.RewardNumbers) -> RewardStructure:
    if isinstance(rewards.state, bytes):
        assert not isinstance(rewards.action, list)  # noqa: S101 - one model has one kind of numbers
        return RewardStructure(
            state=_doubles(rewards.state), action=None if rewards.action is None else _doubles(rewards.action)
        )
    action = None if rewards.action is None else [protocol.unpack_rational(text) for text in rewards.action]  # type: ignore[arg-type]
    return RewardStructure.from_fractions([protocol.unpack_rational(text) for text in rewards.state], action)
