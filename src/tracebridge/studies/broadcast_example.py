"""A worked example: a deliberation by broadcast as a chain and as routing processes, by both engines.

Its counts of pools, routings and utterances are those published for 11,122 blocks of 4,181 deliberations. Illustrative
are: pools that do not depend on the past, divergences without a change of correctness split 25/75 between correct and
wrong, and the chances of an end, which give the published blocks of a deliberation and the published pass rate.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.agreement import compare
from tracebridge.chain import MarkovChain, RationalMatrix, RationalVector
from tracebridge.chain.decision import DecisionProcess
from tracebridge.checking import check
from tracebridge.closedform import long_run_reliability
from tracebridge.confidence.deliberation import POLLS, STATES, Deliberations
from tracebridge.confidence.deliberation_chain import DeliberationFigures, deliberation_vocabulary
from tracebridge.confidence.routing_process import ACTIONS
from tracebridge.studies.broadcast_published import AGENTS, BLOCKS, DIVERGENT, SELECTED_VALID, TRACES, VALID_PAIRS
from tracebridge.studies.result import Table
from tracebridge.studies.statement import Statement, equals, fixed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracebridge.agreement import Agreement
    from tracebridge.studies.result import Cell

#: By pool, how often which kind of poll was selected: i invalid, w wrong, c correct. Of the missed correct candidates
#: (w of M) 459 to 466 are printed alike; i of M and C follow from it.
ROUTED = {
    "N": {"i": 1_469},
    "W": {"i": 148, "w": 4_210},
    "M": {"i": 8, "w": 462, "c": 714},
    "C": {"i": 30, "c": 4_081},
}
WRONG, CORRECT = 4_210 + 462, 714 + 4_081
IMPROVED, DEGRADED, SAME = 335, 496, 1_096
PASS_RATE = Fraction(892, 1_000)
#: What is asked of the chain, and the answer that its linear equations gave before, in doubles.
QUESTIONS = (
    ("it passes", 'P=? [ F "pass" ]', 0.892),
    ("it passes within 4 blocks", 'P=? [ F<=13 "pass" ]', 0.75669262),
    ("blocks", 'R{"blocks"}=? [ F "done" ]', 2.66012916),
    ("it ever degrades", 'P=? [ F "degraded" ]', 0.10683754),
    ("it passes, never degraded", 'P=? [ !"degraded" U "pass" ]', 0.80331747),
    ("it passes, if degraded", 'P=? [ F ("degraded" & (F "pass")) ] / P=? [ F "degraded" ]', 0.83006899),
    ("a correct candidate is ever missed", 'P=? [ F "missed" ]', 0.10073102),
    ("degradations", 'R{"degradations"}=? [ F "done" ]', 0.11863191),
    ("it fails, no correct poll selected", 'P=? [ !"selected_correct" U "fail" ]', 0.07589481),
)
#: What is asked of the routing process that selects valid polls, and of the one that may select any.
BOUNDS = {
    "valid": (
        ("it passes, best router", 'Pmax=? [ F "pass" ]', 0.906076),
        ("it passes, worst router", 'Pmin=? [ F "pass" ]', 0.870331),
    ),
    "all": (
        ("it passes, best router of all polls", 'Pmax=? [ F "pass" ]', 0.906076),
        ("it passes, worst router of all polls", 'Pmin=? [ F "pass" ]', 0.0),
    ),
}
#: The mean share of correct candidates among the valid ones of a mixed block: of 895 blocks with three valid polls 525
#: have two correct ones; 289 have one correct of two.
RANDOM_VALID = (Fraction(2, 3) * 525 + Fraction(1, 3) * 370 + Fraction(1, 2) * 289) / 1_184


def example_chain() -> MarkovChain:
    """The chain, in rationals, over the states of `tracebridge.confidence.deliberation` that it visits."""
    silent = 1 - Fraction(VALID_PAIRS, SELECTED_VALID)
    spoken = {
        "i": {"none": Fraction(1)},
        "w": {"none": silent, "imp": Fraction(IMPROVED, WRONG), "dw": Fraction(3 * SAME, 4 * WRONG)},
        "c": {"none": silent, "deg": Fraction(DEGRADED, CORRECT), "dc": Fraction(SAME, 4 * CORRECT)},
    }
    spoken["w"]["kw"], spoken["c"]["kc"] = (1 - sum(spoken[kind].values(), Fraction(0)) for kind in "wc")
    correct = (CORRECT * (spoken["c"]["kc"] + spoken["c"]["dc"]) + IMPROVED) / BLOCKS
    ends = Fraction(TRACES, BLOCKS)
    accepted, given_up = PASS_RATE * ends / correct, (1 - PASS_RATE) * ends / (1 - correct)
    start = {f"poll_{pool}": Fraction(sum(kinds.values()), BLOCKS) for pool, kinds in ROUTED.items()}
    rows: dict[str, dict[str, Fraction]] = {}
    for pool, kinds in ROUTED.items():
        total = sum(kinds.values())
        rows[f"poll_{pool}"] = {f"route_{pool}_{kind}": Fraction(count, total) for kind, count in kinds.items()}
        for kind in kinds:
            rows[f"route_{pool}_{kind}"] = {f"speak_{speech}": share for speech, share in spoken[kind].items()}
    for speech in ("kc", "kw", "dc", "dw", "deg", "imp", "none"):
        end, chance = ("success", accepted) if speech in ("kc", "dc", "imp") else ("failure", given_up)
        rows[f"speak_{speech}"] = {end: chance, **{poll: (1 - chance) * share for poll, share in start.items()}}
    rows |= {end: {end: Fraction(1)} for end in ("success", "failure")}
    states = tuple(rows)
    position = {state: i for i, state in enumerate(states)}
    vocabulary = deliberation_vocabulary(_NO_DELIBERATIONS, calls_per_poll_round=AGENTS)
    return MarkovChain(
        states=states,
        transitions=RationalMatrix.from_rows(
            [{position[target]: share for target, share in row.items()} for row in rows.values()], len(states)
        ),
        initial=RationalVector.from_fractions([start.get(state, Fraction(0)) for state in states]),  # type: ignore[arg-type]
        labels={
            **{end: np.array([state == end for state in states]) for end in ("success", "failure")},
            "absorbed": np.array([state in ("success", "failure") for state in states]),
            **vocabulary.labels_of(states),
        },
        rewards=vocabulary.rewards_of(states),
    )


#: Of which the vocabulary is that of unrefined deliberations.
_NO_DELIBERATIONS = Deliberations(
    states=STATES,
    codes=np.zeros(0, dtype=np.int64),
    offsets=np.zeros(1, dtype=np.int64),
    outcomes=(),
    identifiers=(),
    clusters=(),
    blocks=np.zeros(0, dtype=np.int64),
    n_without_polls=0,
    n_cut=0,
)


def routing_choices(chain: MarkovChain, *, all_polls: bool) -> DecisionProcess:
    """The example with a choice of the kind of poll in each of its poll states, in place of the observed routing.

    Args:
        chain: the example. all_polls: an invalid poll may be selected wherever one was; else only where the pool has no
            valid one.
    """
    rows = chain.exact_transitions()
    actions: list[tuple[str, ...]] = []
    choices: list[dict[int, Fraction]] = []
    for i, state in enumerate(chain.states):
        row = rows.row(i)
        if state not in POLLS:
            actions.append(("",))
            choices.append(row)
            continue
        routes = {chain.states[j][-1]: j for j in row}
        if not all_polls and len(routes) > 1:
            routes.pop("i", None)
        actions.append(tuple(ACTIONS[kind] for kind in routes))
        choices += [{j: Fraction(1)} for j in routes.values()]
    return DecisionProcess(
        states=chain.states,
        actions=tuple(actions),
        transitions=RationalMatrix.from_rows(choices, chain.n_states),
        initial=RationalVector.from_fractions(chain.exact_initial()),  # type: ignore[arg-type]
        labels=chain.labels,
        rewards=chain.rewards,
    )


def example_tables() -> tuple[list[Table], list[Statement], list[str]]:
    """The chain and its routing processes: every figure by both engines, exactly, and those of the chain in doubles.

    With them comes a note on figures that one engine alone has answered.
    """
    chain = example_chain()
    processes = {name: routing_choices(chain, all_polls=name == "all") for name in BOUNDS}
    exact = _checked(chain, QUESTIONS, exact=True)
    for name, process in processes.items():
        exact += _checked(process, BOUNDS[name], exact=True)
    in_doubles = _checked(chain, QUESTIONS, exact=False)
    questions = [*QUESTIONS, *BOUNDS["valid"], *BOUNDS["all"]]
    rows: list[tuple[Cell, ...]] = []
    distances: list[float] = []
    for (what, _, reference), one, other in zip_longest(questions, exact, in_doubles):
        values = _values(one)
        distances += [abs(value - reference) for value in values if value is not None]
        doubles = (None, None) if other is None else (_values(other)[-1], other.gap)
        rows.append((what, reference, *values, one.gap, *doubles))
    columns = ("quantity", "reference", "closed form", "Storm, exact", "gap", "Storm, doubles", "gap to ours")
    table = Table(title="The worked example, a chain and two routing processes", columns=columns, rows=tuple(rows))
    figures, figure_statements = _figures(chain)
    routers, router_statements = _routers(chain, processes)
    return (
        [table, figures, routers],
        [
            fixed("worked example: largest distance of an exact answer from its reference", max(distances), upper=5e-7),
            _disagreements("worked example: exact answers in which the engines differ", exact),
            _disagreements("worked example: answers in doubles in which the engines disagree", in_doubles),
            *figure_statements,
            *router_statements,
        ],
        _notes([*exact, *in_doubles]),
    )


def _notes(agreements: Sequence[Agreement]) -> list[str]:
    single = sum(each.agree is None for each in agreements)
    if not single:
        return []
    return [f"one engine alone answered {single} questions on the worked example: tracebridge doctor says why"]


def _checked(
    model: MarkovChain | DecisionProcess, questions: Sequence[tuple[str, str, float]], *, exact: bool
) -> list[Agreement]:
    return compare(check(model, ";\n".join(formula for _, formula, _ in questions), exact=exact))


def _values(agreement: Agreement) -> list[float | None]:
    return [None if result.value is None else float(result.value.value) for result in agreement.results]


def _disagreements(text: str, agreements: Sequence[Agreement]) -> Statement:
    answered = [each for each in agreements if each.agree is not None]
    return fixed(f"{text}, of {len(answered)}", sum(not each.agree for each in answered), upper=0)


def _figures(chain: MarkovChain) -> tuple[Table, list[Statement]]:
    """The audit's figures as ratios of expected visits of the chain."""
    found = DeliberationFigures.of(chain)
    rows = (
        ("CRA", CORRECT / SELECTED_VALID, found.candidate_routing_accuracy),
        ("PSDR", DIVERGENT / VALID_PAIRS, found.divergence_rate),
        ("NPCS, unconditional", (IMPROVED - DEGRADED) / VALID_PAIRS, found.commitment_shift),
        ("blocks of a deliberation", BLOCKS / TRACES, found.blocks),
    )
    return (
        Table(title="The audit's figures from the chain", columns=("figure", "of the counts", "chain"), rows=rows),
        [
            fixed(
                "worked example: largest distance of a figure of the chain from that of the counts",
                max(abs(counted - value) for _, counted, value in rows),
                upper=1e-12,
            )
        ],
    )


