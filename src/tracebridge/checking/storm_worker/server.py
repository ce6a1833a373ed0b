"""From requests to replies."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import numpy as np
import stormpy
from stormpy import environments
from stormpy.datastructures import BitVector

from .loaded_chain import LoadedChain
from .loaded_process import LoadedProcess
from .number_codec import decode, encode
from .programs import explore
from .protocol import (
    MAX_LABELS,
    AskVersion,
    BuildProgram,
    Evaluate,
    Failure,
    Loaded,
    LoadModel,
    Numbers,
    Parsed,
    ParseProperties,
    Reply,
    Request,
    Solver,
    Values,
    Version,
    WorkerError,
    unpack_mask,
)
from .storm_errors import storm_message

#: Relative change at which the Gauss-Seidel iteration stops.
ITERATION_PRECISION = "1e-13"

#: Relative precision of sound value iteration, and of the values of several objectives.
SOUND_PRECISION = "1e-9"

#: Relative change at which the iteration for discounted rewards stops.
DISCOUNT_PRECISION = "1e-14"


class Server:
    """Answers requests; holds the chains that were loaded."""

    def __init__(self) -> None:
        self.chains: dict[int, LoadedChain | LoadedProcess] = {}

    def answer(self, request: Request) -> Reply:
        """Do what a request asks.

        Raises:
            WorkerError: the request makes no sense, or Storm refuses its text. RuntimeError: Storm failed.
        """
        match request:
            case LoadModel():
                for model in request.forget:
                    self.chains.pop(model, None)
                self.chains[request.model] = LoadedChain(request) if request.groups is None else LoadedProcess(request)
                return Loaded()
            case Evaluate():
                return Values(self._evaluate(request))
            case BuildProgram():
                return explore(request)
            case ParseProperties():
                return Parsed([str(formula.get_raw_formula()) for formula in _parse(request.text)])
            case AskVersion():
                return Version(stormpy.__version__)

    def _evaluate(self, request: Evaluate) -> Numbers:
        chain = self.chains.get(request.model)
        if chain is None:
            raise WorkerError("protocol", f"there is no chain {request.model}")
        if chain.exact != (request.solver == "exact"):
            raise WorkerError("protocol", f"the solver {request.solver!r} does not fit the numbers of the chain")
        model = chain.model
        if request.rewards:
            mask = (
                np.zeros(chain.n, dtype=np.bool_) if request.leaving is None else unpack_mask(request.leaving, chain.n)
            )
            size = chain.reward_size(bounded=request.bounded)
            rewards = [decode(reward, size) for reward in request.rewards]
            model = chain.leaving(mask, rewards, halting=request.bounded)
        if len(request.labels) > MAX_LABELS:
            raise WorkerError("protocol", f"{len(request.labels)} labels where {MAX_LABELS} are allowed")
        for i, packed in enumerate(request.labels):
            _set_label(model, f"a{i}", np.flatnonzero(unpack_mask(packed, chain.n)).tolist())
        if request.conditional and request.rewards:
            _set_label(model, "init", [chain.n])
            model.labeling.add_label_to_state("a1", chain.n)
        formulas = _parse(request.formula)
        if len(formulas) != 1:
            raise WorkerError("protocol", f"{len(formulas)} formulas where one is answered")
        environment = _environment(request.solver)
        if request.at_start:
            if isinstance(chain, LoadedChain) or chain.initial.sum() != 1 or not chain.exact:
                raise WorkerError("protocol", "a rational decision process with one start is asked about that")
            return _at_start(model, formulas[0], environment, exact=chain.exact)
        only_initial = request.bounded  # Storm checks no others
        result = stormpy.model_checking(model, formulas[0], environment=environment, only_initial_states=only_initial)
        if result is None:
            raise WorkerError("storm", f"Storm gave no result for {request.formula}")
        if result.is_qualitative():
            truths = result.get_truth_values_vector()
            return np.array([truths.get(i) for i in range(chain.n)], dtype="<f8").tobytes()
        if only_initial:
            return encode([result.get_value(i) for i in range(chain.n)], exact=chain.exact)
        return encode(result.get_value_vector()[: chain.n], exact=chain.exact)


def _at_start(model: Any, formula: Any, environment: Any, *, exact: bool) -> Numbers:
    """The value in the one initial state, a list of one."""
    (start,) = model.initial_states
    result = stormpy.model_checking(model, formula, environment=environment, only_initial_states=True)
    if result is None:
        raise WorkerError("storm", f"Storm gave no result for {formula}")
    if result.is_qualitative():
        return np.array([bool(result[start])], dtype="<f8").tobytes()
    if not result.is_quantitative():
        raise WorkerError("storm", "Storm answers with a Pareto curve, which is no number")
    return encode([result.get_value(start)], exact=exact)


def _set_label(model: Any, name: str, states: list[int]) -> None:
    """Let a label hold in these states and no others."""
    if not model.labeling.contains_label(name):
        model.labeling.add_label(name)
    model.labeling.set_states(name, BitVector(model.nr_states, states))


def _environment(solver: Solver) -> Any:
    if solver in {"exact", "sound"}:
        environment = environments.exact() if solver == "exact" else environments.sound()
        if solver == "sound":
            environment.solver().min_max().precision = stormpy.Rational(SOUND_PRECISION)
        environment.modelchecker().multi().precision = stormpy.Rational(SOUND_PRECISION)
        return environment
    environment = environments.Environment()
    settings = environment.solver()
    settings.min_max().precision = stormpy.Rational(DISCOUNT_PRECISION)  # what discounted rewards are computed with
    if solver == "policy-iteration":
        settings.min_max().method = environments.MinMaxMethod.POLICY_ITERATION
    if solver in {"elimination", "policy-iteration"}:
        settings.set_linear_equation_solver_type(environments.EquationSolverType.ELIMINATION)
    elif solver == "gauss-seidel":
        settings.set_linear_equation_solver_type(environments.EquationSolverType.NATIVE)
        native = settings.native()
        native.method = environments.NativeLinearEquationSolverMethod.GAUSS_SEIDEL
        native.precision = stormpy.Rational(ITERATION_PRECISION)
    return environment


def _parse(text: str) -> list[Any]:
    try:
        parsed: list[Any] = stormpy.parse_properties(text)
    except RuntimeError as error:
        raise WorkerError("property", storm_message(error)) from error
    return parsed


def reply_to(server: Server, data: bytes) -> Reply:
    """The reply to a message, which may be anything; a failure of Storm is a reply too."""
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
        return Failure(kind, storm_message(error))
