"""Everything that ``services.game`` raises.

::

    ShengjiError
    ├── BadId             a text is no table or command id
    ├── BadInput          a value from outside is out of range
    ├── CorruptLog        stored bytes are no commit, or not the next one of their table
    │   ├── UnknownEvent  a commit holds a kind of event that this code does not know
    │   └── SealBroken    a sealed secret was changed, or was moved from where it was sealed
    └── MasterKeyLost     the keyring has no master key of that id

A command that the rules forbid is no error: ``decide`` answers it with a ``Refusal``.
"""

from services.rules.reasons import Reason


class ShengjiError(Exception):
    """Anything that ``services.game`` raises on purpose."""

    reason: Reason = Reason.INTERNAL
    """What a caller is told."""


class BadId(ShengjiError):
    """A text is not the one accepted form of an id."""

    reason = Reason.BAD_ID

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{text[:64]!r} is no {kind}")
        self.kind = kind
        self.text = text


class BadInput(ShengjiError):
    """A value from outside is missing, of the wrong kind or out of range."""

    reason = Reason.BAD_INPUT

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(f"{field}: {detail}")
        self.field = field
        self.detail = detail


class CorruptLog(ShengjiError):
    """The stored history of a table is not what this code could have written; nothing may be added to it.

    Attributes:
        version: the commit that is wrong, 0 when no version is known.
        detail: what is wrong with it; holds no secret.
    """

    def __init__(self, version: int, detail: str) -> None:
        super().__init__(f"version {version}: {detail}")
        self.version = version
        self.detail = detail


class UnknownEvent(CorruptLog):
    """A commit holds a kind of event that this code does not know: newer code wrote it, so the fold stops."""


class SealBroken(CorruptLog):
    """A secret does not open with the key of its audience: it was changed or moved after it was sealed."""


class MasterKeyLost(ShengjiError):
    """The keyring has no master key of that id, so the secrets that it made cannot be opened or revealed.

    Attributes:
        key_id: the id that is missing.
    """

    reason = Reason.UNAVAILABLE

    def __init__(self, key_id: str) -> None:
        super().__init__(f"there is no master key {key_id!r}")
        self.key_id = key_id
