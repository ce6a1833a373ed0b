"""The PRISM engine: a session that asks the ``prism`` executable about one chain, an operator a run.

PRISM is given files and writes files; what it prints is only quoted where it fails. Operands are sent as sets of
states, and values are told apart by the valuation of ``s``, which is the state's position in the chain.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.checking import prism_model_files as files
from tracebridge.checking.engine import PRISM, Holds
from tracebridge.checking.prism_accuracy import EPSILON, assumed_error, enclosed
from tracebridge.checking.prism_formulation import PrismQuery, decided_one, decided_zero, formulate, parts_of
from tracebridge.checking.prism_process import HOW_TO_GET, TIME_LIMIT, PrismExecutable, PrismUnavailableError
from tracebridge.checking.prism_results import read_rationals, read_states, read_vector, refuse_error
from tracebridge.checking.result import Note
from tracebridge.checking.storm_rewards import step_rewards, structure_name
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.until import until_form
from tracebridge.errors import EngineError, UnsupportedError, UsageError
from tracebridge.pctl import ast
from tracebridge.pctl.printer import format_formula

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from fractions import Fraction

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.closedform.enclosure import Enclosure

    Mask = NDArray[np.bool_]

#: PRISM's exact engine gives the value of one state at a time, so that larger chains are not asked about.
EXACT_STATES = 500

#: The explicit engine, which knows chains as they are; Gauss-Seidel, which PRISM's default does not even approach in
#: accuracy; and as many sweeps as it takes, for which there is the time limit.
_FLOAT_OPTIONS = ("-explicit", "-gs", "-relative", "-epsilon", repr(EPSILON), "-maxiters", "1000000000")
_EXACT_OPTIONS = ("-exact",)


class PrismSession:
    """An `EngineSession`: PRISM with one chain.

    In exact mode PRISM computes in rationals and the values are Fractions. In float mode the values carry the accuracy
    that `prism_accuracy` assumes.

    Attributes:
        notes: how operators were asked that PRISM's language lacks.
    """

    name = PRISM

    def __init__(
        self,
        chain: MarkovChain,
        *,
        exact: bool,
        executable: PrismExecutable | None,
        time_limit: float = TIME_LIMIT,
    ) -> None:
        """Nothing is run yet.

        Args:
            exact: work in rationals. executable: None if there is none, which every question then says.
            time_limit: seconds for each run.
        """
        self.chain = chain
        self.exact = exact
        self.notes: list[Note] = []
        self._executable = executable
        self._time_limit = time_limit

    def evaluate(self, operator: ast.Operator, holds: Holds) -> EnclosureVector:
        """The value of the operator in every state, shape (n,); see `EngineSession.evaluate`.

        Raises:
            PropertyError: a step bound that is no number of steps, or a reward structure that the chain lacks.
            UnsupportedError: PRISM has no such operator, or no answer to it that is worth anything.
            EngineTimeoutError: PRISM took longer than the time limit.
            EngineError: PRISM is not there, failed, crashed, or wrote no answer.
        """
        parts = parts_of(operator)
        if parts is None:
            # The graph is asked only where a threshold, such as P>=1, may hang on it: that takes a run of its own.
            by_graph = isinstance(operator, ast.Probability) and operator.threshold is not None
            return self._value(operator, holds, by_graph=by_graph)
        asked = " / ".join(format_formula(part) for part in parts)
        self.notes.append(Note(kind="formulation", text=f"PRISM is asked {asked} for {format_formula(operator)}"))
        top, bottom = [self._value(part, holds, by_graph=True) for part in parts]
        return self._quotient(top, bottom)

    def evaluate_quantile(
        self,
        quantile: ast.Quantile,  # noqa: ARG002
        holds: Holds,  # noqa: ARG002
        weights: Sequence[Fraction],  # noqa: ARG002
    ) -> tuple[EnclosureVector, Enclosure]:
        """Raises UnsupportedError: PRISM has no quantiles; see `EngineSession.evaluate_quantile`."""
        raise UnsupportedError("PRISM has no quantile")

    def _value(self, operator: ast.Operator, holds: Holds, *, by_graph: bool) -> EnclosureVector:
        query = formulate(operator)
        masks = [holds(operand) for operand in query.operands]
        reward = self._reward(operator)
        if isinstance(operator, ast.Reward) and isinstance(operator.structure, ast.OnePerStep):
            text = f"PRISM is asked about a reward of one a step for {format_formula(operator)}"
            self.notes.append(Note(kind="formulation", text=text))
        if self.exact:
            if not query.exact:
                raise UnsupportedError(f"PRISM's exact engine does not take {format_formula(operator)}")
            rationals = self._rationals(query.text, masks, reward)
            refuse_impossible(query, min(rationals), max(rationals))
            return EnclosureVector.from_fractions(rationals)
        if query.kind == "graph":
            return EnclosureVector.from_floats(self._doubles(query.text, masks).astype(np.float64))
        error = assumed_error(self.chain, query, operator, holds)
        values = self._doubles(query.text, masks, reward)
        refuse_impossible(query, values.min(), values.max(), slack=error.of_each + error.of_largest)
        answer = enclosed(self.chain.transitions, query, values, error)
        if by_graph and query.kind == "equations" and query.steps == 0:
            return self._decided_by_graph(query, answer, holds)
        return answer

    # ------------------------------------------------------------ what the graph decides

    def _decided_by_graph(self, query: PrismQuery, answer: EnclosureVector, holds: Holds) -> EnclosureVector:
        """Zeros and ones without bounds where PRISM's graph analysis finds them, if the doubles leave them open."""
        path = query.path
        if not isinstance(path, ast.Eventually | ast.Globally | ast.Until | ast.WeakUntil | ast.Release):
            return answer
        form = until_form(path, holds, self.chain.n_states)
        masks = [form.right, form.left]
        for number, text in (
            (0, decided_one() if query.complemented else decided_zero()),
            (1, decided_zero() if query.complemented else decided_one()),
        ):
            open_ = (answer.value == number) & (answer.lower < answer.upper)
            if open_.any():
                decided = (self._doubles(text, masks) == 1) & open_
                sure = EnclosureVector.constant(len(answer), number, exact=False)
                answer = EnclosureVector.where(decided, sure, answer)
        return answer

    def _quotient(self, top: EnclosureVector, bottom: EnclosureVector) -> EnclosureVector:
        """One probability by another that is no smaller; undefined where the latter is zero for certain."""
        share = top / bottom
        if bool((share.undefined & (bottom.upper > 0)).any()):
            raise UnsupportedError("PRISM's doubles do not tell in every state whether the condition is possible")
        lower, upper = np.maximum(share.lower, 0), np.minimum(share.upper, 1)
        return EnclosureVector.from_bounds(np.minimum(share.value, 1), lower, upper)

    # ------------------------------------------------------------ runs

    def _reward(self, operator: ast.Operator) -> RewardStructure | None:
        """The reward that an operator is about, as one of states: I=k looks at the state reward alone."""
        if not isinstance(operator, ast.Reward):
            return None
        name = structure_name(self.chain, operator.structure)
        if isinstance(operator.path, ast.InstantaneousReward) and name is not None:
            return RewardStructure.from_fractions(self.chain.rewards[name].fractions(action=False))
        return RewardStructure.from_fractions(step_rewards(self.chain, operator.structure))

    def _doubles(self, text: str, masks: Sequence[Mask], reward: RewardStructure | None = None) -> NDArray[np.float64]:
        """The value of a formula in every state, in the order of the chain; truth values as 1 and 0."""
        with own_folder() as folder:
            model = files.write_in_doubles(self.chain, folder, masks, reward)
            outputs = ["-exportstates", files.STATES, "-exportvector", files.VECTOR]
            self._run(folder, [*model, *_FLOAT_OPTIONS, *outputs], f"{text};\n", text)
            refuse_error(folder / files.RESULTS)
            return read_vector(folder / files.VECTOR, read_states(folder / files.STATES, self.chain.n_states))

    def _rationals(self, text: str, masks: Sequence[Mask], reward: RewardStructure | None) -> list[Fraction | float]:
        """The same in rationals: PRISM writes no vector of them, so that each state is a property of its own."""
        n = self.chain.n_states
        if n > EXACT_STATES:
            raise UnsupportedError(
                f"PRISM's exact engine is not asked about more than {EXACT_STATES} states, one by one"
            )
        names = [f"v{i}" for i in range(n)]
        question = "".join(f'"{name}": filter(state, {text}, s={i});\n' for i, name in enumerate(names))
        with own_folder() as folder:
            try:
                model = self._write_in_rationals(folder, masks, reward)
            except UsageError as error:
                raise UnsupportedError(f"PRISM cannot be given this model in rationals: {error}") from None
            self._run(folder, [*model, *_EXACT_OPTIONS], question, text)
            return read_rationals(folder / files.RESULTS, names)

    def _write_in_rationals(self, folder: Path, masks: Sequence[Mask], reward: RewardStructure | None) -> list[str]:
        """Write the model; the arguments that have PRISM read it."""
        return files.write_in_rationals(self.chain, folder, masks, reward)

    def _run(self, folder: Path, arguments: list[str], question: str, text: str) -> None:
        if self._executable is None:
            raise PrismUnavailableError(HOW_TO_GET)
        (folder / files.PROPERTIES).write_text(question, encoding="ascii")
        results = ["-exportresults", f"{files.RESULTS}:csv"]
        run = self._executable.run([*arguments, *results, files.PROPERTIES], folder, time_limit=self._time_limit)
        if run.status != 0:
            raise EngineError(f"PRISM was asked {text} and {run.ending}")


@contextmanager
def own_folder() -> Iterator[Path]:
    """A private temporary folder.

    Raises:
        EngineError: files cannot be written there.
    """
    try:
        with TemporaryDirectory(prefix="tracebridge-prism-") as name:
            yield Path(name)
    except EngineError:  # of which a timeout is an OSError too
        raise
    except OSError as error:
        raise EngineError(f"the files for PRISM cannot be written: {error}") from None


def refuse_impossible(
    query: PrismQuery, least: Fraction | float, greatest: Fraction | float, *, slack: float = 0.0
) -> None:
    """Raise for numbers that no chain has: below zero, or probabilities above one."""
    if least < 0 or (query.is_probability and greatest > 1 + slack):
        raise EngineError(f"PRISM gives values from {float(least):.6g} to {float(greatest):.6g} for {query.text}")
