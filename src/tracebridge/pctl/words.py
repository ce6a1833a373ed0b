"""The words that PRISM and Storm keep for themselves."""

from __future__ import annotations

import re

# fmt: off
PRISM_WORDS = frozenset({
    "A", "bool", "C", "clock", "const", "ctmc", "double", "dtmc", "E", "endinit", "endinvariant", "endmodule",
    "endobservables", "endrewards", "endsystem", "F", "false", "filter", "formula", "func", "G", "global", "I",
    "init", "int", "invariant", "label", "max", "mdp", "min", "module", "nondeterministic", "observable",
    "observables", "of", "P", "Pmax", "Pmin", "pomdp", "popta", "prob", "probabilistic", "pta", "R", "rate",
    "rewards", "Rmax", "Rmin", "S", "stochastic", "system", "true", "U", "W", "X",
})
"""Reserved everywhere in a PRISM model or property file (``PrismParser.jj``)."""

STORM_WORDS = PRISM_WORDS | {
    "ceil", "floor", "LRA", "ma", "MP", "multi", "player", "quantile", "rew", "smg", "T", "time",
}
"""Reserved in Storm's formulas and PRISM input, PRISM's own included."""
# fmt: on

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_identifier(name: str) -> bool:
    """Whether a name can stand unquoted in PRISM and Storm, or as a label there: ASCII letters, digits, underscores."""
    return _IDENTIFIER.fullmatch(name) is not None
