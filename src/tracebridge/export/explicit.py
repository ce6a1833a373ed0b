"""Writing a chain as explicit files: one transition a line, as PRISM's or as Storm's explicit import takes them.

For the prefix ``model`` that is ``model.tra`` (transitions), ``.lab`` (labels), ``.sta`` (states; in PRISM's dialect),
``.srew`` and ``.trew`` (rewards of states and of transitions; ``model1.srew``, ``model2.srew`` and so on where there
are several structures), and ``model.names.json`` with what these cannot say (see `tracebridge.export.name_record`). The
two dialects differ: PRISM's files begin with counts and number their labels, Storm's begin with the word ``dtmc`` and
name them. Formats: PRISM manual, "Explicit Model Files"; Storm, "Explicit input".
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from tracebridge.chain.document import write_document
from tracebridge.errors import UsageError
from tracebridge.export.file_numbers import matrix_texts, vector_texts
from tracebridge.export.name_record import in_doubles, labels_to_write, record_of
from tracebridge.export.single_start import single_start
from tracebridge.export.whole_file import write_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.chain.reward_structure import RewardStructure

Dialect = Literal["prism", "storm"]


def write_explicit(
    chain: MarkovChain, prefix: str | Path, *, dialect: Dialect = "prism", exact: bool | None = None
) -> list[Path]:
    """Write the files of a chain; each appears whole or not at all.

    A spread initial distribution becomes an added first state (see `tracebridge.export.single_start`). A label stands
    for each state under its own name where there are at most `MAX_STATE_LABELS`. An action reward is written as the
    reward of every transition of its state.

    Args:
        chain: any chain. prefix: the files without their endings; an ending ``.tra`` is taken away; in a folder that
            exists, files are called ``model``. dialect: whose explicit import is to read them.
        exact: whether rationals are written as fractions, which PRISM reads with ``-exact`` only; with False the chain
            is rounded to doubles, and read back as such. By default as the chain is.

    Returns:
        The files that were written, the transitions first.

    Raises:
        UsageError: rationals for Storm's dialect, which has doubles only, or an integer too long to be read back.
        OSError, InputError: a file cannot be written.
    """
    if exact is False:
        chain = in_doubles(chain)
    if dialect == "storm" and chain.rationals is not None:
        raise UsageError("Storm's explicit files have doubles only; write .drn, or round the chain (exact=False)")
    stem = _stem(Path(prefix))
    written = single_start(chain)
    files: list[tuple[Path, Iterator[str]]] = [(beside(stem, ".tra"), _transition_lines(written, dialect))]
    files.append((beside(stem, ".lab"), _label_lines(written, dialect)))
    if dialect == "prism":
        files.append((beside(stem, ".sta"), _state_lines(written.n_states)))
    for k, (name, structure) in enumerate(written.rewards.items(), start=1):
        number = str(k) if len(written.rewards) > 1 else ""
        files.append((beside(stem, f"{number}.srew"), _state_rewards(written, name, structure, dialect)))
        files.append((beside(stem, f"{number}.trew"), _transition_rewards(written, name, structure, dialect)))
    for path, lines in files:
        write_lines(path, lines)
    names = beside(stem, ".names.json")
    write_document(names, record_of(chain))
    return [*(path for path, _ in files), names]


def beside(stem: Path, ending: str) -> Path:
    """The file of a model with this ending, such as ``.lab`` or ``1.srew``."""
    return stem.with_name(stem.name + ending)


def _stem(prefix: Path) -> Path:
    if prefix.is_dir():
        return prefix / "model"
    return prefix.with_suffix("") if prefix.suffix == ".tra" else prefix


def _transition_lines(written: MarkovChain, dialect: Dialect) -> Iterator[str]:
    values = matrix_texts(written.transitions, written.rationals)
    yield f"{written.n_states} {len(values)}" if dialect == "prism" else "dtmc"
    sources, targets = _coordinates(written)
    for i, j, value in zip(sources.tolist(), targets.tolist(), values, strict=True):
        yield f"{i} {j} {value}"


def _label_lines(written: MarkovChain, dialect: Dialect) -> Iterator[str]:
    names = {"init": np.flatnonzero(written.initial), "deadlock": np.zeros(0, dtype=np.int64)}
    names |= labels_to_write(written)
    spellings = list(names)
    if dialect == "prism":
        yield " ".join(f'{k}="{name}"' for k, name in enumerate(names))
        spellings = [str(k) for k in range(len(names))]
    else:
        yield from ("#DECLARATION", " ".join(names), "#END")
    states = np.concatenate(list(names.values()))
    kinds = np.repeat(np.arange(len(names)), [len(held) for held in names.values()])
    order = np.argsort(states, kind="stable")
    separator = ":" if dialect == "prism" else ""
    for i, group in _groups(states[order], kinds[order]):
        yield f"{i}{separator} {' '.join(spellings[k] for k in group)}"


def _groups(states: NDArray[np.int64], kinds: NDArray[np.int64]) -> Iterator[tuple[int, list[int]]]:
    first = np.flatnonzero(np.diff(states, prepend=-1))
    ends = [*first[1:].tolist(), len(states)]
    all_kinds = kinds.tolist()
    for i, start, end in zip(states[first].tolist(), first.tolist(), ends, strict=True):
        yield i, all_kinds[start:end]


def _state_lines(n: int) -> Iterator[str]:
    yield "(s)"
    for i in range(n):
        yield f"{i}:({i})"


def _state_rewards(written: MarkovChain, name: str, structure: RewardStructure, dialect: Dialect) -> Iterator[str]:
    texts = vector_texts(structure.state, structure.exact_state if written.rationals is not None else None)
    entries = [(i, text) for i, text in enumerate(texts) if text != "0"]
    if dialect == "prism":
        yield from (f'# Reward structure "{name}"', "# State rewards", f"{written.n_states} {len(entries)}")
    elif not entries:
        entries = [(0, "0")]  # Storm cannot read an empty file
    for i, text in entries:
        yield f"{i} {text}"


def _transition_rewards(written: MarkovChain, name: str, structure: RewardStructure, dialect: Dialect) -> Iterator[str]:
    texts = ["0"] * written.n_states
    if structure.action is not None:
        texts = vector_texts(structure.action, structure.exact_action if written.rationals is not None else None)
    earning = np.array([text != "0" for text in texts], dtype=np.bool_)
    sources, targets = _coordinates(written)
    kept = np.flatnonzero(earning[sources])
    if dialect == "prism":
        yield from (f'# Reward structure "{name}"', "# Transition rewards", f"{written.n_states} {len(kept)}")
    elif not len(kept):
        kept = np.array([0])
    for i, j in zip(sources[kept].tolist(), targets[kept].tolist(), strict=True):
        yield f"{i} {j} {texts[i]}"


def _coordinates(written: MarkovChain) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    matrix = written.transitions
    return np.repeat(np.arange(written.n_states), np.diff(matrix.indptr)), matrix.indices
