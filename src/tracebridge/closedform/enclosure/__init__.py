"""Numbers with a rigorous bound on what rounding did to them.

An `Enclosure` says: the number that exact arithmetic would give for the exact chain lies between ``lower`` and
``upper``. It bounds rounding, never sampling. In exact arithmetic the three are one Fraction. An `EnclosureVector` is n
of them, with arithmetic.

*Undefined* (0/0, inf - inf, a divisor that may be zero) is the value NaN between ``-inf`` and ``inf``; it spreads
through arithmetic, and every comparison with it is possible and none is sure.
"""

from tracebridge.closedform.enclosure.scalar import Enclosure, Real
from tracebridge.closedform.enclosure.vector import EnclosureVector

__all__ = ["Enclosure", "EnclosureVector", "Real"]
