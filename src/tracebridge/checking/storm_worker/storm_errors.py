"""The text of Storm's exceptions."""

from __future__ import annotations


def storm_message(error: Exception) -> str:
    """What Storm says, without its layers of exception names and the advice about its own interface."""
    text = str(error).partition("\nNote that the used API function")[0].strip()
    while (head := text.partition(": "))[0].endswith("Exception"):
        text = head[2]
    return text
