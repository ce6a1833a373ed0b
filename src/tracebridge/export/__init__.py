"""Chains and property files as text that PRISM and Storm read, and back without loss.

Names become identifiers (`NameMap`), a chain becomes a model file (`format_prism`) with a property file to match
(`rewrite_for_export`), and the model file becomes the same chain again (`read_own_prism`, `restore_chain`). The pair is
checked together on the chain as the files say it (`is_rewritten`, `exported_chain`).
"""

from tracebridge.export.names import NameMap, identifier_of, name_of
from tracebridge.export.prism import format_prism, write_prism
from tracebridge.export.prism_reader import is_own_prism, read_own_prism
from tracebridge.export.properties import rewrite_for_export
from tracebridge.export.property_mark import exported_chain, is_rewritten
from tracebridge.export.restore import restore_chain
from tracebridge.export.single_start import single_start

__all__ = [
    "NameMap",
    "exported_chain",
    "format_prism",
    "identifier_of",
    "is_own_prism",
    "is_rewritten",
    "name_of",
    "read_own_prism",
    "restore_chain",
    "rewrite_for_export",
    "single_start",
    "write_prism",
]
