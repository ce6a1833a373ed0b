"""How a verb prints its help: its own options, then those it shares with other verbs, by what they are for."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

Decorator = TypeVar("Decorator", bound=Callable[..., Any])

_OWN = "Options"
_LAST = "Options of every verb"
_section_of: dict[click.Parameter, str] = {}


def section(title: str) -> Callable[[Decorator], Decorator]:
    """Let the options that a decorator adds to a command stand in this section of its help."""

    def named(decorator: Decorator) -> Decorator:
        @wraps(decorator)
        def decorated(command: Callable[..., Any]) -> Any:
            known = len(getattr(command, "__click_params__", []))
            decorator(command)
            for option in getattr(command, "__click_params__")[known:]:  # noqa: B009 - click's own attribute
                _section_of.setdefault(option, title)
            return command

        return cast("Decorator", decorated)

    return named


#: The section of what every verb takes, which stands last.
of_every_verb = section(_LAST)


class Verb(click.Command):
    """A command whose help has sections, and single letters where click would name the type of a number."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for option in self.params:
            if isinstance(option, click.Option) and option.metavar is None and not option.is_flag:
                if isinstance(option.type, click.types.IntRange):
                    option.metavar = "N"
                elif isinstance(option.type, click.types.FloatRange):
                    option.metavar = "X"

    def sections(self, ctx: click.Context) -> dict[str, list[click.Option]]:
        """The options that are shown, by the titles of their sections in their order; required options come first."""
        sections: dict[str, list[click.Option]] = {_OWN: []}
        options = [option for option in self.get_params(ctx) if isinstance(option, click.Option) and not option.hidden]
        for option in sorted(options, key=lambda option: not option.required):
            title = _LAST if option is self.get_help_option(ctx) else _section_of.get(option, _OWN)
            sections.setdefault(title, []).append(option)
        sections[_LAST] = sections.pop(_LAST)
        return {title: options for title, options in sections.items() if options}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """A section after the other."""
        for title, options in self.sections(ctx).items():
            with formatter.section(title):
                formatter.write_dl([record for option in options if (record := option.get_help_record(ctx))])


class Verbs(click.Group):
    """A group of them."""

    command_class = Verb
