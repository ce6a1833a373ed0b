"""The index of a unified Markov binary (UMB) archive, ``index.json``, and where the arrays that it declares are.

Source: the UMB specification, version 1, https://pmc-tools.github.io/umb/spec. What tracebridge adds, other readers
pass over: ``file-data.parameters``, which the specification leaves open, and members in a folder of its own. They are
not declared as annotations: Storm 2.0 knows none of type string, and umbi 0.2.5 no groups but rewards and propositions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from tracebridge.errors import ModelError
from tracebridge.export.umb_archive import INDEX, at_member, refuse
from tracebridge.traces.text_document import parse_document

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT_VERSION: Final = 1

#: umbi 0.2.5 still writes 0, in the layout of version 1.
KNOWN_VERSIONS: Final = (0, 1)

#: The version of what tracebridge adds.
LAYOUT: Final = 1

TOOL: Final = "tracebridge"

#: The archive's states may be this many: names and rows take some hundred bytes a state in memory.
MAX_STATES: Final = 10**7

MAX_INDEX_BYTES: Final = 2**24

INITIAL: Final = "state-is-initial.bin"
CHOICES: Final = "state-to-choices.bin"
BRANCHES: Final = "choice-to-branches.bin"
TARGETS: Final = "branch-to-target.bin"
PROBABILITIES: Final = "branch-to-probability.bin"
ACTIONS: Final = "actions/choices"
VALUATIONS: Final = "valuations/states/valuations.bin"
VALUATION_CLASSES: Final = "valuations/states/valuation-to-class.bin"

#: Where tracebridge keeps the names of states: as they are, or as identifiers where UTF-8 cannot say one of them.
NAMES: Final = "tracebridge/state-names"
IDENTIFIERS: Final = "tracebridge/state-identifiers"

#: Where it keeps the initial distribution, a number for each state of the chain.
INITIAL_PROBABILITIES: Final = "tracebridge/initial-probabilities.bin"

Entities = Literal["states", "choices", "branches", "observations", "players"]


def annotation_member(group: str, identifier: str, entities: str) -> str:
    """Where the values of an annotation are."""
    return f"annotations/{group}/{identifier}/{entities}/values.bin"


class Type(msgspec.Struct, omit_defaults=True):
    """The type of a number and its bits; the default of ``size`` depends on the type."""

    type: str
    size: int | None = None

    def bits(self) -> int:
        """The size, as given or by default."""
        defaults = {"bool": 1, "rational": 128, "int-interval": 128, "uint-interval": 128, "double-interval": 128}
        return self.size if self.size is not None else defaults.get(self.type, 64)


class Annotation(msgspec.Struct, rename="kebab", omit_defaults=True):
    """Values for entities; ``probability_type`` where they are distributions."""

    applies_to: list[Entities]
    type: Type
    alias: str | None = None
    description: str | None = None
    probability_type: Type | None = None


class Variable(msgspec.Struct, rename="kebab", omit_defaults=True):
    """A variable of a valuation, or some bits of padding."""

    name: str | None = None
    type: Type | None = None
    offset: int = 0
    is_optional: bool = False
    padding: int | None = None


class ValuationClass(msgspec.Struct):
    """The layout of a valuation, from its least significant bit on."""

    variables: list[Variable]


class Valuation(msgspec.Struct):
    """The valuations of one kind of entities."""

    unique: bool
    classes: list[ValuationClass]


class Valuations(msgspec.Struct, omit_defaults=True):
    """The valuations of states; those of other entities are passed over."""

    states: Valuation | None = None


class TransitionSystem(msgspec.Struct, rename="kebab", omit_defaults=True):
    """Kind and sizes of the model."""

    time: str
    players: int = msgspec.field(name="#players")
    states: int = msgspec.field(name="#states")
    initial_states: int = msgspec.field(name="#initial-states")
    choices: int = msgspec.field(name="#choices")
    choice_actions: int = msgspec.field(name="#choice-actions")
    branches: int = msgspec.field(name="#branches")
    branch_actions: int = msgspec.field(name="#branch-actions")
    observations: int = msgspec.field(name="#observations")
    branch_probability_type: Type | None = None


class FileData(msgspec.Struct, rename="kebab", omit_defaults=True):
    """What wrote the file."""

    tool: str | None = None
    tool_version: str | None = None
    parameters: Any = None


class Index(msgspec.Struct, rename="kebab", omit_defaults=True):
    """The document."""

    format_version: int
    format_revision: int
    transition_system: TransitionSystem
    file_data: FileData | None = None
    annotations: dict[str, dict[str, Annotation]] = {}
    valuations: Valuations | None = None


class Parameters(msgspec.Struct, rename="kebab", omit_defaults=True, forbid_unknown_fields=True):
    """What tracebridge keeps in ``file-data.parameters``.

    Attributes:
        layout: the version of what is added. added_state: the last state of the archive was put before a spread
            initial distribution and is no state of the model.
        initial_type: the type of the initial distribution, where that is kept beside.
        constants: of the model, as fractions or truth values.
        double_rewards: which parts of a reward structure stored as rationals are doubles, by its identifier.
    """

    layout: int
    added_state: bool
    initial_type: Type | None = None
    constants: dict[str, str | bool] = {}
    double_rewards: dict[str, list[Literal["states", "choices", "branches"]]] = {}


# ---------------------------------------------------------------- reading


def checked_index(members: Mapping[str, bytes]) -> Index:
    """The index of an archive. Raises ModelError for none, an unknown version, or no chain or decision process."""
    data = members.get(INDEX)
    if data is None:
        raise ModelError(f"this is no UMB file: the archive has no {INDEX}")
    if len(data) > MAX_INDEX_BYTES:
        refuse(f"has {len(data)} bytes, more than {MAX_INDEX_BYTES}", INDEX)
    with at_member(INDEX):
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ModelError(f"not UTF-8: byte {error.start} is {data[error.start]:#04x}") from error
        document = parse_document(text)
        version = document.get("format-version") if isinstance(document, dict) else None
        if type(version) is not int or version not in KNOWN_VERSIONS:
            known = " and ".join(map(str, KNOWN_VERSIONS))
            raise ModelError(f"format-version is {str(version)[:80]}; {known} are known")
    try:
        index = msgspec.convert(document, Index, strict=True)
    except msgspec.ValidationError as error:
        refuse(str(error), INDEX)
    system = index.transition_system
    if system.time != "discrete" or system.players not in (0, 1):
        refuse(
            f"time {system.time[:80]!r} and #players {system.players}: only models of discrete time are read, chains "
            "(#players 0) and decision processes (1)",
            INDEX,
        )
    if system.observations:
        refuse(f"#observations is {system.observations}; observations are not read", INDEX)
    return index


def own_parameters(index: Index) -> Parameters | None:
    """What tracebridge kept, where it wrote the archive. Raises ModelError for an unknown layout."""
    data = index.file_data
    if data is None or data.tool != TOOL:
        return None
    layout = data.parameters.get("layout") if isinstance(data.parameters, dict) else None
    if layout != LAYOUT:
        refuse(f"layout {str(layout)[:80]} of tracebridge is unknown, {LAYOUT} is known", INDEX)
    try:
        return msgspec.convert(data.parameters, Parameters, strict=True)
    except msgspec.ValidationError as error:
        refuse(f"file-data.parameters: {error}", INDEX)
