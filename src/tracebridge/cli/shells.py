"""What click's completion leaves undone in a shell: ``--option=value``, and in fish descriptions with a comma."""

from __future__ import annotations

from typing import Any

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)


@add_completion_class
class _Bash(BashComplete):
    """Bash makes three words of ``--option=value`` and completes the last of them."""

    def get_completion_args(self) -> tuple[list[str], str]:
        words, incomplete = super().get_completion_args()
        joined = [""]
        for word in [*words, incomplete]:
            if word == "=" or joined[-1].endswith("="):
                joined[-1] += word
            else:
                joined.append(word)
        return joined[1:-1], joined[-1]


class _OneWord(ShellComplete):
    """A shell that puts a completion in the place of the whole ``--option=value``."""

    _option = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        words, incomplete = super().get_completion_args()
        if incomplete.startswith("--") and "=" in incomplete:
            self._option = incomplete.partition("=")[0] + "="
        return words, incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        whole = self._option + item.value if item.type == "plain" else item.value
        told: str = super().format_completion(CompletionItem(whole, item.type, item.help))
        return told


@add_completion_class
class _Zsh(_OneWord, ZshComplete):
    """The names of files that zsh itself looks for begin behind the ``=``."""

    source_template = ZshComplete.source_template.replace("_path_files", "compset -P '--*='; _path_files")


@add_completion_class
class _Fish(_OneWord, FishComplete):
    """A description is not split at its commas."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split --max 1 ","')
