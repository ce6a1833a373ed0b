"""``tracebridge show``: where the runs of a chain end, and how long they take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tracebridge.cli.console import emit, print_table, say, write
from tracebridge.cli.help_sections import Verb
from tracebridge.cli.options import PATH, common, model_constants
from tracebridge.cli.show_decision import show_decision
from tracebridge.cli.show_sensitivity import property_file, show_sensitivity
from tracebridge.cli.values import parse_constants

if TYPE_CHECKING:
    from tracebridge.chain import MarkovChain

#: Rows of a fundamental matrix that `show` gives.
_MAX_MATRIX = 200


@click.command(
    cls=Verb,
    epilog="\b\nExamples: visits, times and R(d); which transitions a property depends on most\n"
    "  tracebridge show chain.json --d-max 40\n"
    "  tracebridge show chain.json --sensitivity --property my.props",
)
@click.argument("model", type=PATH)
@click.option(
    "--d-max", type=click.IntRange(0, 1_000_000), default=20, show_default=True, help="Show R(d) up to this budget."
)
@click.option(
    "--matrix", is_flag=True, help="Show the fundamental matrix N and the absorption probabilities B in full."
)
@click.option(
    "--sensitivity",
    is_flag=True,
    help="Instead, rank the transitions by what they do to a property, and for a fitted chain by how much of what is "
    "not known about the property comes from them.",
)
@click.option(
    "--property",
    "properties",
    metavar="TEXT|FILE",
    type=PATH,
    help='With --sensitivity: a property, or a property file. [default: P=? [ F "success" ]]',
)
@click.option("--all", "every", is_flag=True, help="With --sensitivity: every transition, not the first ten.")
@model_constants
@common
def show(
    model: str,
    d_max: int,
    matrix: bool,
    sensitivity: bool,
    properties: str | None,
    every: bool,
    constants: tuple[str, ...],
    as_json: bool,
    seed: int,  # noqa: ARG001
) -> None:
    """Show a chain: where runs end, how long they take, R(d), visits, N and B.

    MODEL is a chain.json, a PRISM program, or a file that export writes. Of a decision process (MDP) it shows the
    actions of each state, the least and the greatest probability of each end over all ways to choose, R(d) likewise,
    and the end components, in which runs may stay for ever.

    A chain whose states remember more than their step is shown by what its steps are: starts and visits are sums over
    the copies of a state, the other numbers means over them, weighted by expected visits.
    """
    from tracebridge.chain.decision import DecisionProcess
    from tracebridge.checking.models import read_model
    from tracebridge.inference.identification import NO_END_REASON
    from tracebridge.report.findings import end_was_seen

    values = parse_constants(constants)
    if sensitivity:
        file = property_file(properties)
        declared = {constant.name for constant in file.constants}
        read = read_model(model, constants={name: value for name, value in values.items() if name not in declared})
        of_file = {name: value for name, value in values.items() if name in declared}
        show_sensitivity(read, file, of_file, by_default=properties is None, every=every, as_json=as_json)
        return
    if properties is not None or every:
        raise click.UsageError("--property and --all belong to --sensitivity")
    read = read_model(model, constants=values)
    if isinstance(read.described, DecisionProcess):
        if matrix:
            raise click.UsageError("--matrix is for chains: the visits of a decision process depend on its choices")
        show_decision(read.described, d_max, as_json=as_json)
        return
    chain = read.chain
    document = _described(chain, d_max)
    if read.fitted is not None and not end_was_seen(read.fitted):
        document = {"schema_version": 1, "n_states": chain.n_states, "exact": chain.is_exact, "missing": NO_END_REASON}
    if read.expanded is not None and "missing" not in document:
        document["model"] = str(read.expanded.form)
    categories = [] if "missing" in document else _by_category(document["states"], chain)
    if categories:
        document["categories"] = categories
    if as_json:
        emit(document)
        return
    kind = "rational" if chain.is_exact else "double"
    write(f"{chain.n_states} states, {chain.transitions.nnz} transitions with {kind} entries")
    if categories:
        of_form = "" if read.expanded is None else f"model {read.expanded.form}: "
        write(f"{of_form}each stands for one of {len(categories)} kinds of steps and what it remembers")
    if "missing" in document:
        write(document["missing"])
        write("")
        print_table(
            ["state", "start"],
            [[n, f"{p:.6g}"] for n, p in zip(chain.states, chain.initial.tolist(), strict=True) if p],
        )
        return
    ends = document["outcomes"]
    write("runs end in: " + ", ".join(f"{name} {value:.6g}" for name, value in ends.items()))
    write(f"mean steps {document['mean_time']:.6g}, standard deviation {document['standard_deviation']:.6g}")
    write("")
    absorbers = list(ends)
    rows = [
        [
            s["state"],
            _short(s["start"]),
            _short(s["visits"]),
            _short(s["mean_time"]),
            *(_short(s["B"][a]) for a in absorbers),
        ]
        for s in document.get("categories", document["states"])
    ]
    print_table(["state", "start", "visits", "mean steps left", *(f"ends in {a}" for a in absorbers)], rows)
    if document["R"]:
        write("")
        print_table(
            ["d", "R(d)", "ended by d"],
            [[str(r["d"]), _short(r["R"]), _short(r["ended"])] for r in _shown(document["R"])],
        )
    if matrix and document["N"] is None:
        say(f"N is not shown: it has {len(document['states'])} rows, more than {_MAX_MATRIX}")
    elif matrix:
        write("")
        names = [s["state"] for s in document["states"]]
        print_table(
            ["N", *names], [[n, *(_short(x) for x in row)] for n, row in zip(names, document["N"], strict=True)]
        )


def _described(chain: MarkovChain, d_max: int) -> dict[str, Any]:
    """The closed forms of a chain as a JSON document."""
    from tracebridge import closedform
    from tracebridge.chain import AbsorbingChain
    from tracebridge.errors import ModelError

    head = {"schema_version": 1, "n_states": chain.n_states, "exact": chain.is_exact}
    try:
        form = AbsorbingChain(chain=chain)
    except ModelError as error:
        return {**head, "missing": str(error)}
    times = closedform.mean_time_to_absorption(form)
    B = closedform.absorption_probabilities(form)
    visits = closedform.expected_visits(form)
    ended = closedform.absorption_time_cdf(form, d_max)
    curve = closedform.reliability_curve(form, d_max) if chain.has_label("success") else None
    states = [
        {
            "state": name,
            "start": float(form.initial[i]),
            "visits": float(visits[i]),
            "mean_time": float(times.values[i]),
            "B": {absorber: float(B[i, j]) for j, absorber in enumerate(form.absorbing_states)},
        }
        for i, name in enumerate(form.transient_states)
    ]
    return {
        **head,
        "outcomes": {name: float(value) for name, value in closedform.long_run_outcomes(form).items()},
        "mean_time": float(times.overall),
        "standard_deviation": float(closedform.absorption_time_variance(form).overall) ** 0.5,
        "states": states,
        "N": closedform.fundamental_matrix(form).tolist() if len(states) <= _MAX_MATRIX else None,
        "R": []
        if curve is None
        else [{"d": d, "R": float(curve[d]), "ended": float(ended[d])} for d in range(d_max + 1)],
    }


def _by_category(states: list[dict[str, Any]], chain: MarkovChain) -> list[dict[str, Any]]:
    """What `_described` says of states, for all copies of a category at once; nothing for a plain chain."""
    from math import isnan

    import numpy as np

    from tracebridge.chain.expanded.copies import category_copies
    from tracebridge.closedform.category_start import category_visits

    if not category_copies(chain):
        return []
    known = category_visits(chain)

    def means(values: list[float]) -> list[float | None]:
        return [None if isnan(mean) else float(mean) for mean in known.mean(np.array(values))]

    starts = known.total(np.array([state["start"] for state in states]))
    visits = known.total(known.visits)
    times = means([state["mean_time"] for state in states])
    ends = {end: means([state["B"][end] for state in states]) for end in states[0]["B"]}
    return [
        {
            "state": name,
            "copies": len(copies),
            "start": starts[i],
            "visits": visits[i],
            "mean_time": times[i],
            "B": {end: values[i] for end, values in ends.items()},
        }
        for i, (name, copies) in enumerate(known.copies.items())
    ]


def _short(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.6g}"


def _shown(curve: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every budget of a short curve, about twenty of a long one."""
    stride = max(1, (len(curve) - 1) // 20)
    return [row for row in curve if row["d"] % stride == 0 or row["d"] == len(curve) - 1]
