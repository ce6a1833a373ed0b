"""The constructs of the language, an example of each, and which tool's own syntax has them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tracebridge.pctl.parser import parse_formula
from tracebridge.pctl.portability import ToolSupport, tool_support


@dataclass(frozen=True, slots=True, kw_only=True)
class Construct:
    """A construct of the language.

    Attributes:
        name: in plain words. example: a formula that has it, over the labels a, b and c, the reward structures ``r``
            and ``cost``, and nothing else of a model.
        decision_process: it asks about schedulers or players, which a chain does not have.
    """

    name: str
    example: str
    decision_process: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstructSupport:
    """A construct, and how PRISM's and Storm's own syntax says its example."""

    construct: Construct
    prism: ToolSupport
    storm: ToolSupport


CONSTRUCTS: tuple[Construct, ...] = (
    Construct(name="probability, unbounded until", example='P=? [ "a" U "b" ]'),
    Construct(name="threshold", example='P>=0.5 [ F "b" ]'),
    Construct(name="next", example='P=? [ X "a" ]'),
    Construct(name="globally", example='P=? [ G "a" ]'),
    Construct(name="weak until", example='P=? [ "a" W "b" ]'),
    Construct(name="release", example='P=? [ "a" R "b" ]'),
    Construct(name="upper step bound", example='P=? [ F<=5 "b" ]'),
    Construct(name="upper step bound of G", example='P=? [ G<=5 "a" ]'),
    Construct(name="step interval", example='P=? [ F[2,5] "b" ]'),
    Construct(name="step interval of U", example='P=? [ "a" U[2,5] "b" ]'),
    Construct(name="exact step", example='P=? [ F=3 "b" ]'),
    Construct(name="lower step bound", example='P=? [ F>=3 "b" ]'),
    Construct(name="lower step bound of U", example='P=? [ "a" U>=3 "b" ]'),
    Construct(name="nested operators", example='P>=0.5 [ F P>=0.9 [ X "b" ] ]'),
    Construct(name="implication and equivalence", example='"a" => P>0 [ F ("b" <=> "c") ]'),
    Construct(name="choice ? :", example='P=? [ F ("a" ? "b" : "c") ]'),
    Construct(name="arithmetic over operators", example='1 - pow(1 - P=? [ F "b" ], 3)'),
    Construct(name="comparison of an operator", example='P=? [ F "b" ] > 0.3'),
    Construct(name="LTL", example='P=? [ (G F "a") & (F G !"b") ]'),
    Construct(name="negated path formula", example='P=? [ !(F<=3 "b") ]'),
    Construct(name="LTL with => and W", example='P=? [ (F "a") => ("a" W (X "b")) ]'),
    Construct(name="LTL with step bounds", example='P=? [ F<=3 ("a" & (X "b")) ]'),
    Construct(name="CTL, E [ F ]", example='E [ F "b" ]'),
    Construct(name="CTL, E [ G ]", example='E [ G "a" ]'),
    Construct(name="CTL, A [ F ]", example='A [ F "b" ]'),
    Construct(name="CTL, A [ G ]", example='A [ G "a" ]'),
    Construct(name="CTL with a step bound", example='E [ G<=3 "a" ]'),
    Construct(name="condition", example='P=? [ F "b" || F "a" ]'),
    Construct(name="condition, other paths", example='P=? [ G "a" || X "b" ]'),
    Construct(name="condition of a reward", example='R{"r"}=? [ F "b" || F "a" ]'),
    Construct(name="reward until a label", example='R{"r"}=? [ F "b" ]'),
    Construct(name="reward in so many steps", example='R{"r"}=? [ C<=5 ]'),
    Construct(name="total reward", example='R{"r"}=? [ C ]'),
    Construct(name="reward at a step", example='R{"r"}=? [ I=4 ]'),
    Construct(name="long-run reward", example='R{"r"}=? [ S ]'),
    Construct(name="reward until a path formula", example='R{"r"}=? [ "a" U "b" ]'),
    Construct(name="reward until a co-safe formula", example='R{"r"}=? [ F ("a" & (X "b")) ]'),
    Construct(name="reward structure by number", example='R{1}=? [ F "b" ]'),
    Construct(name="expected time", example='T=? [ F "b" ]'),
    Construct(name="discounted reward", example='R{"r"}=? [ C<=5 discount=0.9 ]'),
    Construct(name="discounted total reward", example='R{"r"}=? [ Cdiscount=0.9 ]'),
    Construct(name="reward until another is used up", example='R{"r"}=? [ C{"cost"}<=5 ]'),
    Construct(name="reward bound", example='P=? [ F{"cost"}<=5 "b" ]'),
    Construct(name="reward and step bounds", example='P=? [ F^{rew{"cost"}<=5,steps<=4} "b" ]'),
    Construct(name="reward interval", example='P=? [ F{"cost"}[2,5] "b" ]'),
    Construct(name="reward bound of G", example='P=? [ G{"cost"}<=5 "a" ]'),
    Construct(name="steady state", example='S=? [ "a" ]'),
    Construct(name="filter, a value of several states", example='filter(max, P=? [ F "b" ], "a")'),
    Construct(name="filter over all states", example='filter(avg, P=? [ F "b" ])'),
    Construct(name="filter, forall", example='filter(forall, P>0.1 [ F "b" ], true)'),
    Construct(name="filter, one state", example='filter(state, P=? [ F "b" ], "init")'),
    Construct(name="filter, range", example='filter(range, P=? [ F "b" ], "a")'),
    Construct(name="filter, list of values", example='filter(printall, P=? [ F "b" ], "a")'),
    Construct(name="filter, states of the largest value", example='filter(argmax, P=? [ F "b" ], "a")'),
    Construct(
        name="filter inside a formula", example='filter(max, P=? [ F "b" ], "a") - filter(min, P=? [ F "b" ], "a")'
    ),
    Construct(name="quantile", example='quantile(min B, P>0.3 [ F<=B "b" ])'),
    Construct(name="quantile of a reward bound", example='quantile(min B, P>0.3 [ F{"cost"}<=B "b" ])'),
    Construct(name="automaton", example='P=? [ HOA: {"a.hoa", "p" -> "a"} ]'),
    Construct(name="min and max", example='Pmax=? [ F "b" ]'),
    Construct(name="several objectives", example='multi(Pmax=? [ F "b" ], P>=0.5 [ G "a" ])', decision_process=True),
    Construct(
        name="several objectives, by rank",
        example='multilex(Pmax=? [ F "b" ], Pmin=? [ F "a" ])',
        decision_process=True,
    ),
    Construct(name="coalition", example='<<p1>> Pmax=? [ F "b" ]', decision_process=True),
)
"""One example of each construct, in the canonical form."""


@cache
def construct_table() -> tuple[ConstructSupport, ...]:
    """Every construct with what PRISM and Storm take of it in their own syntax: parsed and judged, not written down."""
    rows = []
    for construct in CONSTRUCTS:
        formula = parse_formula(construct.example)
        prism, storm = tool_support(formula, "prism"), tool_support(formula, "storm")
        rows.append(ConstructSupport(construct=construct, prism=prism, storm=storm))
    return tuple(rows)
