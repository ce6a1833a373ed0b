"""Storm, and anything else, in a process of its own that is stopped at a limit."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracebridge.chain.markov import MarkovChain
from tracebridge.pctl.ast import Eventually, Formula, Label, Probability

REACH = Probability(Eventually(Label("goal")))


def holds(chain: MarkovChain) -> Callable[[Formula], NDArray[np.bool_]]:
    return lambda formula: chain.label(formula.name) if isinstance(formula, Label) else np.zeros(0, dtype=np.bool_)


def apart(limit: float, task: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any] | None:
    """The result of a task in a process of its own; None if it takes longer than the limit in seconds, or dies."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_run_and_send, args=(there, task, arguments))
    process.start()
    there.close()
    try:
        return here.recv() if here.poll(limit) else None
    except EOFError:
        return None
    finally:
        process.kill()
        process.join()


def _run_and_send(connection: Connection, task: Callable[..., dict[str, Any]], arguments: tuple[Any, ...]) -> None:
    connection.send(task(*arguments))


def storm_reachability(make: Callable[[int], MarkovChain], states: int, *, by_default: bool = False) -> dict[str, Any]:
    """``P=? [ F "goal" ]`` in every state as the Storm process finds it: values, solver, seconds to build and to check.

    The solver is the one that we choose for the chain, or Storm's default. Times are of the processor.
    """
    import stormpy
    from stormpy.datastructures import BitVector

    from tracebridge.checking.storm_formulation import formulate
    from tracebridge.checking.storm_solver import choose_solver
    from tracebridge.checking.storm_worker import server
    from tracebridge.checking.storm_worker.loaded_chain import build_model

    chain = make(states)
    solver = "gmm" if by_default else choose_solver(chain, formulate(REACH, ""), REACH, holds(chain)).solver
    matrix = chain.transitions
    values = matrix.data.tolist()
    start = time.process_time()
    model = build_model(matrix.indptr, matrix.indices, values, chain.initial > 0, {}, exact=False)
    built = time.process_time()
    model.labeling.add_label("goal")
    model.labeling.set_states("goal", BitVector(chain.n_states, np.flatnonzero(chain.label("goal")).tolist()))
    (formula,) = stormpy.parse_properties('P=? [ F "goal" ]')
    checking = time.process_time()
    result = stormpy.model_checking(model, formula, environment=server._environment(solver))
    checked = time.process_time()
    return {
        "build": built - start,
        "check": checked - checking,
        "solver": solver,
        "values": np.array(result.get_value_vector()),
    }


def storm_by_default(make: Callable[[int], MarkovChain], states: int) -> dict[str, Any]:
    return storm_reachability(make, states, by_default=True)
