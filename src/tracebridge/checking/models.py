"""Reading any model: our own documents, our own PRISM files, and other PRISM DTMCs through Storm's builder."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from tracebridge.chain import ChainFit, MarkovChain, chain_from_dict, decision_document, parse_document, write_chain
from tracebridge.chain.decision import DecisionProcess
from tracebridge.chain.expanded.fit import ExpandedFit
from tracebridge.checking.prism_program import build_prism_program
from tracebridge.checking.storm_process import lent_worker
from tracebridge.errors import Location, ModelError, Problem, PropertyError, UsageError
from tracebridge.export import exported_chain, is_own_prism, is_rewritten, read_own_prism, write_prism
from tracebridge.export.drn import write_drn
from tracebridge.export.drn_decision import is_own_drn_decision, read_drn_decision, write_drn_decision
from tracebridge.export.drn_reader import is_drn, read_drn
from tracebridge.export.explicit import write_explicit
from tracebridge.export.explicit_reader import is_tra, read_explicit
from tracebridge.export.prism_decision import is_own_decision, read_own_decision, write_prism_decision
from tracebridge.export.umb import write_umb
from tracebridge.export.umb_archive import is_umb
from tracebridge.export.umb_reader import read_umb
from tracebridge.pctl.ast import PropertyFile

#: A model text larger than this is refused.
MAX_BYTES = 2**30

#: Seconds that Storm gets to build a PRISM program.
BUILD_TIME_LIMIT = 60.0

_PRISM = re.compile(r"(\s|//[^\n]*(\n|$))*(dtmc|probabilistic|mdp|nondeterministic|ctmc|stochastic|pta|pomdp|smg|ma)\b")
#: Documents of an assessment that are no models.
_BESIDE_A_CHAIN = {"tracebridge-evidence", "tracebridge-results"}
_READ_TYPES = {"dtmc", "probabilistic", "mdp", "nondeterministic"}
_OWN_JSON = re.compile(rb'"kind"\s*:\s*"(chain-fit|expanded-fit|markov-chain|decision-process)"')


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Model:
    """A model as it was read: a chain or a decision process, the fit that it came from if any, and whether it is a
    PRISM file of ours.

    ``fit`` is a first-order fit, ``expanded`` one whose states remember more. ``notes`` say what of a PRISM program
    properties cannot use.
    """

    described: MarkovChain | DecisionProcess
    notes: tuple[str, ...] = ()
    fit: ChainFit | None = None
    expanded: ExpandedFit | None = None
    path: str | None = None
    is_export: bool = False

    @property
    def chain(self) -> MarkovChain:
        """The chain.

        Raises:
            ModelError: it is a decision process.
        """
        if isinstance(self.described, DecisionProcess):
            problem = Problem(
                location=Location(path=self.path),
                message="this is a decision process (MDP), whose choices have to be made first",
                hint="check, show, sample and export take it as it is; `sample --scheduler` draws runs to fit a chain "
                "to, and DecisionProcess.induced makes a chain of it",
            )
            raise ModelError(problem)
        return self.described

    @property
    def fitted(self) -> ChainFit | ExpandedFit | None:
        """What the chain was fitted as, of first order or richer; None for a model without counts."""
        return self.fit or self.expanded


def is_model(path: str | Path) -> bool:
    """Whether a file looks like a model and not like traces, by its first kilobytes."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(4096)
    except OSError:
        return False
    if head.lstrip()[:1] == b"{":
        return _OWN_JSON.search(head) is not None
    text = head.decode("utf-8", "replace").removeprefix("\ufeff")
    return is_umb(head) or is_drn(text) or is_tra(text) or _PRISM.match(text) is not None


_OF_TRACES = "tracebridge fit makes a chain of traces"
_JSON_LINES = re.compile(r"\s*\{[^\r\n]*\}[ \t]*\r?\n\s*\{")


def read_model(
    path: str | Path,
    *,
    constants: Mapping[str, Fraction | bool] | None = None,
    time_limit: float | None = None,
) -> Model:
    """Read a model; what it is is told by its content.

    Args:
        path: a chain.json, a markov-chain JSON document, a PRISM file, a ``.tra`` of PRISM or Storm with its other
            files beside it, a DRN file of Storm, or a UMB archive; ``-`` is standard input, for documents and PRISM.
        constants: values for undefined constants of a PRISM file. time_limit: seconds for Storm to build one.

    Raises:
        ModelError: the file cannot be read or breaks an invariant; with its place.
        EngineError: Storm is needed to build the file and is missing or failed.
    """
    name = "standard input" if str(path) == "-" else str(path)
    try:
        if str(path) != "-" and (reader := _file_reader(Path(path))):
            _refuse_constants(constants or {})
            return Model(described=reader(Path(path)), path=name)
        return _parse(_read(path)[1], name, constants or {}, time_limit or BUILD_TIME_LIMIT)
    except ModelError as error:
        placed = [
            problem if problem.location.path else replace(problem, location=replace(problem.location, path=name))
            for problem in error.problems
        ]
        raise ModelError(placed) from error


