"""DeclaredSupport: the transitions that an agent may make, as its maker declares them."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
from scipy.sparse import csr_array

from tracebridge.chain.counts import RowCounts
from tracebridge.chain.document import checked_document, read_document
from tracebridge.chain.graph import reachable
from tracebridge.errors import FitError, Location, ModelError, Problem

KIND = "declared-support"

#: Version 2 added ``final``; a graph in which a run may end everywhere is written as version 1.
SCHEMA_VERSION = 2

_OUTCOMES = ("success", "failure")
_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredSupport:
    """The states of an agent, which of them may follow which, and from which a run may end.

    Attributes:
        successors: the states that may follow each state, ascending. Each is declared itself. ``success`` and
            ``failure`` are no states here; naming them changes nothing, and they are left out.
        final: the states from which ``success`` and ``failure`` may follow, ascending; None: all of them.

    Raises:
        ModelError: naming states: a successor or final state that is not declared, one from which no final state can be
            got to, an empty name, no state at all.
    """

    successors: Mapping[str, Collection[str]]
    final: Collection[str] | None = None

    def __post_init__(self) -> None:
        if text := [state for state, names in self.successors.items() if isinstance(names, str)]:
            raise ModelError(f"the successors of {text[0]!r} are one text, not a list of names")
        kept = {
            state: tuple(sorted({name for name in self.successors[state] if name not in _OUTCOMES}))
            for state in sorted(self.successors)
        }
        problems = [f"{name!r} cannot be the name of a state" for name in kept if not name or name in _OUTCOMES]
        problems += [
            f"{name!r} follows {state!r} but is not declared itself; give its successors, [] if it only ends runs"
            for state, names in kept.items()
            for name in names
            if name not in kept
        ]
        if not kept:
            problems.append("no state is declared")
        if problems:
            raise ModelError("; ".join(problems[:_SHOWN]), location=Location(field="successors"))
        object.__setattr__(self, "successors", MappingProxyType(kept))
        if self.final is not None:
            object.__setattr__(self, "final", self._checked_final(self.final))

    def _checked_final(self, final: Collection[str]) -> tuple[str, ...]:
        problems = ["they are one text, not a list of names"] if isinstance(final, str) else []
        problems += [f"{name!r} is not declared" for name in final if not problems and name not in self.successors]
        if not problems:
            names = list(self.successors)
            position = {name: i for i, name in enumerate(names)}
            pairs = [(position[name], position[state]) for state in names for name in self.successors[state]]
            towards, away = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
            backwards = csr_array((np.ones(len(pairs)), (towards, away)), shape=(len(names),) * 2)
            ends = reachable(backwards, np.array([name in set(final) for name in names], dtype=np.bool_))
            problems += [
                f"from {name!r} no run could ever end" for name, end in zip(names, ends, strict=True) if not end
            ]
        if problems:
            raise ModelError("; ".join(problems[:_SHOWN]), location=Location(field="final"))
        return tuple(sorted(set(final)))

    def may_end(self, state: str) -> bool:
        """Whether a run may end from this state."""
        return self.final is None or state in self.final

    def may_follow(self, state: str, following: str) -> bool:
        """Whether a state or an outcome may follow a declared state."""
        return self.may_end(state) if following in _OUTCOMES else following in self.successors[state]

    def __hash__(self) -> int:
        return hash((tuple(self.successors.items()), self.final))

    def __repr__(self) -> str:
        n_edges = sum(map(len, self.successors.values()))
        return f"<DeclaredSupport of {len(self.successors)} states and {n_edges} transitions>"

    def to_dict(self) -> dict[str, Any]:
        """The JSON document ``declared-support``."""
        successors = {state: list(names) for state, names in self.successors.items()}
        if self.final is None:
            return {"kind": KIND, "schema_version": 1, "successors": successors}
        return {"kind": KIND, "schema_version": SCHEMA_VERSION, "successors": successors, "final": list(self.final)}

    @classmethod
    def from_dict(cls, data: Any, path: str | None = None) -> DeclaredSupport:
        """Read `to_dict`'s document; ``kind`` and ``schema_version`` may be left out. Raises ModelError, with field."""
        if isinstance(data, Mapping):
            data = {"kind": KIND, "schema_version": SCHEMA_VERSION, **data}
        document = checked_document(data, _Document, kind=KIND, version=SCHEMA_VERSION, oldest=1, path=path)
        try:
            return cls(successors=document.successors, final=document.final)
        except ModelError as error:
            places = [Location(path=path, field=p.location.field) for p in error.problems]
            problems = [Problem(location=at, message=p.message) for at, p in zip(places, error.problems, strict=True)]
            raise ModelError(problems) from error


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    kind: str
    schema_version: int
    successors: dict[str, list[str]]
    final: list[str] | None = None


