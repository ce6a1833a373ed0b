"""Checking a property file on a chain with several engines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Protocol

from tracebridge.chain import ChainFit, MarkovChain
from tracebridge.chain.expanded.fit import ExpandedFit
from tracebridge.checking.closedform import ClosedFormSession
from tracebridge.checking.engine import ENGINE_NAMES, STORM
from tracebridge.checking.evaluate import PropertyChecker
from tracebridge.checking.result import CheckResult, Note, Verdict
from tracebridge.checking.storm import StormSession
from tracebridge.checking.storm_process import TIME_LIMIT, StormWorker
from tracebridge.checking.storm_refined import RefinedStormSession
from tracebridge.errors import (
    EngineTimeoutError,
    NothingToCheckError,
    Problem,
    PropertyError,
    UnsupportedError,
    UsageError,
)
from tracebridge.pctl import fold_steps, parse_properties, read_properties, resolve_constants
from tracebridge.pctl.ast import Property, PropertyFile
from tracebridge.pctl.source import NO_PATH, locate

#: Values of constants by name.
Constants = Mapping[str, Fraction | bool]

#: Seconds that Storm's exact engine gets for one operator before its doubles are compared instead.
EXACT_TIME_LIMIT = 20.0

#: Chains of so many states are small enough to decide in rationals what doubles leave undecided.
CLOSED_FORM_SETTLES = 300
STORM_SETTLES = 40


def check(
    chain: MarkovChain | ChainFit | ExpandedFit,
    properties: PropertyFile | Path | str,
    *,
    engines: Sequence[str] = ("closed-form", "storm"),
    exact: bool = False,
    constants: Constants | None = None,
    time_limit: float | None = None,
) -> list[CheckResult]:
    """Check every property with every engine.

    Args:
        chain: any chain, or a fit. properties: a property file, the path of one, or the text of one.
        engines: names from `ENGINE_NAMES`, in the order in which results come.
        exact: work in rationals. Where Storm's exact engine does not finish within its limit, Storm's doubles stand in,
            and the result says so.
        constants: values for constants of the file, overriding those it gives. Names that the file does not declare
            are constants or variables of the chain.
        time_limit: seconds for one operator in Storm; by default 60, and 20 for its exact engine.

    Returns:
        One result a property and engine, property by property; `compare` puts them side by side.

    Raises:
        PropertyError: the file cannot be read, or a property does not fit the chain; all such properties are listed.
        NothingToCheckError: there is no property.
        UsageError: an unknown engine.
    """
    return list(iter_check(chain, properties, engines=engines, exact=exact, constants=constants, time_limit=time_limit))


def iter_check(
    chain: MarkovChain | ChainFit | ExpandedFit,
    properties: PropertyFile | Path | str,
    *,
    engines: Sequence[str] = ("closed-form", "storm"),
    exact: bool = False,
    constants: Constants | None = None,
    time_limit: float | None = None,
) -> Iterator[CheckResult]:
    """Like `check`, one result at a time, so that progress can be shown."""
    points = [constants or {}]
    for _, result in iter_points(chain, properties, points, engines=engines, exact=exact, time_limit=time_limit):
        yield result


def iter_points(
    chain: MarkovChain | ChainFit | ExpandedFit,
    properties: PropertyFile | Path | str,
    points: Iterable[Constants],
    *,
    engines: Sequence[str] = ("closed-form", "storm"),
    exact: bool = False,
    time_limit: float | None = None,
) -> Iterator[tuple[Constants, CheckResult]]:
    """`check` for several values of the constants, with each engine loaded once: point and result, point by point.

    Args:
        points: values of constants; see `tracebridge.pctl.Experiment.points`. The rest: see `check`.
    """
    for name in engines:
        if name not in ENGINE_NAMES:
            raise UsageError(f"there is no engine {name!r}; choose from {', '.join(ENGINE_NAMES)}")
    if not engines:
        raise UsageError(f"no engine was chosen; choose from {', '.join(ENGINE_NAMES)}")
    if isinstance(chain, ChainFit | ExpandedFit):
        chain = chain.chain
    if not isinstance(chain, MarkovChain):
        raise UsageError(f"check takes a MarkovChain or a ChainFit, not {type(chain).__name__}")
    file = _read(properties)
    if not file.properties:
        raise NothingToCheckError(f"{file.path or 'the property file'} holds no property")
    with ExitStack() as stack:
        checkers: list[_Checker] = []
        for point in points:
            resolved = resolve_for(chain, file, point)
            if not checkers:
                require_fit(chain, resolved)
                checkers = [_checker(name, chain, exact=exact, time_limit=time_limit, stack=stack) for name in engines]
            for property_ in resolved.properties:
                folded = replace(property_, formula=fold_steps(property_.formula))
                for checker in checkers:
                    try:
                        result = checker.check(folded)
                    except PropertyError as error:
                        raise _placed(error, folded, file.path) from error
                    yield point, result


def _placed(error: PropertyError, property_: Property, path: str | None) -> PropertyError:
    """The error with the file, and with the place of the property where it has none of its own."""
    problems = []
    for problem in error.problems:
        place = problem.location
        if place.line is None:
            place = locate(property_.formula.span, path)
        problems.append(replace(problem, location=replace(place, path=place.path or path or NO_PATH)))
    return PropertyError(problems)


def resolve_for(chain: MarkovChain, file: PropertyFile, constants: Constants) -> PropertyFile:
    """The file with its constants, those of the model, its labels and references replaced by what they stand for.

    Raises:
        PropertyError, UsageError: see `resolve_constants`.
    """
    return resolve_constants(
        file,
        constants,
        model_constants=chain.constants,
        variables=chain.variables,
        model_labels=chain.label_names(),
    )


def require_fit(chain: MarkovChain, file: PropertyFile) -> None:
    """Refuse properties that name labels or reward structures the chain lacks.

    Raises:
        PropertyError: with every such place.
    """
    from tracebridge.pctl import lint

    findings = lint(
        file, labels=chain.label_names(), reward_structures=list(chain.rewards), names=chain.word_names(), targets=()
    )
    problems = [
        Problem(location=locate(finding.span, file.path), message=finding.message, hint=finding.hint)
        for finding in findings
        if finding.severity == "error"
    ]
    if problems:
        raise PropertyError(problems)


def _read(properties: PropertyFile | Path | str) -> PropertyFile:
    if isinstance(properties, PropertyFile):
        return properties
    if isinstance(properties, Path):
        return read_properties(properties)
    if not isinstance(properties, str):
        raise UsageError(f"properties are a text, a Path or a PropertyFile, not {type(properties).__name__}")
    if properties.endswith((".props", ".pctl")) and "\n" not in properties and '"' not in properties:
        raise UsageError(f"this text looks like the name of a file: check(chain, Path({properties!r}))")
    return parse_properties(properties)


class _Checker(Protocol):
    """One engine, ready for property after property."""

    def check(self, property_: Property) -> CheckResult: ...


class _Floating:
    """Doubles, and rationals where doubles leave a threshold undecided and rationals are cheap."""

    def __init__(self, floating: PropertyChecker, exact: PropertyChecker | None) -> None:
        self.floating = floating
        self.exact = exact

    def check(self, property_: Property) -> CheckResult:
        result = self.floating.check(property_)
        if result.verdict is not Verdict.UNDECIDED or self.exact is None:
            return result
        settled = self.exact.check(property_)
        if not settled.answered or settled.verdict is Verdict.UNDECIDED:
            return result
        note = Note(kind="warning", text="doubles leave this undecided; rationals decided")
        return replace(settled, notes=(note, *settled.notes))


class _Exact:
    """Rationals, and doubles where rationals take too long: once out of time, for the rest of the run."""

    def __init__(self, exact: PropertyChecker, floating: PropertyChecker) -> None:
        self.exact = exact
        self.floating = floating
        self.note: str | None = None

    def check(self, property_: Property) -> CheckResult:
        note = self.note
        if note is None:
            try:
                return self.exact.check(property_, propagate=(EngineTimeoutError, UnsupportedError))
            except EngineTimeoutError as error:
                note = self.note = f"{self.exact.session.name} gave up on rationals ({error}); its doubles stand in"
            except UnsupportedError as error:
                note = f"{self.exact.session.name} has no rational answer ({error}); its doubles stand in"
        result = self.floating.check(property_)
        return replace(result, notes=(Note(kind="warning", text=note), *result.notes))


def _checker(name: str, chain: MarkovChain, *, exact: bool, time_limit: float | None, stack: ExitStack) -> _Checker:
    small = chain.is_exact and chain.n_states <= (STORM_SETTLES if ENGINE_NAMES[name] == STORM else CLOSED_FORM_SETTLES)
    if ENGINE_NAMES[name] != STORM:
        closed = PropertyChecker(chain, ClosedFormSession(chain))
        if not exact:
            return _Floating(closed, PropertyChecker(chain, ClosedFormSession(chain, exact=True)) if small else None)
        return _Exact(PropertyChecker(chain, ClosedFormSession(chain, exact=True)), closed)
    worker = stack.enter_context(StormWorker())
    limit = time_limit or TIME_LIMIT
    rational_limit = time_limit or EXACT_TIME_LIMIT
    rational = PropertyChecker(chain, StormSession(chain, exact=True, worker=worker, time_limit=rational_limit))
    if exact:
        return _Exact(
            rational, PropertyChecker(chain, StormSession(chain, exact=False, worker=worker, time_limit=limit))
        )
    refined = PropertyChecker(chain, RefinedStormSession(chain, worker=worker, time_limit=limit))
    return _Floating(refined, rational if small else None)
