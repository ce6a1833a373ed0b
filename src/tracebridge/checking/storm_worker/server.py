"""From requests to replies."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import numpy as np
import stormpy
from stormpy import environments
from stormpy.datastructures import BitVector

from .loaded_chain import LoadedChain
from .number_codec import decode, encode
from .programs import explore
from .protocol import (
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


class Server:
    """Answers requests; holds the chains that were loaded."""

    def __init__(self) -> None:
        self.chains: dict[int, LoadedChain] = {}

    def answer(self, request: Request) -> Reply:
        """Do what a request asks.

        Raises:
            WorkerError: the request makes no sense, or Storm refuses its text. RuntimeError: Storm failed.
        """
        match request:
            case LoadModel():
                for model in request.forget:
                    self.chains.pop(model, None)
                self.chains[request.model] = LoadedChain(request)
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
        if request.reward is not None:
            mask = (
                np.zeros(chain.n, dtype=np.bool_) if request.leaving is None else unpack_mask(request.leaving, chain.n)
            )
            model = chain.leaving(mask, decode(request.reward, chain.n))
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
        return encode(result.get_value_vector()[: chain.n], exact=chain.exact)


def _environment(solver: Solver) -> Any:
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
