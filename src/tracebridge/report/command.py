"""The command of an assessment as JSON values, and back: every option that changes a number, and no place on a machine.

Of files only the names are kept; what they said is elsewhere in the evidence (maps of states, declared graphs), or its
hash is (outcomes, endings). Functions of Python's cannot be kept, only named.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracebridge.chain.fit_corpus import fit_chain
from tracebridge.chain.support import DeclaredSupport
from tracebridge.chain.vocabulary import StateVocabulary
from tracebridge.states.manual import StateMap
from tracebridge.states.text_features import TextFeatures

if TYPE_CHECKING:
    from tracebridge.chain.fit import ChainFit

#: How files are read.
_READING: Mapping[str, Any] = {
    "trace_format": None,
    "mapping": None,
    "outcomes": None,
    "endings": None,
    "skip_bad": False,
}

#: Arguments of `fit_chain` that follow from others.
_DERIVED = frozenset({"traces", "propositions"})

#: Options that are files; their names alone are kept.
_FILES = frozenset({"states", "outcomes", "endings"})

#: Options that stand in the document of the fit, where they can be found again.
_IN_FIT = frozenset({"states", "support", "vocabulary"})


def fit_defaults() -> dict[str, Any]:
    """The options of reading and fitting with what they are where they are not given."""
    parameters = inspect.signature(fit_chain).parameters.values()
    return {**_READING, **{each.name: each.default for each in parameters if each.name not in _DERIVED}}


def command_document(verb: str, options: Mapping[str, Any], fit_options: Mapping[str, Any]) -> dict[str, Any]:
    """The ``command`` of an evidence file.

    Args:
        options: of the verb, by the names of its Python arguments. fit_options: of reading and fitting; those that
            change no number are left out, and those not given are there as they are by default.
    """
    chosen = {name: fit_options.get(name, default) for name, default in fit_defaults().items()}
    if isinstance(chosen["support"], Mapping):
        chosen["support"] = "declared"
    written = {
        name: _file_names(value) if name in _FILES else _to_json(value) for name, value in {**options, **chosen}.items()
    }
    written["outcomes"] = written["outcomes"] or None  # no file is no option
    return {"verb": verb, "options": written}


def fit_arguments(command: Mapping[str, Any], fit: ChainFit) -> tuple[dict[str, Any], list[str]]:
    """The options of reading and fitting again, and the names of those that the document cannot give back.

    Args:
        command: of the evidence. fit: its first-order fit, which holds the map of states and the declared graph.
    """
    recorded: Mapping[str, Any] = command["options"]
    arguments: dict[str, Any] = {}
    missing = []
    for name, default in fit_defaults().items():
        value = recorded.get(name, default)
        if value == default:
            continue
        found = _from_fit(name, value, fit) if name in _IN_FIT else value
        if name == "text_features" and isinstance(value, Mapping) and value.get("python") is None:
            found = TextFeatures(weight=value["weight"])
        if found is None or (isinstance(found, Mapping) and "python" in found) or name in ("outcomes", "endings"):
            missing.append(name)
        else:
            arguments[name] = found
    return arguments, missing


def _from_fit(name: str, value: Any, fit: ChainFit) -> Any:
    if name == "vocabulary":
        return fit.vocabulary
    if name == "support":
        return fit.declared if value == "declared" else value
    classifier = None if fit.abstraction is None else fit.abstraction.classifier
    return classifier if isinstance(classifier, StateMap) else None


def _file_names(value: Any) -> Any:
    if isinstance(value, str | Path):
        return Path(value).name
    if isinstance(value, list | tuple):
        return [_file_names(item) for item in value]
    return _to_json(value)


def _to_json(value: Any) -> Any:
    """JSON values; of functions the names."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Fraction():
            return str(value)
        case DeclaredSupport():
            return "declared"
        case StateMap():
            return "map"
        case StateVocabulary():
            return "vocabulary"
        case TextFeatures():
            named = {} if value.encoder is None else {"python": _python_name(value.encoder)}
            return {"weight": value.weight, **named}
        case Mapping():
            return {str(key): _to_json(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_to_json(item) for item in value]
    return {"python": _python_name(value)}


def _python_name(value: Any) -> str:
    return str(getattr(value, "__qualname__", type(value).__qualname__))
