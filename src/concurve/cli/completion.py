"""``concurve completion``: the script with which a shell completes verbs, options and names."""

from __future__ import annotations

import click

HELP = """Print the script with which a shell completes verbs, options, studies and runs.

\b
Examples:
  eval "$(concurve completion bash)"          # in ~/.bashrc
  eval "$(concurve completion zsh)"           # in ~/.zshrc, after compinit
  concurve completion fish | source           # in ~/.config/fish/config.fish
"""

#: The shells that there are scripts for.
SHELLS = ("bash", "zsh", "fish")


@click.command("completion", help=HELP, short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def verb(context: click.Context, shell: str) -> None:
    """Print the script for one shell."""
    click.echo(script(context.find_root().command, shell), nl=False)


def script(command: click.Command, shell: str) -> str:
    """The completion script of a shell for the command ``concurve``.

    ``shell`` is one of :data:`SHELLS`. The script calls ``concurve`` at each completion, with the
    variable that click reads.
    """
    from click.shell_completion import ShellComplete, get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, shell
    # The base's method: bash's own starts bash to learn its version, and has to find one for that.
    return ShellComplete.source(kind(command, {}, "concurve", "_CONCURVE_COMPLETE"))
