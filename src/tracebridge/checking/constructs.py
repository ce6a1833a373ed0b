"""Which engine evaluates which construct of the language: found out by evaluating an example of each.

PRISM, which need not be here, is not asked: what counts is whether there is a question to put to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from tracebridge.chain import DecisionProcess, MarkovChain, RewardStructure
from tracebridge.checking.closedform import ClosedFormSession
from tracebridge.checking.decision import DecisionClosedFormSession
from tracebridge.checking.decision_storm import DecisionStormSession
from tracebridge.checking.engine import EngineSession
from tracebridge.checking.evaluate import PropertyChecker
from tracebridge.checking.prism_formulation import formulate, parts_of
from tracebridge.checking.storm import StormSession
from tracebridge.checking.storm_process import lent_worker
from tracebridge.errors import UnsupportedError
from tracebridge.pctl import ConstructSupport, ast, construct_table, fold_steps, parse_formula
from tracebridge.pctl.ast import Property

#: ``yes``; ``rewritten`` if the engine is asked something else that has the same value; ``no``.
Support = Literal["yes", "rewritten", "no"]

#: The model that an example is checked on, and the sessions of the closed form and of Storm.
_Asked: TypeAlias = tuple[MarkovChain, EngineSession, EngineSession]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSupport:
    """A construct, what the tools take of it in their own syntax, and what the engines evaluate."""

    tools: ConstructSupport
    closed_form: Support
    storm: Support
    prism: Support


def engine_support() -> tuple[EngineSupport, ...]:
    """Every construct with what the engines make of its example on a small chain, or on it as a decision process.

    Raises:
        EngineError: Storm is not there, or failed.
    """
    chain = _example_chain()
    process = _as_process(chain)
    with lent_worker() as worker:
        worker.ensure_running()
        of_chains: _Asked = (chain, ClosedFormSession(chain), StormSession(chain, exact=False, worker=worker))
        of_processes: _Asked = (
            process.frame,
            DecisionClosedFormSession(process),
            DecisionStormSession(process, exact=False, worker=worker),
        )
        found = []
        for tools in construct_table():
            example = tools.construct.example
            model, closed_form, storm = of_processes if tools.construct.decision_process else of_chains
            found.append(
                EngineSupport(
                    tools=tools,
                    closed_form=_support(model, closed_form, example),
                    storm=_support(model, storm, example),
                    prism=_prism_support(example),
                )
            )
        return tuple(found)


def _support(chain: MarkovChain, session: EngineSession, example: str) -> Support:
    formula = fold_steps(parse_formula(example))
    result = PropertyChecker(chain, session).check(Property(formula=formula, text=example))
    if not result.answered:
        return "no"
    return "rewritten" if any(note.kind == "formulation" for note in result.notes) else "yes"


def _prism_support(example: str) -> Support:
    rewritten = False
    for operator in ast.walk(fold_steps(parse_formula(example))):
        if not isinstance(operator, ast.Operator):
            continue
        parts = parts_of(operator)
        rewritten |= parts is not None or isinstance(getattr(operator, "structure", None), ast.OnePerStep)
        try:
            for part in parts or (operator,):
                formulate(part)
        except UnsupportedError:
            return "no"
    return "rewritten" if rewritten else "yes"


def _example_chain() -> MarkovChain:
    """Four states, two of which absorb, with the labels and reward structures of the examples."""
    states = np.arange(4)
    return MarkovChain(
        states=("start", "work", "done", "lost"),
        transitions=csr_array(np.array([[1, 2, 0, 1], [1, 1, 2, 0], [0, 0, 4, 0], [0, 0, 0, 4]]) / 4),
        initial=np.array([1.0, 0, 0, 0]),
        labels={"a": states < 2, "b": states == 2, "c": states >= 2},
        rewards={
            "r": RewardStructure.from_fractions([1, 2, 0, 0]),
            "cost": RewardStructure.from_fractions([2, 1, 0, 0]),
        },
    )


def _as_process(chain: MarkovChain) -> DecisionProcess:
    """The chain as a process with one choice in each state."""
    return DecisionProcess(
        states=chain.states,
        actions=(("",),) * chain.n_states,
        transitions=chain.transitions,
        initial=chain.initial,
        labels=chain.labels,
        rewards=chain.rewards,
    )
