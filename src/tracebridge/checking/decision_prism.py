"""The PRISM engine over a decision process: what PRISM answers without an error, or with one that has a bound.

In doubles PRISM iterates over the choices, and ends by a criterion from which no error follows. So it is asked only

* about reachability and reward until it without bounds, in rationals whichever numbers are asked for: the exact engine
  improves policies by exact comparisons, from one that attains the zeros of a minimum, or surely the goal of a least
  reward, until none is better, which is the optimum (PRISM 4.10, ValueComputer.java; Bertsekas and Tsitsiklis, 1991);
* about so many steps, in doubles, which err by `error_of_steps`;
* about the graph, by ``A`` and ``E``.

Paths are sent as ``U``: one minus the other optimum is taken here, which the exact engine of old versions forgot.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.decision import DecisionProcess
from tracebridge.chain.rational import RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.checking import prism_model_files as files
from tracebridge.checking.prism import PrismSession, own_folder, refuse_impossible
from tracebridge.checking.prism_accuracy import enclosed, error_of_steps
from tracebridge.checking.prism_formulation import PrismQuery, formulate
from tracebridge.checking.prism_process import TIME_LIMIT, PrismExecutable
from tracebridge.checking.prism_results import read_states, read_vector, refuse_error
from tracebridge.checking.result import Note
from tracebridge.closedform.decision import optimum_of
from tracebridge.closedform.decision.choice_rewards import process_reward
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.until import BoundedPath, until_form
from tracebridge.errors import UnsupportedError
from tracebridge.export.prism_decision import MAX_CHOICES, model_lines
from tracebridge.export.whole_file import write_lines
from tracebridge.pctl import ast
from tracebridge.pctl.printer import format_formula

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tracebridge.checking.engine import Holds

    Mask = NDArray[np.bool_]

#: What ``U`` stands between.
_LEFT, _RIGHT = ast.Label("left"), ast.Label("right")


class DecisionPrismSession(PrismSession):
    """A `PrismSession` with a decision process, which goes as PRISM text; its state i is ``s=i`` there."""

    def __init__(
        self,
        process: DecisionProcess,
        *,
        exact: bool,
        executable: PrismExecutable | None,
        time_limit: float = TIME_LIMIT,
    ) -> None:
        """Nothing is run yet; see `PrismSession`."""
        super().__init__(process.frame, exact=exact, executable=executable, time_limit=time_limit)
        self.process = process

    def evaluate(self, operator: ast.Operator, holds: Holds) -> EnclosureVector:
        """The optimum of the operator in every state; see `EngineSession.evaluate`.

        Raises:
            PropertyError, UnsupportedError, EngineTimeoutError, EngineError: as `PrismSession.evaluate`.
        """
        asked, holds, complemented = self._as_until(operator, holds)
        optimum = optimum_of(asked) if isinstance(asked, ast.Probability | ast.Reward | ast.SteadyState) else None
        query = formulate(asked, optimum)
        masks = [holds(operand) for operand in query.operands]
        if query.kind == "graph":
            answer = EnclosureVector.from_fractions(self._doubles(query.text, masks).tolist())
        elif query.kind == "equations" and query.exact:
            answer = self._exactly(query, asked, masks)
        elif query.kind != "steps":
            raise UnsupportedError(
                f"PRISM is not asked for {format_formula(operator)}: its iteration over choices leaves no bound on the "
                "error"
            )
        elif self.exact:
            raise UnsupportedError(f"PRISM's exact engine does not take {format_formula(operator)}")
        else:
            answer = self._stepwise(query, asked, masks)
        if complemented:
            answer = _complement(answer)
        return answer if self.exact else answer.to_float()

    def _as_until(self, operator: ast.Operator, holds: Holds) -> tuple[ast.Operator, Holds, bool]:
        """The operator about ``U`` or ``X``, where what holds in it, and whether one minus its answer is meant."""
        if not isinstance(operator, ast.Probability):
            return operator, holds, False
        if operator.condition is not None:
            raise UnsupportedError("PRISM is not asked for probabilities under a condition of a decision process")
        path, complemented = operator.path, False
        while isinstance(path, ast.PathNot):
            path, complemented = path.operand, not complemented
        if isinstance(path, BoundedPath) and ast.is_pctl(path):
            form = until_form(path, holds, self.process.n_states)
            masks = {_LEFT.name: form.left, _RIGHT.name: form.right}

            def where(operand: ast.Formula) -> Mask:
                assert isinstance(operand, ast.Label)  # noqa: S101 - one of its own
                return masks[operand.name]

            holds = where
            path = ast.Until(_LEFT, _RIGHT, bound=path.bound, reward_bounds=path.reward_bounds)
            complemented ^= form.complemented
        optimum = optimum_of(operator)
        if complemented:
            optimum = "min" if optimum == "max" else "max"
        return replace(operator, path=path, optimum=optimum), holds, complemented

    # ------------------------------------------------------------ answers

    def _exactly(self, query: PrismQuery, operator: ast.Operator, masks: Sequence[Mask]) -> EnclosureVector:
        """The answer of PRISM's exact engine."""
        rationals = self._rationals(query.text, masks, self._reward(operator))
        refuse_impossible(query, min(rationals), max(rationals))
        if not self.exact:
            text = "PRISM is asked in rationals: its doubles leave no bound on the error of an optimum over choices"
            self.notes.append(Note(kind="formulation", text=text))
        return EnclosureVector.from_fractions(rationals)

    def _stepwise(self, query: PrismQuery, operator: ast.Operator, masks: Sequence[Mask]) -> EnclosureVector:
        """The answer after so many steps in doubles, with the bounds that their rounding leaves."""
        transitions = self.process.transitions
        error = error_of_steps(transitions, query.steps)
        values = self._doubles(query.text, masks, self._reward(operator))
        refuse_impossible(query, values.min(), values.max(), slack=error.of_each)
        text = f"PRISM is asked for {query.steps} steps in doubles, which err by {error.of_each:.1g} of a value at most"
        self.notes.append(Note(kind="formulation", text=text))
        return enclosed(transitions, query, values, error)

    # ------------------------------------------------------------ runs

    def _reward(self, operator: ast.Operator) -> RewardStructure | None:
        """The reward that an operator is about: I=k looks at the state reward alone."""
        if not isinstance(operator, ast.Reward):
            return None
        held = process_reward(self.process, operator.structure, operator.span)
        if isinstance(operator.path, ast.InstantaneousReward):
            return RewardStructure(state=held.state, exact_state=held.exact_state)
        return held

    def _doubles(self, text: str, masks: Sequence[Mask], reward: RewardStructure | None = None) -> NDArray[np.float64]:
        """The value of a formula in every state, in the order of the process; truth values as 1 and 0."""
        with own_folder() as folder:
            self._write(folder, masks, reward, exact=False)
            outputs = ["-exportstates", files.STATES, "-exportvector", files.VECTOR]
            self._run(folder, [files.MODEL, "-explicit", *outputs], f"{text};\n", text)
            refuse_error(folder / files.RESULTS)
            n = self.process.n_states
            order = read_states(folder / files.STATES, n + (n > 1))  # the last one is added
            return read_vector(folder / files.VECTOR, order)[:n]

    def _write_in_rationals(self, folder: Path, masks: Sequence[Mask], reward: RewardStructure | None) -> list[str]:
        self._write(folder, masks, reward, exact=True)
        return [files.MODEL]

    def _write(self, folder: Path, masks: Sequence[Mask], reward: RewardStructure | None, *, exact: bool) -> None:
        """The process as text, with the sets of states ``a0``, ``a1``, ... and an initial state that leads to all.

        Raises:
            UnsupportedError: too many choices. UsageError: a rational too long for PRISM.
        """
        process, n = self.process, self.process.n_states
        if process.n_choices > MAX_CHOICES:
            raise UnsupportedError(f"PRISM is not asked about more than {MAX_CHOICES} choices")
        if reward is not None and not exact:
            reward = RewardStructure(state=reward.state, action=reward.action)
        asked = DecisionProcess(
            states=tuple([f"q{i}" for i in range(n)]),
            actions=tuple([tuple([f"c{k}" for k in range(len(names))]) for names in process.actions]),
            transitions=process.exact_transitions() if exact else process.transitions,
            initial=RationalVector(np.ones(n, dtype=np.int64), n),  # type: ignore[arg-type]  # rationals too
            labels={f"a{i}": mask for i, mask in enumerate(masks)},
            rewards={} if reward is None else {"r": reward},
        )
        write_lines(folder / files.MODEL, model_lines(asked))


def _complement(answer: EnclosureVector) -> EnclosureVector:
    """One minus a probability."""
    rest = EnclosureVector.constant(len(answer), 1, exact=answer.exact) - answer
    if answer.exact:
        return rest
    return EnclosureVector.from_bounds(*(np.clip(x, 0, 1) + 0.0 for x in (rest.value, rest.lower, rest.upper)))
