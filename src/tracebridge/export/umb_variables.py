"""The variables of a unified Markov binary (UMB) archive: bit fields of one record a state.

Source: the UMB specification, section "Encoding of valuations and variable values".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.export.umb_archive import INDEX, refuse
from tracebridge.export.umb_arrays import decode_field
from tracebridge.export.umb_index import VALUATION_CLASSES, VALUATIONS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.export.umb_index import Variable
    from tracebridge.export.umb_members import Members


def variables_of(members: Members) -> dict[str, NDArray[Any]]:
    """The variables of the states, each of shape (n,), from their bit fields; none where the index declares none."""
    valuations = members.index.valuations
    if valuations is None or valuations.states is None:
        return {}
    classes = valuations.states.classes
    if len(classes) != 1 or VALUATION_CLASSES in members.held:
        refuse(f"states have {len(classes)} classes of variables; only one is read", INDEX)
    layout = classes[0].variables
    bits = 0
    for variable in layout:
        size = variable.padding if variable.type is None else variable.type.bits()
        if size is None or not 0 <= size <= 2**20:
            refuse(f"variable {variable.name!r} has {size} bits", INDEX)
        bits += size
    if bits % 8:
        refuse(f"the variables of a state take {bits} bits, which is no whole number of bytes", INDEX)
    data = members.member(VALUATIONS, bits // 8 * members.n)
    if data is None:
        refuse("is absent, but the index declares variables", VALUATIONS)
    records = np.frombuffer(data, dtype=np.uint8).reshape(members.n, bits // 8)
    variables: dict[str, NDArray[Any]] = {}
    position = 0
    for variable in layout:
        size = variable.padding if variable.type is None else variable.type.bits()
        assert size is not None  # noqa: S101 - refused above
        if variable.type is not None:
            if variable.name is None or variable.name in variables:
                refuse(f"a variable is called {variable.name!r}, or two are", INDEX)
            variables[variable.name] = _variable(variable, records, position, size)
        position += size
    return variables


def _variable(variable: Variable, records: NDArray[np.uint8], position: int, size: int) -> NDArray[Any]:
    """The values of one variable, shape (n,): int64, bool or float64."""
    kind = variable.type.type if variable.type is not None else ""
    if variable.is_optional or kind not in {"bool", "int", "uint", "double"} or size > 64:
        refuse(f"variable {variable.name!r} of type {kind!r} with {size} bits, or optional, is not read", INDEX)
    field = decode_field(records, position, size)
    if kind == "bool":
        return np.asarray(field != 0)
    if kind == "double":
        if size != 64:
            refuse(f"variable {variable.name!r} of type double has {size} bits, not 64", INDEX)
        return field.view(np.float64)
    if kind == "uint" and field.max() >= 2**63:
        refuse(f"a value of variable {variable.name!r} is beyond 63 bits", VALUATIONS)
    values = field.view(np.int64)
    if kind == "int" and 0 < size < 64:
        values = values - ((values >> (size - 1)) << size)  # the sign
    low, high = int(values.min()) + variable.offset, int(values.max()) + variable.offset
    if low < -(2**63) or high >= 2**63 or abs(variable.offset) >= 2**63:
        refuse(f"a value of variable {variable.name!r} is beyond 64 bits", VALUATIONS)
    return np.asarray(values + np.int64(variable.offset))
