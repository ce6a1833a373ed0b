"""Families of chains with parameters, and questions whose exact answers come from closed formulas.

Every answer is a textbook formula evaluated in Fractions, never an engine's: a sum, a product or a binomial law. Each
family names its source. `FAMILIES` draws one with parameters, for the tests of the engines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from math import comb, prod

import numpy as np
from hypothesis import strategies as st

from tracebridge import MarkovChain, RationalMatrix, RationalVector
from tracebridge.chain import RewardStructure

Answer = Fraction | bool | None  # None is infinity
Row = dict[int, Fraction]
ONE = Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A property, and its value in the initial state."""

    property: str
    answer: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A chain with what is known about it."""

    name: str
    chain: MarkovChain
    questions: tuple[Question, ...]


def _reference(
    name: str,
    rows: Sequence[Row],
    start: int,
    answers: Mapping[str, Answer | int],
    *,
    labels: Mapping[str, Sequence[int]],
    rewards: Mapping[str, Sequence[Fraction | int]] | None = None,
) -> Reference:
    n = len(rows)
    chain = MarkovChain(
        states=tuple(f"state{i}" for i in range(n)),
        transitions=RationalMatrix.from_rows(rows),
        initial=RationalVector(np.eye(1, n, start, dtype=np.int64)[0], 1),
        labels={label: np.isin(np.arange(n), held) for label, held in labels.items()},
        rewards={reward: RewardStructure.from_fractions(list(values)) for reward, values in (rewards or {}).items()},
        variables={"s": np.arange(n)},
    )
    questions = tuple(
        Question(property=text, answer=value if value is None or isinstance(value, bool) else Fraction(value))
        for text, value in answers.items()
    )
    return Reference(name=name, chain=chain, questions=questions)


def with_unreachable_part(reference: Reference) -> Reference:
    """The same from the initial state, beside a class of two states that no run enters, and one that leads into it."""
    chain = reference.chain
    n = chain.n_states
    rows = [chain.exact_transitions().row(i) for i in range(n)]
    half = Fraction(1, 2)
    rows += [{n + 1: ONE}, {n: half, n + 1: half}, {0: half, n: half}]
    initial = [*chain.exact_initial(), Fraction(0), Fraction(0), Fraction(0)]
    wider = replace(
        chain,
        states=(*chain.states, "nowhere", "nowhere_else", "before"),
        transitions=RationalMatrix.from_rows(rows),
        initial=RationalVector.from_fractions(initial),
        rationals=None,
        initial_rationals=None,
        labels={name: np.append(mask, [True, False, False]) for name, mask in chain.labels.items()},
        rewards={
            name: RewardStructure.from_fractions([*structure.fractions(action=False), 1, 0, 5])
            for name, structure in chain.rewards.items()
        },
        variables={"s": np.arange(n + 3)},
    )
    return Reference(name=f"{reference.name}, unreachable part", chain=wider, questions=reference.questions)


# ---------------------------------------------------------------- walks between two ends


def gamblers_ruin(n: int, p: Fraction, start: int) -> Reference:
    """Up with p, down with 1 - p, from ``start`` until 0 or n (Kemeny and Snell, Finite Markov Chains, section 7.1)."""
    q = 1 - p
    rows: list[Row] = [{0: ONE}, *({i + 1: p, i - 1: q} for i in range(1, n)), {n: ONE}]
    ratio = q / p
    wins = Fraction(start, n) if p == q else (1 - ratio**start) / (1 - ratio**n)
    duration = Fraction(start * (n - start)) if p == q else start / (q - p) - n / (q - p) * wins
    return _reference(
        f"ruin n={n} p={p} start={start}",
        rows,
        start,
        {
            'P=? [ F "rich" ]': wins,
            'P=? [ F "ruined" ]': 1 - wins,
            'P=? [ !"ruined" U "rich" ]': wins,
            'P=? [ G !"rich" ]': 1 - wins,
            'R{"steps"}=? [ F ("rich" | "ruined") ]': duration,
            'R{"steps"}=? [ F "rich" ]': None,
            'R{"steps"}=? [ C ]': duration,
            'S=? [ "rich" ]': wins,
            f'P=? [ F<={n - start} "rich" ]': p ** (n - start),
            f'P=? [ F<={start - 1} "ruined" ]': 0,
            f'P>={wins} [ F "rich" ]': True,
            f'P>{wins} [ F "rich" ]': False,
            'P=? [ F "rich" || F ("rich" | "ruined") ]': wins,
            'P=? [ F G "rich" ]': wins,
        },
        labels={"ruined": [0], "rich": [n]},
        rewards={"steps": [0, *[1] * (n - 1), 0]},
    )


def birth_death(ups: Sequence[Fraction], downs: Sequence[Fraction]) -> Reference:
    """Up from i with ups[i], down from i + 1 with downs[i], else it stays; it starts at 0 and turns at both ends.

    Detailed balance, and the passage times that follow from it (Kelly, Reversibility and Stochastic Networks, section
    1.3; Karlin and Taylor, A First Course in Stochastic Processes, chapter 4).
    """
    n = len(ups)
    rows: list[Row] = []
    for i in range(n + 1):
        row = {} if i == n else {i + 1: ups[i]}
        if i:
            row[i - 1] = downs[i - 1]
        rows.append(row | {i: 1 - sum(row.values())})
    weights = list(accumulate((up / down for up, down in zip(ups, downs, strict=True)), Fraction.__mul__, initial=ONE))
    stationary = [weight / sum(weights) for weight in weights]
    passages = [sum(weights[: i + 1]) / (weights[i] * ups[i]) for i in range(n)]
    # of ever reaching n before 0 from 1: one over the sum of the products of downs over ups
    odds = list(accumulate((downs[i - 1] / ups[i] for i in range(1, n)), Fraction.__mul__, initial=ONE))
    return _reference(
        f"birth and death of {n + 1} states",
        rows,
        0,
        {
            'S=? [ "top" ]': stationary[n],
            'S=? [ "bottom" ]': stationary[0],
            'R{"height"}=? [ S ]': sum((i * share for i, share in enumerate(stationary)), Fraction(0)),
            'R{"steps"}=? [ F "top" ]': sum(passages),
            f'P=? [ F<={n} "top" ]': prod(ups),
            f'P=? [ F<{n} "top" ]': 0,
            'P=? [ F "top" ]': 1,
            'P=? [ X (P=? [ !"bottom" U "top" ] > 0) ]': ups[0],
            'filter(max, P=? [ !"bottom" U "top" ], s=1)': 1 / sum(odds),
            'P=? [ G F "top" ]': 1,
            'R{"steps"}=? [ C ]': None,
        },
        labels={"bottom": [0], "top": [n]},
        rewards={"height": range(n + 1), "steps": [1] * (n + 1)},
    )


def moran(n: int, fitness: Fraction, start: int) -> Reference:
    """Mutants of a fitness among n (Nowak, Evolutionary Dynamics, chapter 6).

    Without selection the times too (Ewens, Mathematical Population Genetics I, chapter 3).
    """
    rows: list[Row] = [{0: ONE}]
    for i in range(1, n):
        change = Fraction(i * (n - i), n) / (fitness * i + n - i)
        rows.append({i + 1: fitness * change, i - 1: change, i: 1 - (fitness + 1) * change})
    rows.append({n: ONE})
    fixed = Fraction(start, n) if fitness == 1 else (1 - fitness**-start) / (1 - fitness**-n)
    answers: dict[str, Answer] = {
        'P=? [ F "mutants" ]': fixed,
        'S=? [ "residents" ]': 1 - fixed,
        'P=? [ F G "mutants" ]': fixed,
        'P=? [ F ("mutants" | "residents") ]': ONE,
    }
    if fitness == 1:
        down = (Fraction(n - start, n - j) for j in range(1, start + 1))
        up = (Fraction(start, j) for j in range(start + 1, n))
        answers['R{"steps"}=? [ F ("mutants" | "residents") ]'] = n * (sum(down, Fraction(0)) + sum(up, Fraction(0)))
        answers['R{"count"}=? [ I=6 ]'] = Fraction(start)
        answers['R{"mixed_pairs"}=? [ I=5 ]'] = start * (n - start) * (1 - Fraction(2, n * n)) ** 5
        answers['R{"mixed_pairs"}=? [ C ]'] = Fraction(start * (n - start) * n * n, 2)
    return _reference(
        f"Moran n={n} fitness={fitness} start={start}",
        rows,
        start,
        answers,
        labels={"residents": [0], "mutants": [n]},
        rewards={
            "steps": [0, *[1] * (n - 1), 0],
            "count": range(n + 1),
            "mixed_pairs": [i * (n - i) for i in range(n + 1)],
        },
    )


# ---------------------------------------------------------------- waiting times


def coupons(n: int, k: int) -> Reference:
    """n kinds, one a draw, until all are seen (Feller, An Introduction to Probability Theory I, IV.2 and IX.3)."""
    rows: list[Row] = [{s + 1: Fraction(n - s, n), s: Fraction(s, n)} for s in range(n)]
    rows.append({n: ONE})

    def within(draws: int) -> Fraction:
        return sum(((-1) ** i * comb(n, i) * Fraction(n - i, n) ** draws for i in range(n + 1)), Fraction(0))

    return _reference(
        f"coupons n={n} k={k}",
        rows,
        0,
        {
            'R{"draws"}=? [ F "all" ]': n * sum((Fraction(1, i) for i in range(1, n + 1)), Fraction(0)),
            f'P=? [ F<={k} "all" ]': within(k),
            f'P=? [ G<={k} !"all" ]': 1 - within(k),
            f'P=? [ F={k} "all" ]': within(k),
            f'R{{"draws"}}=? [ C<={k} ]': sum((1 - within(j) for j in range(k)), Fraction(0)),
            f'R{{"kinds"}}=? [ I={k} ]': n * (1 - Fraction(n - 1, n) ** k),
            f'P=? [ F{{"draws"}}<={k} "all" ]': within(k),
            f'P>={within(k)} [ F<={k} "all" ]': True,
            'P=? [ F "all" ]': 1,
            'R{"kinds"}=? [ S ]': n,
        },
        labels={"all": [n]},
        rewards={"draws": [1] * n + [0], "kinds": range(n + 1)},
    )


def success_run(length: int, p: Fraction, k: int) -> Reference:
    """Trials until ``length`` successes in a row (Feller, An Introduction to Probability Theory I, section XIII.7).

    The probability u(k) that there is no such run in k trials: u(k) = u(k-1) - p^length (1-p) u(k-length-1), as a first
    run at trial k is preceded by a failure and no run before that.
    """
    rows: list[Row] = [{s + 1: p} | {0: 1 - p} for s in range(length)]
    rows.append({length: ONE})
    none = [ONE] * length + [1 - p**length]
    while len(none) <= k:
        none.append(none[-1] - p**length * (1 - p) * none[len(none) - length - 1])
    return _reference(
        f"run of {length} with p={p}, k={k}",
        rows,
        0,
        {
            'R{"trials"}=? [ F "done" ]': (1 / p**length - 1) / (1 - p),
            f'P=? [ F<={k} "done" ]': 1 - none[k],
            f'P=? [ F<{k + 1} "done" ]': 1 - none[k],
            f'P=? [ !"done" U[{min(length, k)},{k}] "done" ]': 1 - none[k],
            f'R{{"trials"}}=? [ C<={k} ]': sum(none[:k], Fraction(0)),
            'P=? [ F "done" ]': 1,
            'P=? [ !"done" W "done" ]': 1,
        },
        labels={"done": [length]},
        rewards={"trials": [1] * length + [0]},
    )


def successes(count: int, p: Fraction, d: int, level: Fraction) -> Reference:
    """Trials until ``count`` have succeeded: the negative binomial law (Feller I, section VI.8)."""
    rows: list[Row] = [{s + 1: p, s: 1 - p} for s in range(count)]
    rows.append({count: ONE})

    def within(trials: int) -> Fraction:
        terms = (comb(trials, j) * p**j * (1 - p) ** (trials - j) for j in range(count, trials + 1))
        return sum(terms, Fraction(0))

    smallest = next(trials for trials in range(10_000) if within(trials) >= level)
    return _reference(
        f"{count} successes with p={p}, d={d}, level={level}",
        rows,
        0,
        {
            f'P=? [ F<={d} "done" ]': within(d),
            f'P=? [ F{{"trials"}}<={d} "done" ]': within(d),
            f'P=? [ F[{d},{d + 3}] "done" ]': within(d + 3),
            'R{"trials"}=? [ F "done" ]': count / p,
            f'quantile(B, P>={level} [ F{{"trials"}}<=B "done" ])': smallest,
            f'P>={level} [ F<={smallest} "done" ]': True,
            'P=? [ X X "start" ]': (1 - p) ** 2,
        },
        labels={"start": [0], "done": [count]},
        rewards={"trials": [1] * count + [0]},
    )


def pipeline(losses: Sequence[Fraction], repeats: int) -> Reference:
    """Stages that fail with losses[i] and are tried 1 + repeats times each: geometric sums and their products."""
    width = repeats + 1
    success, failure = len(losses) * width, len(losses) * width + 1
    rows: list[Row] = []
    for i, loss in enumerate(losses):
        for attempt in range(width):
            again = i * width + attempt + 1 if attempt < repeats else failure
            rows.append({(i + 1) * width: 1 - loss, again: loss})
    rows += [{success: ONE}, {failure: ONE}]
    passed = [1 - loss**width for loss in losses]
    attempts = [(1 - loss**width) / (1 - loss) for loss in losses]
    reached = list(accumulate(passed, Fraction.__mul__, initial=ONE))
    return _reference(
        f"pipeline of {len(losses)} stages, {repeats} repeats",
        rows,
        0,
        {
            'P=? [ F "success" ]': reached[-1],
            'P=? [ F "failure" ]': 1 - reached[-1],
            'R{"attempts"}=? [ F ("success" | "failure") ]': sum(
                (share * tries for share, tries in zip(reached, attempts, strict=False)), Fraction(0)
            ),
            f'P=? [ F<={len(losses)} "success" ]': prod(1 - loss for loss in losses),
            f'P=? [ F<={success} "success" ]': reached[-1],
            f'P=? [ F<={width} "failure" ]': losses[0] ** width,
            'P=? [ F "failure" || F ("success" | "failure") ]': 1 - reached[-1],
            'P=? [ (F "success") | (F "failure") ]': 1,
            'P=? [ (F "success") & (F "failure") ]': 0,
        },
        labels={"success": [success], "failure": [failure]},
        rewards={"attempts": [1] * success + [0, 0]},
    )


# ---------------------------------------------------------------- symmetric walks


def cycle(n: int, start: int, k: int) -> Reference:
    """A fair walk on a cycle, seen after k steps (Aldous and Fill, Reversible Markov Chains, chapter 5)."""
    half = Fraction(1, 2)
    rows: list[Row] = [{(i + 1) % n: half, (i - 1) % n: half} for i in range(n)]
    up = range(k + 1)  # steps up; k - up go down, and the sum must be -start modulo n
    home = Fraction(sum(comb(k, u) for u in up if (start + 2 * u - k) % n == 0), 2**k)
    return _reference(
        f"cycle n={n} start={start} k={k}",
        rows,
        start,
        {
            'S=? [ "home" ]': Fraction(1, n),
            'R{"steps"}=? [ F "home" ]': start * (n - start),
            f'P=? [ F={k} "home" ]': home,
            f'R{{"here"}}=? [ I={k} ]': home,
            'R{"here"}=? [ S ]': Fraction(1, n),
            'P=? [ G F "home" ]': 1,
            'P=? [ F G "home" ]': 0,
            'P>=1 [ F "home" ]': True,
        },
        labels={"home": [0]},
        rewards={"steps": [1] * n, "here": [1] + [0] * (n - 1)},
    )


def urn(n: int, start: int, k: int) -> Reference:
    """Ehrenfest's urn: how far from home a walk on a hypercube is (Kemeny and Snell, section 7.3).

    The return probability is that of the hypercube (Diaconis, Group Representations in Probability and Statistics,
    chapter 3); the passage times follow from detailed balance.
    """
    rows: list[Row] = []
    for i in range(n + 1):
        moves = {i + 1: Fraction(n - i, n), i - 1: Fraction(i, n)}
        rows.append({j: p for j, p in moves.items() if p})
    weights = [comb(n, i) for i in range(n + 1)]
    down = [Fraction(sum(weights[i:]), weights[i]) * Fraction(n, i) for i in range(1, n + 1)]  # from i to i - 1
    answers: dict[str, Answer | int] = {
        'S=? [ "home" ]': Fraction(1, 2**n),
        'S=? [ "far" ]': Fraction(1, 2**n),
        'R{"distance"}=? [ S ]': Fraction(n, 2),
        f'R{{"distance"}}=? [ I={k} ]': Fraction(n, 2) + (start - Fraction(n, 2)) * (1 - Fraction(2, n)) ** k,
        'R{"steps"}=? [ F "home" ]': sum(down[:start], Fraction(0)),
        'P=? [ F "home" ]': 1,
    }
    if start == 0:
        powers = (comb(n, j) * (1 - Fraction(2 * j, n)) ** k for j in range(n + 1))
        answers[f'P=? [ F={k} "home" ]'] = sum(powers, Fraction(0)) / 2**n
    return _reference(
        f"urn n={n} start={start} k={k}",
        rows,
        start,
        answers,
        labels={"home": [0], "far": [n]},
        rewards={"distance": range(n + 1), "steps": [1] * (n + 1)},
    )


def final_cycles(shares: Sequence[Fraction]) -> Reference:
    """A first step into one of several cycles, the i-th of length i + 1: each state of a class has an equal share."""
    rows: list[Row] = [{}]
    firsts: list[int] = []
    for length, share in enumerate(shares, start=1):
        first = len(rows)
        firsts.append(first)
        rows[0][first] = share
        rows += [{first + (j + 1) % length: ONE} for j in range(length)]
    answers: dict[str, Answer | int] = {}
    for i, share in enumerate(shares):
        label = f"first{i}"
        answers[f'S=? [ "{label}" ]'] = share / (i + 1)
        answers[f'P=? [ G F "{label}" ]'] = share
        answers[f'P=? [ F G "{label}" ]'] = share if i == 0 else 0
        answers[f'P=? [ F={1 + 2 * (i + 1)} "{label}" ]'] = share
        answers[f'P=? [ F "{label}" || F ("{label}" | "first0") ]'] = 1 if i == 0 else share / (share + shares[0])
    answers['R{"firsts"}=? [ S ]'] = sum((share / (i + 1) for i, share in enumerate(shares)), Fraction(0))
    answers['P=? [ X X "first0" ]'] = shares[0]
    return _reference(
        f"cycles {[str(share) for share in shares]}",
        rows,
        0,
        answers,
        labels={f"first{i}": [first] for i, first in enumerate(firsts)},
        rewards={"firsts": [int(i in firsts) for i in range(len(rows))]},
    )


# ---------------------------------------------------------------- drawing one

_probability = st.fractions(min_value=Fraction(1, 50), max_value=Fraction(49, 50), max_denominator=50)
_half_at_most = st.fractions(min_value=Fraction(1, 30), max_value=Fraction(1, 2), max_denominator=30)


@st.composite
def _ruins(draw: st.DrawFn) -> Reference:
    n = draw(st.integers(2, 12))
    return gamblers_ruin(n, draw(_probability), draw(st.integers(1, n - 1)))


@st.composite
def _births_and_deaths(draw: st.DrawFn) -> Reference:
    n = draw(st.integers(1, 8))
    rates = st.lists(_half_at_most, min_size=n, max_size=n)
    return birth_death(draw(rates), draw(rates))


@st.composite
def _morans(draw: st.DrawFn) -> Reference:
    n = draw(st.integers(2, 9))
    fitness = draw(st.one_of(st.just(ONE), st.fractions(Fraction(1, 4), 4, max_denominator=8)))
    return moran(n, fitness, draw(st.integers(1, n - 1)))


@st.composite
def _cycles(draw: st.DrawFn) -> Reference:
    n = draw(st.integers(3, 11))
    return cycle(n, draw(st.integers(0, n - 1)), draw(st.integers(0, 14)))


@st.composite
def _urns(draw: st.DrawFn) -> Reference:
    n = draw(st.integers(1, 8))
    return urn(n, draw(st.integers(0, n)), draw(st.integers(0, 12)))


@st.composite
def _final_cycles(draw: st.DrawFn) -> Reference:
    weights = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    return final_cycles([Fraction(weight, sum(weights)) for weight in weights])


FAMILIES: Mapping[str, st.SearchStrategy[Reference]] = {
    "ruin": _ruins(),
    "birth and death": _births_and_deaths(),
    "moran": _morans(),
    "coupons": st.builds(coupons, st.integers(1, 7), st.integers(0, 14)),
    "run": st.builds(success_run, st.integers(1, 5), _probability, st.integers(0, 14)),
    "successes": st.builds(
        successes,
        st.integers(1, 4),
        st.fractions(Fraction(1, 5), Fraction(9, 10), max_denominator=20),
        st.integers(0, 12),
        st.fractions(Fraction(1, 10), Fraction(19, 20), max_denominator=20),
    ),
    "pipeline": st.builds(pipeline, st.lists(_probability, min_size=1, max_size=4), st.integers(0, 3)),
    "cycle": _cycles(),
    "urn": _urns(),
    "final cycles": _final_cycles(),
}
