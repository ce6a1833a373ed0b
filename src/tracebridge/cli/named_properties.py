"""An argument that names properties: a file, standard input, or their text."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracebridge.pctl.ast import PropertyFile

#: How the names of property files end.
PROPERTY_ENDINGS = (".props", ".pctl", ".csl", ".prctl")

_OPERATOR = re.compile(r"\s*!?\s*[A-Za-z]{1,6}\s*(?:\{[^{}]*\}\s*)?(?:<=?|>=?|=[<>?])")


def named_properties(argument: str) -> PropertyFile:
    """The properties of the file of that name or of standard input (``-``), or of the argument itself.

    An argument is the text of properties if there is no such file and it has a bracket, as every operator has, or
    begins as one does.

    Raises:
        PropertyError: as for `read_properties` and `parse_properties`.
    """
    from tracebridge.pctl import parse_properties, read_properties

    is_text = "[" in argument or _OPERATOR.match(argument)
    if is_text and not argument.endswith(PROPERTY_ENDINGS) and not os.path.exists(argument):  # noqa: PTH110 - false for a text that no path can be
        return parse_properties(argument)
    return read_properties(argument if argument == "-" else Path(argument))
