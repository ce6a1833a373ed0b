"""From the operators that an engine evaluates to the verdict of a property: the same path for every engine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracebridge.checking.engine import EngineSession
from tracebridge.checking.evaluation import Evaluation, Value
from tracebridge.checking.filters import Range
from tracebridge.checking.result import CheckResult, Listing, Note, Verdict, is_precise
from tracebridge.closedform import directed
from tracebridge.closedform.enclosure import Enclosure, EnclosureVector
from tracebridge.errors import EngineError, UnsupportedError
from tracebridge.pctl import ast

if TYPE_CHECKING:
    from tracebridge.chain.markov import MarkovChain

Mask = NDArray[np.bool_]

#: Results list the values of so many start states.
MAX_START_STATES = 100


class PropertyChecker:
    """Evaluates properties of one chain with one engine."""

    def __init__(self, chain: MarkovChain, session: EngineSession) -> None:
        self.chain = chain
        self.session = session
        self._support = np.flatnonzero(chain.initial)
        self.weights = chain.exact_initial()
        self._support_weights = [self.weights[i] for i in self._support.tolist()]

    def check(self, property_: ast.Property, *, propagate: tuple[type[EngineError], ...] = ()) -> CheckResult:
        """Evaluate a property whose constants and label definitions are resolved.

        An engine that fails or cannot evaluate an operator yields a result that says so, except for the errors to
        ``propagate``; a property that does not fit the chain (an unknown label or reward structure) raises.

        Raises:
            PropertyError: the property does not fit the chain.
        """
        evaluation = Evaluation(self)
        self.session.notes.clear()
        verdict, truth, value, extent, reason = None, None, None, None, None
        try:
            result = evaluation.run(property_.formula)
            verdict, truth, reason = _verdict(result, exact=self.session.exact)
            value = evaluation.headline(property_.formula)
            extent = (result.least, result.greatest) if isinstance(result, Range) else None
            undefined = value is not None and value.undefined
            operands = (o.start.undefined for o in evaluation.operators if not o.nested)
            if verdict is Verdict.UNDECIDED and (undefined or any(operands)):
                reason = _UNDEFINED
            if evaluation.is_uncertain and (verdict is None or undefined):
                verdict, reason = Verdict.UNDECIDED, _nested_spread(value)
            elif verdict is None and (loose := _loose_number(result, evaluation.listings)) is not None:
                verdict, reason = (
                    Verdict.UNDECIDED,
                    _spread(loose, settled=self.session.exact or not evaluation.operators),
                )
        except propagate:
            raise
        except UnsupportedError as error:
            verdict, reason = Verdict.UNSUPPORTED, str(error)
        except EngineError as error:
            verdict, reason = Verdict.ERROR, str(error)
        notes = [*self._doubts(property_.formula), *self.session.notes]
        return CheckResult(
            property=property_,
            engine=self.session.name,
            exact=self.session.exact,
            verdict=verdict,
            value=value,
            range=extent,
            truth=truth,
            operators=tuple(evaluation.operators),
            listings=tuple(reversed(evaluation.listings)),
            reason=reason,
            notes=tuple(sorted(dict.fromkeys(notes), key=lambda note: note.kind != "warning")),
        )

    def _doubts(self, formula: ast.Formula) -> Iterator[Note]:
        """What a reader may have meant otherwise."""
        names = list(self.chain.rewards)
        unnamed = (isinstance(node, ast.Reward) and node.structure is None for node in ast.walk(formula))
        if len(names) > 1 and any(unnamed):
            others = ", ".join(f'"{name}"' for name in names[1:5]) + (", ..." if len(names) > 5 else "")
            text = f'R without a name takes the first reward structure, "{names[0]}", and not {others}'
            yield Note(kind="warning", text=text)

    def at_start(self, vector: EnclosureVector) -> Enclosure:
        """The mean of per-state values under the initial distribution."""
        return vector.take(self._support).weighted_mean(self._support_weights)

    @property
    def starts_vary(self) -> bool:
        """Whether runs start in several states."""
        return len(self._support) > 1

    def under_condition(self, vector: EnclosureVector, condition: EnclosureVector) -> Enclosure:
        """The mean of per-state values over the runs that satisfy a condition, whose probability is given per state.

        Runs that start where the condition is likelier count more: it is ``sum w_i c_i x_i / sum w_i c_i``. Where the
        condition is impossible the value is undefined, and does not count.
        """
        possible = ~(vector.undefined & (condition.to_float().value == 0))[self._support]
        if not possible.any():
            return vector[int(self._support[0])]
        values, shares = (each.take(self._support[possible]) for each in (vector, condition))
        weights = [self.weights[i] for i in self._support[possible].tolist()]
        both, share = (each.weighted_mean(weights) for each in (values * shares, shares))
        mean = (EnclosureVector.from_enclosures([both]) / EnclosureVector.from_enclosures([share]))[0]
        if mean.undefined or values.exact:
            return mean
        lower, upper = max(mean.lower, values.lower.min()), min(mean.upper, values.upper.max())
        return Enclosure(min(max(mean.value, lower), upper), lower, upper) if lower <= upper else mean

    def by_start(self, vector: EnclosureVector) -> dict[str, Enclosure]:
        """The value in each start state, of the first `MAX_START_STATES` of them."""
        return {self.chain.states[i]: vector[i] for i in self._support[:MAX_START_STATES].tolist()}


_UNDEFINED = "the value is undefined (such as 0/0)"


def _verdict(result: Value, *, exact: bool) -> tuple[Verdict | None, bool | None, str | None]:
    if isinstance(result, Range):
        return None, None, None
    if isinstance(result, EnclosureVector):
        if result.undefined[-1]:
            return Verdict.UNDECIDED, None, _UNDEFINED
        return None, None, None
    if result.surely[-1]:
        return Verdict.SATISFIED, True, None
    if not result.possibly[-1]:
        return Verdict.VIOLATED, False, None
    differ = "the start states differ in a label or variable, so that it neither holds at the start nor fails there"
    if exact:
        return Verdict.UNDECIDED, None, differ
    return (
        Verdict.UNDECIDED,
        None,
        f"a threshold lies inside the numerical bounds of a value (--exact decides), or {differ}",
    )


def _loose_number(result: Value, listings: Sequence[Listing]) -> Enclosure | None:
    """The first of the numbers that answer a query which rounding leaves too open to be given."""
    numbers = [number for listing in listings for _, number in listing.entries]
    match result:
        case Range(least, greatest):
            numbers += [least, greatest]
        case EnclosureVector():
            numbers.append(result[len(result) - 1])
    return next((number for number in numbers if isinstance(number, Enclosure) and not is_precise(number)), None)


def _spread(value: Enclosure, *, settled: bool) -> str:
    """Why a query is undecided whose value the numerical bounds leave open; ``settled`` if rationals cannot help."""
    cure = "" if settled else " (--exact may give it)"
    if math.isfinite(value.lower) != math.isfinite(value.upper):
        end = f"at least {value.lower:.6g}" if math.isfinite(value.lower) else f"at most {value.upper:.6g}"
        return f"the value is {end} and may be beyond the largest double{cure}"
    return f"rounding leaves open what the value is: it lies between {_ends(value)}{cure}"


def _nested_spread(value: Enclosure | None) -> str:
    """Why a query is undecided whose value hangs on a nested threshold that the bounds do not decide."""
    known = "" if value is None else f": it lies between {_ends(value)}"
    return f"the value hangs on a nested threshold that lies inside numerical bounds{known} (--exact decides)"


def _ends(value: Enclosure) -> str:
    """The bounds, with as many digits as it takes to tell them apart."""
    lower, upper = directed.nearest(value.lower), directed.nearest(value.upper)
    texts = ((f"{lower:.{digits}g}", f"{upper:.{digits}g}") for digits in range(6, 18))
    return " and ".join(next((pair for pair in texts if pair[0] != pair[1]), (f"{lower:.6g}", f"{upper:.6g}")))
