"""Checking a property file on a chain with several engines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Literal, Protocol

from tracebridge.chain import ChainFit, MarkovChain
from tracebridge.chain.decision import DecisionProcess
from tracebridge.chain.expanded.fit import ExpandedFit
from tracebridge.checking.closedform import ClosedFormSession
from tracebridge.checking.decision import decision_session, require_optima
from tracebridge.checking.engine import CLOSED_FORM, ENGINE_NAMES, PRISM, STORM, EngineSession
from tracebridge.checking.evaluate import PropertyChecker
from tracebridge.checking.prism import PrismSession
from tracebridge.checking.prism_process import TIME_LIMIT as PRISM_TIME_LIMIT
from tracebridge.checking.prism_process import PrismExecutable, find_prism
from tracebridge.checking.result import CheckResult, Note, Verdict
from tracebridge.checking.storm import StormSession
from tracebridge.checking.storm_process import TIME_LIMIT, lent_worker
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

#: The engines that are asked where none is named, beside PRISM where it is there (`default_engines`).
DEFAULT_ENGINES = ("closed-form", "storm")

#: Seconds that a tool's exact engine gets for one operator before its doubles are compared instead.
EXACT_TIME_LIMIT = 20.0

#: Chains of so many states are small enough to decide in rationals what doubles leave undecided.
SETTLES = {CLOSED_FORM: 300, STORM: 40, PRISM: 40}


def check(
    chain: MarkovChain | ChainFit | ExpandedFit | DecisionProcess,
    properties: PropertyFile | Path | str,
    *,
    engines: Sequence[str] = DEFAULT_ENGINES,
    exact: bool = False,
    constants: Constants | None = None,
    time_limit: float | None = None,
    prism: str | Path | None = None,
) -> list[CheckResult]:
    """Check every property with every engine.

    Args:
        chain: any chain or decision process, or a fit. properties: a property file, the path of one, or its text.
        engines: names from `ENGINE_NAMES`, in the order in which results come.
        exact: work in rationals. Where the exact engine of Storm or PRISM does not finish within its limit, or cannot
            evaluate an operator, the same tool's doubles stand in, and the result says so.
        constants: values for constants of the file, overriding those it gives. Names that the file does not declare
            are constants or variables of the chain.
        time_limit: seconds for one operator in Storm or PRISM; by default 60, and 20 for their exact engines.
        prism: the PRISM executable or the folder that it was unpacked to, if ``prism`` is among the engines; by default
            that of `find_prism`.

    Returns:
        One result a property and engine, property by property; `compare` puts them side by side.

    Raises:
        PropertyError: the file cannot be read, or a property does not fit the chain; all such properties are listed.
        NothingToCheckError: there is no property.
        UsageError: an unknown engine, or no executable file where one was named.
    """
    return list(
        iter_check(
            chain, properties, engines=engines, exact=exact, constants=constants, time_limit=time_limit, prism=prism
        )
    )


def iter_check(
    chain: MarkovChain | ChainFit | ExpandedFit | DecisionProcess,
    properties: PropertyFile | Path | str,
    *,
    engines: Sequence[str] = DEFAULT_ENGINES,
    exact: bool = False,
    constants: Constants | None = None,
    time_limit: float | None = None,
    prism: str | Path | None = None,
) -> Iterator[CheckResult]:
    """Like `check`, one result at a time, so that progress can be shown."""
    points = [constants or {}]
    for _, result in iter_points(
        chain, properties, points, engines=engines, exact=exact, time_limit=time_limit, prism=prism
    ):
        yield result


def iter_points(
    chain: MarkovChain | ChainFit | ExpandedFit | DecisionProcess,
    properties: PropertyFile | Path | str,
    points: Iterable[Constants],
    *,
    engines: Sequence[str] = DEFAULT_ENGINES,
    exact: bool = False,
    time_limit: float | None = None,
    prism: str | Path | None = None,
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
    source = chain
    if isinstance(chain, ChainFit | ExpandedFit):
        chain = chain.chain
    if not isinstance(chain, MarkovChain | DecisionProcess):
        hint = "; give its .fitted or .described" if hasattr(chain, "described") else ""
        raise UsageError(f"check takes a MarkovChain, a DecisionProcess or a fit, not a {type(chain).__name__}{hint}")
    frame = chain.frame if isinstance(chain, DecisionProcess) else chain
    file = _read(properties)
    if not file.properties:
        raise NothingToCheckError(f"{file.path or 'the property file'} holds no property")
    executable = find_prism(prism) if "prism" in engines else None
    with ExitStack() as stack:
        checkers: list[_Checker] = []
        for point in points:
            resolved = resolve_for(frame, file, point)
            if not checkers:
                require_fit(frame, resolved, source)
                if isinstance(chain, DecisionProcess):
                    require_optima(resolved)
                checkers = [
                    _checker(ENGINE_NAMES[name], chain, exact, time_limit, stack, executable) for name in engines
                ]
            for property_ in resolved.properties:
                folded = replace(property_, formula=fold_steps(property_.formula))
                for checker in checkers:
                    try:
                        result = checker.check(folded)
                    except PropertyError as error:
                        raise _placed(error, folded, file.path) from error
                    yield point, result


def default_engines(prism: str | Path | None = None) -> tuple[str, ...]:
    """The engines to ask where none is named: PRISM too where `find_prism` finds it.

    Args:
        prism: see `check`.

    Raises:
        UsageError: no executable file where one was named.
    """
    return DEFAULT_ENGINES if find_prism(prism) is None else (*DEFAULT_ENGINES, "prism")


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


def require_fit(
    chain: MarkovChain, file: PropertyFile, fit: ChainFit | ExpandedFit | DecisionProcess | MarkovChain | None = None
) -> None:
    """Refuse properties that name labels or reward structures the chain lacks.

    Args:
        chain: what they are about. file: resolved. fit: what the chain comes from, which may know why a label is none.

    Raises:
        PropertyError: with every such place.
    """
    from tracebridge.pctl import lint

    findings = lint(
        file,
        labels=chain.label_names(),
        reward_structures=list(chain.rewards),
        names=chain.word_names(),
        mixed=mixed_labels(fit),
        targets=(),
    )
    problems = [
        Problem(location=locate(finding.span, file.path), message=finding.message, hint=finding.hint)
        for finding in findings
        if finding.severity == "error"
    ]
    if problems:
        raise PropertyError(problems)


def mixed_labels(fit: object) -> Mapping[str, Sequence[str]]:
    """Words that are no labels because states of a fit hold steps with and without them, and these states."""
    abstraction = fit.abstraction if isinstance(fit, ChainFit | ExpandedFit) else None
    return {} if abstraction is None else abstraction.space.mixed_labels


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
    """Doubles, and rationals where these are cheap and doubles leave a threshold undecided.

    With ``refines``, rationals also stand in where doubles are worth nothing.
    """

    def __init__(self, floating: PropertyChecker, exact: PropertyChecker | None, *, refines: bool = False) -> None:
        self.floating = floating
        self.exact = exact
        self.refines = refines

    def check(self, property_: Property) -> CheckResult:
        result = self.floating.check(property_)
        worthless = self.refines and result.verdict is Verdict.UNSUPPORTED
        if self.exact is None or not (worthless or result.verdict is Verdict.UNDECIDED):
            return result
        settled = self.exact.check(property_)
        if not settled.answered or settled.verdict is Verdict.UNDECIDED:
            return result
        text = "doubles leave this undecided; rationals decided"
        if worthless:
            text = f"{result.reason}; its rationals stand in"
        return replace(settled, notes=(Note(kind="warning", text=text), *settled.notes))


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
        if result.verdict is Verdict.UNSUPPORTED:  # its reason says it all
            return result
        return replace(result, notes=(Note(kind="warning", text=note), *result.notes))


def _checker(
    engine: str,
    chain: MarkovChain | DecisionProcess,
    exact: bool,
    time_limit: float | None,
    stack: ExitStack,
    executable: PrismExecutable | None,
) -> _Checker:
    """The engine of this name in the arithmetic that was asked for, with the other in reserve."""
    worker = stack.enter_context(lent_worker()) if engine == STORM else None
    frame = chain.frame if isinstance(chain, DecisionProcess) else chain

    def checker(arithmetic: Literal["rational", "double", "refined"]) -> PropertyChecker:
        is_rational = arithmetic == "rational"
        limit = time_limit or (EXACT_TIME_LIMIT if is_rational else PRISM_TIME_LIMIT if engine == PRISM else TIME_LIMIT)
        session: EngineSession
        if isinstance(chain, DecisionProcess):
            session = decision_session(
                engine, chain, exact=is_rational, worker=worker, prism=executable, time_limit=limit
            )
        elif engine == PRISM:
            session = PrismSession(chain, exact=is_rational, executable=executable, time_limit=limit)
        elif worker is None:
            session = ClosedFormSession(chain, exact=is_rational)
        elif arithmetic == "refined":
            session = RefinedStormSession(chain, worker=worker, time_limit=limit)
        else:
            session = StormSession(chain, exact=is_rational, worker=worker, time_limit=limit)
        return PropertyChecker(frame, session)

    if exact:
        return _Exact(checker("rational"), checker("double"))
    settles = chain.is_exact and chain.n_states <= SETTLES[engine]
    return _Floating(checker("refined"), checker("rational") if settles else None, refines=engine == PRISM)
