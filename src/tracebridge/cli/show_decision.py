"""``tracebridge show`` and ``sample`` of a decision process: its choices, where runs may stay, and where they end."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any

from tracebridge.cli.console import emit, print_table, write
from tracebridge.errors import UsageError
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tracebridge.chain import MarkovChain
    from tracebridge.chain.decision import DecisionProcess
    from tracebridge.closedform.decision import FloatOptimiser

#: States, and end components, that are printed.
_MAX_SHOWN = 50

#: Names of states in a line.
_MAX_NAMES = 8


def show_decision(process: DecisionProcess, d_max: int, *, as_json: bool) -> None:
    """Print a decision process: actions, end components, and the least and greatest probability of each end."""
    document = _described(process, d_max)
    if as_json:
        emit(document)
        return
    kind = "rational" if process.is_exact else "double"
    write(
        f"decision process (MDP): {process.n_states} states, {process.n_choices} choices, "
        f"{process.transitions.nnz} transitions with {kind} entries"
    )
    ends = list(document["ends"])
    for name, value in document["ends"].items():
        write(f"runs end in {name} with probability {_range(value)}, by the choices that are made")
    if not ends:
        write("no label and no state is absorbing: runs never end")
    write("")
    rows = [
        [
            each["state"],
            _short(each["start"]),
            ", ".join(map(_action, each["actions"])),
            *(_range(each["ends"][end]) for end in ends),
        ]
        for each in document["states"][:_MAX_SHOWN]
    ]
    print_table(["state", "start", "actions", *(f"ends in {end}" for end in ends)], rows)
    _say_more(len(document["states"]), "state")
    components = document["end_components"]
    write("")
    write(f"{counted(len(components), 'maximal end component')} that can be reached, in which runs may stay for ever:")
    for component in components[:_MAX_SHOWN]:
        names = component["states"]
        more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        way = "can be left" if component["can_be_left"] else "is never left"
        write(f"  {', '.join(names[:_MAX_NAMES])}{more}: {way}")
    _say_more(len(components), "end component")
    if document["R"]:
        write("")
        stride = max(1, d_max // 20)
        shown = [row for row in document["R"] if row["d"] % stride == 0 or row["d"] == d_max]
        print_table(
            ["d", "least R(d)", "greatest R(d)"], [[str(r["d"]), _short(r["min"]), _short(r["max"])] for r in shown]
        )


def scheduled_chain(process: DecisionProcess, scheduler: str) -> MarkovChain:
    """The chain under a scheduler that is named: ``uniform``, ``max:LABEL`` or ``min:LABEL``.

    Raises:
        UsageError: another name.
    """
    from tracebridge.closedform.decision import FloatOptimiser

    if scheduler == "uniform":
        return process.induced(
            {
                name: {position: Fraction(1, len(actions)) for position in range(len(actions))}
                for name, actions in zip(process.states, process.actions, strict=True)
            }
        )
    optimum, _, label = scheduler.partition(":")
    if optimum not in {"min", "max"} or not process.has_label(label):
        known = ", ".join(process.label_names()[:_MAX_NAMES])
        raise UsageError(
            f"--scheduler {scheduler}: choose uniform, or max:LABEL or min:LABEL for what makes it most or least "
            f"likely that the label is reached; labels: {known}"
        )
    found = _optimal(FloatOptimiser(process), label, optimum)
    assert found.scheduler is not None  # noqa: S101 - reachability without a bound has one
    return process.induced(found.scheduler)


def _described(process: DecisionProcess, d_max: int) -> dict[str, Any]:
    """What is shown, as a JSON document; of the states those that can be reached."""
    import numpy as np

    from tracebridge.closedform.decision import FloatOptimiser

    optimiser = FloatOptimiser(process)
    reachable = process.reachable_states()
    ends = {
        name: {optimum: _optimal(optimiser, name, optimum).values.value for optimum in ("min", "max")}
        for name in _absorbing_labels(process, reachable)
    }
    numbers, inside = optimiser.choices.end_components(np.ones(process.n_choices, dtype=np.bool_))
    leaving = optimiser.choices.having(~inside)
    components = [np.flatnonzero((numbers == k) & reachable) for k in range(int(numbers.max()) + 1)]
    return {
        "schema_version": 1,
        "kind": "decision-process",
        "n_states": process.n_states,
        "n_choices": process.n_choices,
        "exact": process.is_exact,
        "ends": {
            name: {optimum: float(process.initial @ values) for optimum, values in found.items()}
            for name, found in ends.items()
        },
        "states": [
            {
                "state": process.states[i],
                "start": float(process.initial[i]),
                "actions": list(process.actions[i]),
                "ends": {
                    name: {optimum: float(values[i]) for optimum, values in found.items()}
                    for name, found in ends.items()
                },
            }
            for i in np.flatnonzero(reachable).tolist()
        ],
        "end_components": [
            {"states": [process.states[i] for i in states.tolist()], "can_be_left": bool(leaving[states].any())}
            for states in components
            if len(states)
        ],
        "R": _curve(optimiser, d_max) if process.has_label("success") else [],
    }


def _absorbing_labels(process: DecisionProcess, reachable: NDArray[np.bool_]) -> list[str]:
    """Labels that hold in absorbing states alone, and the names of those that have none; of what can be reached."""
    import numpy as np

    own_loop = process.edges.sum(axis=1) == 1
    absorbing = own_loop & (process.edges.diagonal() > 0) & reachable
    covered = np.zeros(process.n_states, dtype=np.bool_)
    names = []
    for name, mask in process.labels.items():
        if (mask & reachable).any() and not (mask & reachable & ~absorbing).any():
            names.append(name)
            covered |= mask
    return [*names, *(process.states[i] for i in np.flatnonzero(absorbing & ~covered).tolist())]


def _optimal(optimiser: FloatOptimiser, label: str, optimum: str) -> Any:
    """The optimum of reaching a label, in every state."""
    from tracebridge.closedform.decision import optimal_values
    from tracebridge.pctl.ast import Eventually, Label, Probability

    operator = Probability(Eventually(Label(label)), optimum="max" if optimum == "max" else "min")
    return optimal_values(optimiser, operator, lambda _: optimiser.process.label(label))


def _curve(optimiser: FloatOptimiser, d_max: int) -> list[dict[str, Any]]:
    """The least and greatest probability of success within each budget up to ``d_max``."""
    process = optimiser.process
    success = process.label("success")
    curves = []
    for maximise in (False, True):
        values = optimiser.iterates(optimiser.vector(success), ~success, maximise=maximise)
        found = [float(process.initial @ x.value) for x in islice(values, d_max + 1)]
        curves.append(found + found[-1:] * (d_max + 1 - len(found)))  # from then on nothing changes
    return [{"d": d, "min": curves[0][d], "max": curves[1][d]} for d in range(d_max + 1)]


def _action(name: str) -> str:
    return name or "(unnamed)"


def _range(value: dict[str, float]) -> str:
    least, greatest = _short(value["min"]), _short(value["max"])
    return least if least == greatest else f"{least} to {greatest}"


def _short(value: float) -> str:
    return f"{value:.6g}"


def _say_more(count: int, noun: str) -> None:
    if count > _MAX_SHOWN:
        write(f"and {counted(count - _MAX_SHOWN, f'more {noun}')}; --json gives all")
