"""What a terminal remembers of its player: a file per profile, readable by its owner alone."""

import base64
import fcntl
import json
import os
import secrets
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path


class ProfileInUse(Exception):
    """Another terminal uses the profile; two would use up each other's refresh tokens."""


class ProfileDamaged(Exception):
    """The file is not what this program wrote."""


@dataclass(slots=True)
class Profile:
    """A player's way in.

    Attributes:
        device_id: this machine's name for the lobby.
        secret: the device's secret, base64.
        refresh_token: the newest one; empty before the first sign-in.
        request_id: of a Refresh whose answer has not come; to be repeated.
        path: where it is kept; None for a throwaway.
    """

    device_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    secret: str = field(default_factory=lambda: base64.b64encode(secrets.token_bytes(32)).decode())
    refresh_token: str = ""
    request_id: str = ""
    path: Path | None = None

    @property
    def secret_bytes(self) -> bytes:
        """The device's secret."""
        return base64.b64decode(self.secret)

    def save(self) -> None:
        """Write the file, whole or not at all."""
        if self.path is None:
            return
        kept = asdict(self)
        del kept["path"]
        draft = self.path.with_suffix(".new")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(kept, file, indent=1)
        draft.replace(self.path)


def config_folder() -> Path:
    """``$XDG_CONFIG_HOME/shengji``."""
    root = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(root) / "shengji"


@contextmanager
def opened(name: str) -> Iterator[Profile]:
    """A profile, held for this process alone; it is made when missing.

    Raises:
        ProfileInUse: another process holds it.
        ProfileDamaged: it cannot be read.
    """
    folder = config_folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ProfileInUse(name) from None
        yield _read(folder / f"{name}.json")
    finally:
        os.close(descriptor)


def _read(path: Path) -> Profile:
    if not path.exists():
        return Profile(path=path)
    try:
        kept = json.loads(path.read_text())
        profile = Profile(**kept, path=path)
        if not all(isinstance(kept[name], str) for name in ("device_id", "secret", "refresh_token")):
            raise TypeError("fields must be texts")
        _ = profile.secret_bytes
    except (ValueError, TypeError, KeyError) as error:
        raise ProfileDamaged(f"{path} cannot be read ({error}); remove it to start anew") from None
    return profile