def _file_reader(path: Path) -> Callable[[Path], MarkovChain | DecisionProcess] | None:
    """What reads a file of transitions, of Storm's DRN or of UMB; None for text that is read as a whole."""
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError:
        return None  # which reading it as text explains
    if is_umb(head):
        return read_umb
    text = head.decode("utf-8", "replace").removeprefix("\ufeff")
    if is_own_drn_decision(text):
        return read_drn_decision
    if is_drn(text):
        return read_drn
    return read_explicit if is_tra(text) else None


def _parse(text: str, name: str, constants: Mapping[str, Fraction | bool], time_limit: float) -> Model:
    if not text.strip():
        raise ModelError("the file is empty")
    if text.lstrip()[:1] in {"{", "["}:
        _refuse_constants(constants)
        if _JSON_LINES.match(text):
            raise ModelError(f"these are lines of JSON, such as traces have, and no model ({_OF_TRACES})")
        data = parse_document(text, name)
        if isinstance(data, dict) and data.get("kind") == "chain-fit":
            fit = ChainFit.from_dict(data, name)
            return Model(described=fit.chain, fit=fit, path=name)
        if isinstance(data, dict) and data.get("kind") == "expanded-fit":
            expanded = ExpandedFit.from_dict(data, name)
            return Model(described=expanded.chain, expanded=expanded, path=name)
        if isinstance(data, dict) and data.get("kind") == decision_document.KIND:
            return Model(described=decision_document.decision_from_dict(data, name), path=name)
        if isinstance(data, dict) and data.get("kind") in _BESIDE_A_CHAIN:
            raise ModelError(f"this is {data['kind']!r} and no model; its chain is in the chain.json beside it")
        return Model(described=chain_from_dict(data, name), path=name)
    if is_own_decision(text):
        _refuse_constants(constants)
        return Model(described=read_own_decision(text, path=name), path=name)
    if is_own_prism(text):
        _refuse_constants(constants)
        return Model(described=read_own_prism(text, path=name), path=name, is_export=True)
    found = _PRISM.match(text)
    if not found:
        raise ModelError(f"this is neither a JSON document of tracebridge nor a PRISM model ({_OF_TRACES})")
    if found[3] not in _READ_TYPES:
        raise ModelError(f"this is a PRISM model of type {found[3]}; tracebridge reads those of type dtmc and mdp")
    given = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in constants.items()}
    with lent_worker() as worker:
        program = build_prism_program(text, constants=given, worker=worker, time_limit=time_limit)
    return Model(described=program.described, notes=program.notes, path=name)


def model_for(model: Model, file: PropertyFile) -> MarkovChain | DecisionProcess:
    """The model that a property file speaks of: as it was fitted, or, for a file rewritten by an export, as exported.

    Raises:
        PropertyError: the file was rewritten for an exported PRISM file, and the model is another.
    """
    if not is_rewritten(file):
        return model.described
    if not model.is_export:
        raise PropertyError(
            "these properties were rewritten for the model.prism beside them; check them on that file, or use the "
            "properties that they were written from",
            location=Location(path=file.path),
        )
    return exported_chain(file, model.chain)


def _refuse_constants(constants: Mapping[str, Fraction | bool]) -> None:
    if constants:
        raise UsageError(f"no constant is called {', '.join(constants)}, neither in the property file nor in the model")


def _read(path: str | Path) -> tuple[str, str]:
    place = Location(path="standard input" if str(path) == "-" else str(path))
    if str(path) == "-":
        data = sys.stdin.buffer.read(MAX_BYTES + 1)
    elif not Path(path).exists():
        raise ModelError("there is no such file", location=place)
    elif Path(path).is_dir():
        raise ModelError(f"this is a folder (give {Path(path) / 'chain.json'}, or the model in it)", location=place)
    else:
        try:
            with Path(path).open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise ModelError(f"cannot be read: {error.strerror}", location=place) from None
    if len(data) > MAX_BYTES:
        raise ModelError(f"is larger than {MAX_BYTES} bytes", location=place)
    try:
        return str(place), data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError(f"is not UTF-8 text: byte {error.start}", location=place) from None


def write_model(chain: MarkovChain | DecisionProcess, path: str | Path) -> None:
    """Write a chain as the format that the file's ending names.

    ``.json``, ``.prism`` (also ``.pm``), ``.umb``, ``.drn``, or ``.tra`` with PRISM's other files beside it. A decision
    process goes to ``.json``, ``.prism`` (also ``.nm``), ``.umb`` or ``.drn``.

    Raises:
        UsageError: another ending.
    """
    if isinstance(chain, DecisionProcess):
        _write_decision(chain, Path(path))
        return
    match Path(path).suffix:
        case ".json":
            write_chain(path, chain)
        case ".prism" | ".pm":
            write_prism(chain, Path(path))
        case ".umb":
            write_umb(chain, path)
        case ".drn":
            write_drn(chain, Path(path))
        case ".tra":
            write_explicit(chain, Path(path).with_suffix(""))
        case other:
            raise UsageError(f"no model format goes by the ending {other!r}; choose .json, .prism, .umb, .drn or .tra")


def _write_decision(process: DecisionProcess, path: Path) -> None:
    match path.suffix:
        case ".json":
            decision_document.write_decision(path, process)
        case ".prism" | ".nm":
            write_prism_decision(process, path)
        case ".umb":
            write_umb(process, path)
        case ".drn":
            write_drn_decision(process, path)
        case other:
            raise UsageError(f"a decision process is not written as {other!r}; choose .json, .prism, .umb or .drn")
