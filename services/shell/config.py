"""Settings of services: flags before ``SHENGJI_*`` variables before defaults, all declared in one table.

A service's settings are a frozen dataclass; each field is ``Annotated`` with a :class:`Setting`. Flags,
variables, checks and the README's table all come from there.
"""

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

PREFIX: Final = "SHENGJI_"
LOG_LEVELS: Final = ("debug", "info", "warning", "error")
C = TypeVar("C")


class ConfigError(Exception):
    """A setting that cannot be; the message names it."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a field of a configuration is, beside its type and default."""

    help: str
    choices: tuple[str | int, ...] = ()
    least: float | None = None
    most: float | None = None
    hidden: bool = False
    """Not in the README: for development, or for the supervisor."""
    secret: bool = False
    """From the environment alone, since flags can be seen by others."""


class Declared(NamedTuple):
    """One setting as a configuration declares it."""

    name: str
    kind: Any
    """str, int, float, bool, Path or tuple[str, ...] (in text separated by commas)."""
    default: Any
    setting: Setting

    @property
    def flag(self) -> str:
        """The flag, such as ``--log-level``."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """The environment variable, such as ``SHENGJI_LOG_LEVEL``."""
        return PREFIX + self.name.upper()


@dataclass(frozen=True, kw_only=True)
class ServiceConfig:
    """What every service is told."""

    data: Annotated[Path, Setting("folder of everything that is kept")] = Path("$XDG_DATA_HOME/shengji")
    nats: Annotated[str, Setting("NATS server, or several separated by commas")] = "nats://127.0.0.1:4222"
    nats_replicas: Annotated[
        int, Setting("copies of each stream: 1, or 3 or 5 in a cluster", choices=(1, 3, 5))
    ] = 1
    metrics: Annotated[str, Setting("address of the Prometheus exporter; empty for none")] = "127.0.0.1:0"
    log_level: Annotated[str, Setting("least level shown", choices=("debug", "info", "warning", "error"))] = (
        "info"
    )
    supervised: Annotated[
        bool, Setting("stop when standard input ends, as it does with whoever started this", hidden=True)
    ] = False


def settings(config: type) -> tuple[Declared, ...]:
    """All settings of a configuration, in the order declared."""
    hints = get_type_hints(config, include_extras=True)
    declared = []
    for item in fields(config):
        kind, setting = get_args(hints[item.name])
        declared.append(Declared(item.name, kind, item.default, setting))
    return tuple(declared)


def load(config: type[C], flags: Mapping[str, object], environ: Mapping[str, str] = os.environ) -> C:
    """Settle every setting: the flag if it is given (not None), else the variable, else the default.

    Raises:
        ConfigError: a flag that is no setting, or a value that a setting cannot have.
    """
    declared = settings(config)
    unknown = sorted(set(flags) - {item.name for item in declared})
    if unknown:
        raise ConfigError(f"unknown setting: {', '.join(unknown)}")
    values: dict[str, object] = {}
    for item in declared:
        given = flags.get(item.name)
        if given is not None and item.setting.secret:
            raise ConfigError(f"{item.variable} must come from the environment")
        if given is None:
            given = environ.get(item.variable)
        values[item.name] = _value(item, item.default if given is None else given, environ)
    return config(**values)


def _value(item: Declared, given: object, environ: Mapping[str, str]) -> object:
    value = _parse(item, given) if isinstance(given, str) else given
    if item.kind is Path and isinstance(value, Path):
        home = environ.get("XDG_DATA_HOME") or "~/.local/share"
        return Path(str(value).replace("$XDG_DATA_HOME", home)).expanduser()
    if get_origin(item.kind) is tuple:
        if not isinstance(value, list | tuple) or not all(isinstance(part, str) for part in value):
            raise ConfigError(f"{item.flag} is a list of texts, not {given!r}")
        return tuple(value)
    if item.kind is float and type(value) is int:
        value = float(value)
    if type(value) is not item.kind:
        raise ConfigError(f"{item.flag} is {item.kind.__name__}, not {given!r}")
    least, most, choices = item.setting.least, item.setting.most, item.setting.choices
    if choices and value not in choices:
        raise ConfigError(f"{item.flag} is one of {', '.join(map(str, choices))}, not {given!r}")
    if isinstance(value, int | float):
        if least is not None and value < least:
            raise ConfigError(f"{item.flag} is at least {least:g}, not {given!r}")
        if most is not None and value > most:
            raise ConfigError(f"{item.flag} is at most {most:g}, not {given!r}")
    return value


def _parse(item: Declared, text: str) -> object:
    if get_origin(item.kind) is tuple:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if item.kind is bool:
        words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
        if text.lower() not in words:
            raise ConfigError(f"{item.flag} is true or false, not {text!r}")
        return words[text.lower()]
    try:
        return item.kind(text)
    except ValueError:
        raise ConfigError(f"{item.flag} is {item.kind.__name__}, not {text!r}") from None


def readme_table(**services: type) -> str:
    """The README's table of settings in Markdown: one row a setting, those that services share once.

    Args:
        services: their configurations by their names, such as ``table=TableConfig, bot=BotConfig``.
    """
    rows: dict[str, list[str]] = {}
    for service, config in services.items():
        for item in settings(config):
            text = ",".join(item.default) if isinstance(item.default, tuple) else str(item.default)
            flag = "—" if item.setting.secret else f"`{item.flag}`"
            shown = f"`{text}`" if text else "—"
            if not item.setting.hidden:
                row = f"{flag} | `{item.variable}` | {shown} | {item.setting.help}"
                rows.setdefault(row, []).append(service)
    lines = [
        f"| {'all' if len(names) == len(services) else ', '.join(names)} | {row} |"
        for row, names in rows.items()
    ]
    return (
        "\n".join(["| service | flag | variable | default | what |", "|---|---|---|---|---|", *lines]) + "\n"
    )


def split_address(address: str) -> tuple[str, int]:
    """``host:port`` (an IPv6 host in brackets) as its two parts.

    Raises:
        ConfigError: not of that form.
    """
    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ConfigError(f"an address is host:port, not {address!r}")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host; names other than localhost count as reachable."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
