"""ExpandedStructure: which expanded states a run can visit, and where each parameter of a model stands in the chain.

The states and the transitions of the chain follow from the form and from where runs may start; they are found once, and
the chains of many parameters (those of posterior draws) are then filled in by indexing. All rows are taken to be
positive, and phases to move as their kind allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from tracebridge.chain.expanded.grid import StateGrid
from tracebridge.chain.expanded.naming import CATEGORY, OUTCOME_STATES, TASK_CLASS, expanded_names
from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.chain.state_annotations import IMPLICIT_LABELS
from tracebridge.errors import FitError, ModelError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tracebridge.chain.expanded.model import ExpandedModel
    from tracebridge.states.model_form import ModelForm

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

_TAKEN = {"success", "failure", "absorbed", *IMPLICIT_LABELS}

# A sum of doubles that is nearer to one is left as it is, so that what is exact stays so.
_ROUNDING = 1e-13


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpandedStructure:
    """The states of the chain of a form, n of them before success and failure, and its transitions.

    Attributes:
        form: with the bins of its clock chosen.
        categories: m names, ascending. groups: G names of groups, ascending; empty without a group.
        start_mask: where runs may start, as `ExpandedModel.start`, shape (G, Z, m + 2).
        variables: what each state remembers, outcomes included, shape (n + 2,) each; see
            `tracebridge.chain.expanded.naming`.
        indptr, indices: the transitions of all n + 2 states, CSR.
    """

    form: ModelForm
    categories: tuple[str, ...]
    groups: tuple[str, ...]
    start_mask: NDArray[np.bool_]
    variables: Mapping[str, Integers]
    indptr: Integers
    indices: Integers
    _row_entry: Integers  # of A, for each transition but those of the outcomes
    _advance_entry: Integers  # of B, for the same; 0 at exits
    _exits: Integers  # the places of the transitions to success; those to failure follow
    _classes: Integers  # of each state but the outcomes
    _starts: Integers  # states where runs may start
    _start_entry: Integers  # of the starts, for each of these states

    @classmethod
    def of(
        cls, form: ModelForm, states: Sequence[str], groups: Sequence[str], start_mask: NDArray[np.bool_]
    ) -> ExpandedStructure:
        """Find the states that can be reached.

        Args:
            form: with the bins of its clock chosen. states: m category names, ascending. groups: names of groups.
            start_mask: shape (G, Z, m + 2), in the order of `ExpandedModel.start`; an end without a step is no state.

        Raises:
            FitError: for more states or transitions than `tracebridge.chain.expanded.grid` allows, saying what to leave
                out, or a category with a name that means something else in a chain.
            ModelError: for a mask of another shape, or without a start in a category.
        """
        grid = StateGrid(form, len(states), len(groups))
        mask = np.asarray(start_mask, dtype=np.bool_)
        if mask.shape != grid.start_shape:
            raise ModelError(f"the starts of {form} have shape {grid.start_shape}, not {mask.shape}")
        if not mask[:, :, :-2].any():
            raise ModelError("no run starts in a category")
        if taken := _TAKEN.intersection(states):
            raise FitError(f"a state cannot be called {min(taken)!r}: the word means something else in a chain")
        firsts, start_entry = grid.starts(mask)
        codes = grid.reachable(firsts)
        n = len(codes)
        own = grid.parts(codes)
        targets, fits = grid.successors(codes)
        exits = np.broadcast_to([n, n + 1], (n, 2))
        inner = np.concatenate([np.searchsorted(codes, targets).reshape(n, -1), exits], axis=1)
        kept = np.concatenate([fits.reshape(n, -1), np.ones((n, 2), dtype=np.bool_)], axis=1)
        row_entry, advance_entry = grid.entries(own)
        indptr = np.concatenate([[0], np.cumsum(np.append(kept.sum(axis=1), [1, 1]))]).astype(np.int64)
        return cls(
            form=form,
            categories=tuple(states),
            groups=tuple(groups),
            start_mask=mask,
            variables=grid.variables(own),
            indptr=indptr,
            indices=np.concatenate([inner[kept], [n, n + 1]]),
            _row_entry=row_entry[kept],
            _advance_entry=advance_entry[kept],
            _exits=indptr[1 : n + 1] - 2,
            _classes=own[TASK_CLASS],
            _starts=np.searchsorted(codes, firsts),
            _start_entry=start_entry,
        )

    @classmethod
    def of_model(cls, model: ExpandedModel) -> ExpandedStructure:
        """The structure of a model; runs may start where it says so. Raises as `of`."""
        return cls.of(model.form, model.states, model.groups, model.start > 0)

    @property
    def n_states(self) -> int:
        """The number of states n + 2, success and failure included."""
        return len(self.indptr) - 1

    @property
    def n_transitions(self) -> int:
        """The number of transitions, those of the outcomes included."""
        return len(self.indices)

    # ------------------------------------------------------------ parameters in their places

    def entries(self, rows: Floats, advance: Floats, class_tilts: Floats) -> Floats:
        """The probabilities of the transitions, in their order, shape (n_transitions, ...).

        Args:
            rows, advance, class_tilts: as those of `ExpandedModel`, each with the same further axes at its end, such as
                one for draws; these axes are those of the result.
        """
        further = rows.shape[4:]
        flat = rows.reshape(-1, *further)
        found = np.ones((self.n_transitions, *further))
        inner = found[:-2]
        np.take(flat, self._row_entry, axis=0, out=inner)
        if self.form.phases > 1:
            moves = advance.reshape(-1, *further)[self._advance_entry]
            for exit_ in (self._exits, self._exits + 1):
                moves[exit_] = 1
            inner *= moves
        if np.any(class_tilts):
            self._tilt(found, class_tilts[self._classes])
        return found

    def _tilt(self, found: Floats, tilts: Floats) -> None:
        """Multiply the odds of success against failure by ``exp(tilt)``; runs end as often."""
        success, failure = found[self._exits], found[self._exits + 1]
        up, down = success * np.exp(np.minimum(tilts, 0)), failure * np.exp(-np.maximum(tilts, 0))
        scale = np.divide(success + failure, up + down, out=np.zeros_like(up), where=up + down > 0)
        tilted = tilts != 0
        found[self._exits] = np.where(tilted, scale * up, success)
        found[self._exits + 1] = np.where(tilted, scale * down, failure)

    def initial(self, start: Floats, class_weights: Floats) -> Floats:
        """The initial distribution, shape (n + 2, ...).

        Args:
            start, class_weights: as those of `ExpandedModel`, each with the same further axes at its end.

        Raises:
            ModelError: for a positive start where runs may not start.
        """
        if np.any(start[~self.start_mask] > 0):
            raise ModelError("a run starts where the structure has no start")
        further = start.shape[3:]
        found = np.zeros((self.n_states, *further))
        first = start.reshape(-1, *further)[self._start_entry]
        found[self._starts] = first * class_weights[self._classes[self._starts]]
        found[-2:] = start[:, :, -2:].sum(axis=(0, 1))
        return found

    # ------------------------------------------------------------ the chain

    def chain(self, model: ExpandedModel, labels: Mapping[str, Sequence[str]] | None = None) -> MarkovChain:
        """The chain of a model: expanded states, then success and failure.

        A category is a label of all its copies. With ``labels`` each category and each of their words also earns its
        visits, as in the chain of `fit_counts`; ``steps`` earns 1 in each state before the outcomes. First order gives
        the plain chain, whose states are called as the categories. Rows of the model that sum to one up to 1e-9 only
        are divided by their sums. What has probability zero is no transition.

        Args:
            model: of this form, these categories and groups. labels: words and the categories that they hold in.

        Raises:
            ModelError: for a model of another structure. FitError: for a word that means something else in the chain.
        """
        if (model.form, model.states, model.groups) != (self.form, self.categories, self.groups):
            raise ModelError(f"a model of {model.form} does not fit the structure of {self.form}")
        entries = self.entries(_normalised(model.rows), _normalised(model.advance), model.class_tilts)
        start = model.start / model.start.sum() if abs(model.start.sum() - 1) > _ROUNDING else model.start
        initial = self.initial(start, _normalised(model.class_weights))
        if abs(initial.sum() - 1) > _ROUNDING:
            initial /= initial.sum()
        held = self._labels(labels or {})
        variables = {} if self._is_plain else dict(self.variables)
        own = {name: values[:-2] for name, values in self.variables.items()}
        names = expanded_names(self.categories, self.groups, own, {*held, *IMPLICIT_LABELS})
        n = self.n_states
        return MarkovChain(
            states=(*names, *OUTCOME_STATES),
            transitions=csr_array((entries, self.indices, self.indptr), shape=(n, n)),
            initial=initial,
            labels=held,
            rewards=self._rewards(held, labels),
            variables=variables,
        )

    @property
    def _is_plain(self) -> bool:
        """States are categories."""
        return self.variables.keys() == {CATEGORY}

    def _labels(self, words: Mapping[str, Sequence[str]]) -> dict[str, NDArray[np.bool_]]:
        category = self.variables[CATEGORY]
        m = len(self.categories)
        position = {name: i for i, name in enumerate(self.categories)}
        held = {"success": category == m, "failure": category == m + 1, "absorbed": category >= m}
        if not self._is_plain:  # there the name of a state is its label
            held |= {name: category == i for name, i in position.items()}
        for word, names in words.items():
            if word in _TAKEN or (word in position and set(names) != {word}):
                raise FitError(f"{word!r} cannot be a label of {sorted(names)}: it means something else in a chain")
            if word not in held:
                held[word] = np.isin(category, [position[name] for name in names if name in position])
        return held

    def _rewards(
        self, held: Mapping[str, NDArray[np.bool_]], words: Mapping[str, Sequence[str]] | None
    ) -> dict[str, RewardStructure]:
        category = self.variables[CATEGORY]
        m = len(self.categories)
        rewards = {"steps": RewardStructure(state=(category < m).astype(np.float64))}
        if words is not None:
            visited = {word: held[word] for word in words}
            visited |= {name: category == i for i, name in enumerate(self.categories)}
            for name in sorted(visited):
                if visited[name].any():
                    rewards[name] = RewardStructure(state=visited[name].astype(np.float64))
        return rewards


def _normalised(values: Floats) -> Floats:
    """Distributions along the last axis; those that sum to one up to rounding are left as they are."""
    total = values.sum(axis=-1, keepdims=True)
    return np.where(np.abs(total - 1) > _ROUNDING, values / total, values)
