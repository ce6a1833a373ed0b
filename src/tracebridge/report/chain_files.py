"""The files of a chain and its properties, which people and other tools read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tracebridge.chain.document import document_text
from tracebridge.export import format_prism, rewrite_for_export
from tracebridge.pctl import ast, format_properties

if TYPE_CHECKING:
    from tracebridge.chain.expanded.fit import ExpandedFit
    from tracebridge.chain.fit import ChainFit

#: The largest chain that is written as PRISM text; the tools read larger ones too slowly.
MAX_PRISM_STATES = 10_000


def chain_files(fit: ChainFit | ExpandedFit, file: ast.PropertyFile, resolved: ast.PropertyFile) -> dict[str, str]:
    """Name to text: chain.json, the properties, and both for PRISM where the chain is not too large.

    Args:
        file: the properties as they were given. resolved: with their constants in place.
    """
    texts = {"chain.json": document_text(fit.to_dict()), "properties.source.props": format_properties(file)}
    if fit.chain.n_states <= MAX_PRISM_STATES:
        texts["model.prism"] = format_prism(fit.chain)
        texts["properties.props"] = format_properties(rewrite_for_export(resolved, fit.chain), target="prism")
    return texts


def text_hashes(texts: Mapping[str, str]) -> dict[str, str]:
    """Name to the SHA-256, in hexadecimal, of the text in UTF-8; sorted."""
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in sorted(texts.items())}