def read_declared_support(path: str | Path) -> DeclaredSupport:
    """Read a declared graph from a file, JSON or, where its name ends so, TOML.

    In TOML::

        final = ["answer"]      # optional: where a run may end; without it, everywhere

        [successors]
        plan = ["search", "answer"]
        search = ["search", "answer"]
        answer = []

    Raises:
        ModelError: with place and field.
    """
    if Path(path).suffix.lower() != ".toml":
        return DeclaredSupport.from_dict(read_document(path), str(path))
    place = Location(path=str(path))
    if not Path(path).exists():
        raise ModelError("there is no such file", location=place)
    try:
        data = tomllib.loads(Path(path).read_bytes().decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ModelError(f"not TOML: {error}", location=place) from error
    except RecursionError:
        raise ModelError("nested too deeply", location=place) from None
    return DeclaredSupport.from_dict(data, str(path))


def declared_rows(rows: RowCounts, declared: DeclaredSupport, *, unseen_states: bool) -> tuple[RowCounts, csr_array]:
    """Rows over the declared states, and the declared entries of each as the stored entries of a matrix.

    Args:
        rows: counts of states that were visited.
        declared: the graph.
        unseen_states: also have the states that were never visited but can follow visited ones.

    Returns:
        The rows, and CSR of shape (m, m + 2) whose stored entries are what may follow; outcomes where a run may end.

    Raises:
        FitError: listing the transitions and states that were observed and are not declared.
    """
    successors = declared.successors
    _require_declared(rows, declared)
    position = {name: i for i, name in enumerate(successors)}
    pairs = [(position[state], position[name]) for state, names in successors.items() for name in names]
    sources, targets = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    graph = csr_array((np.ones(len(pairs)), (sources, targets)), shape=(len(position),) * 2)
    seen = np.zeros(len(position), dtype=np.bool_)
    seen[[position[name] for name in rows.states]] = True
    kept = reachable(graph, seen) if unseen_states else seen
    names = tuple(name for name, keep in zip(successors, kept.tolist(), strict=True) if keep)
    m = len(names)
    entries = graph[np.flatnonzero(kept)][:, np.flatnonzero(kept)].tocoo()
    own, following = entries.coords
    final = np.flatnonzero([declared.may_end(name) for name in names])
    both = np.repeat(final, 2), np.tile([m, m + 1], len(final))
    coordinates = (np.concatenate([own, both[0]]), np.concatenate([following, both[1]]))
    allowed = csr_array((np.ones(len(coordinates[0])), coordinates), shape=(m, m + 2))
    return rows.extended(names), allowed


def left_out_note(declared: DeclaredSupport, states: Collection[str]) -> list[str]:
    """One sentence on declared states that a chain over these states does not have; none where it has all."""
    missing = [name for name in declared.successors if name not in states]
    if not missing:
        return []
    listed = ", ".join(map(repr, missing[:_SHOWN])) + (f" and {len(missing) - _SHOWN} more" if missing[_SHOWN:] else "")
    return [f"declared states that no run can get to are not in the chain: {listed}"]


def _require_declared(rows: RowCounts, declared: DeclaredSupport) -> None:
    known = declared.successors
    problems = [f"state {name!r} was visited and is not declared" for name in rows.states if name not in known]
    followers = (*rows.states, *_OUTCOMES)
    entries = rows.counts.tocoo()
    for i, j, n in zip(*(part.tolist() for part in entries.coords), entries.data.tolist(), strict=True):
        source, target = rows.states[i], followers[j]
        if source in known and (target in known or target in _OUTCOMES) and not declared.may_follow(source, target):
            problems.append(f"{source!r} -> {target!r} was observed and is not declared (count {n})")
    if problems:
        more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
        hint = "declare them, or correct the map from steps to states"
        listed = "; ".join([*problems[:_SHOWN], *more])
        raise FitError(Problem(location=Location(), message=f"the runs leave the declared graph: {listed}", hint=hint))
