"""`shengji judge`: one case a line in, one answer a line out (RULES §11)."""

import sys

import click

from services.rules.judge import judge_lines


@click.command()
def judge() -> None:
    r"""Judge cases: JSON lines on standard input, answers on standard output in the same order.

    A case names a preset, a kind (shape, follow, throw, trick, kitty, score, declare) and its fields; the
    answer is {"id", "result"} or {"id", "error": {"code", "message"}}. tests/corpus/cases/README.md lists
    the fields.

    \b
    echo '{"id": 1, "preset": "classic-2d", "kind": "shape", "level": "T", "trump": "S",
           "cards": ["HK", "HK", "HQ", "HQ"]}' | tr -d '\\n' | shengji judge
    """
    write = sys.stdout.write
    with click.open_file("-", encoding="utf-8", errors="surrogateescape") as lines:
        for answer in judge_lines(lines):
            write(answer + "\n")
    sys.stdout.flush()