def _routers(chain: MarkovChain, processes: dict[str, DecisionProcess]) -> tuple[Table, list[Statement]]:
    """Two fixed routers as schedulers of the routing processes."""
    observed = {
        f"poll_{pool}": {ACTIONS[kind]: Fraction(count, sum(kinds.values())) for kind, count in kinds.items()}
        for pool, kinds in ROUTED.items()
        if len(kinds) > 1
    }
    random = {"poll_M": {ACTIONS["c"]: RANDOM_VALID, ACTIONS["w"]: 1 - RANDOM_VALID}}
    runtime, of_random = passes(processes["all"].induced(observed)), passes(processes["valid"].induced(random))
    rows = (("runtime", 0.892, float(runtime)), ("random valid", 0.8905, float(of_random)))
    return (
        Table(title="Routers as schedulers: it passes", columns=("router", "reference", "ours"), rows=rows),
        [
            equals(
                "worked example: the observed router is a scheduler under which it passes as the chain does",
                float(runtime),
                float(passes(chain)),
                0.0,
            ),
            equals("worked example: it passes under a router of random valid polls", float(of_random), 0.8905, 5e-5),
        ],
    )


def passes(chain: MarkovChain) -> Fraction:
    """P(F pass), exactly."""
    return Fraction(long_run_reliability(chain, target="pass", exact=True))
