"""Storm, and anything else, in a process of its own that is stopped at a limit."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracebridge.chain.markov import MarkovChain
from tracebridge.pctl.ast import Eventually, Formula, Label, Probability

REACH = Probability(Eventually(Label("goal")))
Make = Callable[[int], MarkovChain]


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
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # where Storm writes its warnings
    connection.send(task(*arguments))


def storm_as_asked(make: Make, states: int) -> dict[str, Any]:
    """``P=? [ F "goal" ]`` in every state as the Storm process finds it: values, solver, seconds to build and to check.

    The solver is the one that we choose for the chain. Times are of the processor, and of the wall for the check.
    """
    from tracebridge.checking.storm_formulation import formulate
    from tracebridge.checking.storm_solver import choose_solver
    from tracebridge.checking.storm_worker import server

    chain = make(states)
    solver = choose_solver(chain, formulate(REACH, ""), REACH, holds(chain)).solver
    return {"solver": solver, **_storm(make, chain, environment=server._environment(solver))}


def storm_by_default(make: Make, states: int) -> dict[str, Any]:
    """The same with Storm's own choice: sound iteration to a relative accuracy of 1e-6."""
    return {"solver": "default", **_storm(make, make(states))}


def _storm(make: Make, chain: MarkovChain, **options: Any) -> dict[str, Any]:
    import stormpy

    (formula,) = stormpy.parse_properties('P=? [ F "goal" ]')
    stormpy.model_checking(_storm_model(make(50)), formula, **options)  # whatever happens at first use alone
    os.dup2(1, 2)  # gmm++ warns in a line for every pivot that it finds too small
    start = time.process_time()
    model = _storm_model(chain)
    built, wall = time.process_time(), time.perf_counter()
    result = stormpy.model_checking(model, formula, **options)
    checked = time.process_time()
    return {
        "build": built - start,
        "check": checked - built,
        "wall": time.perf_counter() - wall,
        "values": np.array(result.get_value_vector()),
    }


def _storm_model(chain: MarkovChain) -> Any:
    from stormpy.datastructures import BitVector

    from tracebridge.checking.storm_worker.loaded_chain import build_model

    matrix = chain.transitions
    model = build_model(matrix.indptr, matrix.indices, matrix.data.tolist(), chain.initial > 0, {}, exact=False)
    model.labeling.add_label("goal")
    model.labeling.set_states("goal", BitVector(chain.n_states, np.flatnonzero(chain.label("goal")).tolist()))
    return model
