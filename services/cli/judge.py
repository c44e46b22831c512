"""`shengji judge`: one case a line in, one answer a line out (RULES §11)."""

import sys
from typing import Final

import click

from services.rules.judge import judge_lines

_HELP: Final = """Judge cases: JSON lines on standard input, answers on standard output in the same order.

A case names a preset, a kind (shape, follow, throw, trick, kitty, score, declare) and its fields; the answer
is {"id", "result"} or {"id", "error": {"code", "message"}}. tests/corpus/cases/README.md lists the fields.

\b
case='{"id": 1, "preset": "classic-2d", "kind": "shape", "level": "T",'
case="$case"' "trump": "S", "cards": ["HK", "HK", "HQ", "HQ"]}'
echo "$case" | shengji judge
"""
"""Not a docstring, since click's mark for lines that stay as they are is no plain text."""


@click.command(help=_HELP, short_help="Judge cases: JSON lines in, answers out.")
def judge() -> None:
    """Judge every line of standard input."""
    write = sys.stdout.write
    with click.open_file("-", encoding="utf-8", errors="surrogateescape") as lines:
        for answer in judge_lines(lines):
            write(answer + "\n")
    sys.stdout.flush()
