"""What a bot can do at a table. Cards are ``bytes`` of card indices (``engine_ext.codes``), in any order."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ready:
    """Be ready for the next deal."""


@dataclass(frozen=True, slots=True)
class TakeBack:
    """Take the seat back from the server (``SetAutoPlay`` off)."""


@dataclass(frozen=True, slots=True)
class Declare:
    """Show cards to set or override trump; a partner who reinforces shows only what it adds (RULES §7)."""

    cards: bytes


@dataclass(frozen=True, slots=True)
class Pass:
    """Pass in the declaring window, on a mutiny or on a counter."""


@dataclass(frozen=True, slots=True)
class CallMutiny:
    """Claim a redeal for a hand poor in points."""


@dataclass(frozen=True, slots=True)
class Counter:
    """Counter after a bury: change trump and take the kitty."""

    cards: bytes


@dataclass(frozen=True, slots=True)
class Bury:
    """Bury as many cards as the kitty has."""

    cards: bytes


@dataclass(frozen=True, slots=True)
class Play:
    """Lead or follow."""

    cards: bytes


Action = Ready | TakeBack | Declare | Pass | CallMutiny | Counter | Bury | Play


def kind(action: Action) -> str:
    """The action's name for command ids, metrics and logs, such as "ready" or "take_back"."""
    return _KINDS[type(action)]


_KINDS: dict[type[Action], str] = {
    Ready: "ready",
    TakeBack: "take_back",
    Declare: "declare",
    Pass: "pass",
    CallMutiny: "call_mutiny",
    Counter: "counter",
    Bury: "bury",
    Play: "play",
}
