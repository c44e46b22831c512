from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest

from services.shell.config import (
    ConfigError,
    ServiceConfig,
    Setting,
    is_loopback,
    load,
    readme_table,
    split_address,
)


@dataclass(frozen=True, kw_only=True)
class Example(ServiceConfig):
    rate: Annotated[float, Setting("a rate", least=0, most=9)] = 1.5
    names: Annotated[tuple[str, ...], Setting("some names")] = ("a", "b")
    on: Annotated[bool, Setting("a switch")] = False
    key: Annotated[str, Setting("a secret", secret=True)] = ""
    odd: Annotated[str, Setting("for development", hidden=True)] = ""


@dataclass(frozen=True, kw_only=True)
class Other(ServiceConfig):
    on: Annotated[bool, Setting("another switch")] = False


def test_flags_come_before_variables_before_defaults():
    environ = {"SHENGJI_RATE": "2", "SHENGJI_NATS": "nats://b:1", "SHENGJI_ON": "yes"}
    config = load(Example, {"rate": "3", "nats": None, "names": "x, y"}, environ)
    assert (config.rate, config.nats, config.names, config.on) == (3.0, "nats://b:1", ("x", "y"), True)
    assert load(Example, {}, {}).names == ("a", "b")
    assert load(Example, {"names": ["q"], "rate": 4}, {}).names == ("q",)


def test_data_goes_where_xdg_says():
    assert load(Example, {}, {"XDG_DATA_HOME": "/x"}).data == Path("/x/shengji")
    assert load(Example, {}, {}).data == Path("~/.local/share/shengji").expanduser()
    assert load(Example, {"data": Path("/y")}, {}).data == Path("/y")


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"rate": "fast"}, "--rate"),
        ({"rate": 10}, "--rate"),
        ({"rate": -1.0}, "--rate"),
        ({"nats_replicas": 1.5}, "--nats-replicas"),
        ({"nats_replicas": True}, "--nats-replicas"),
        ({"nats_replicas": 2}, "--nats-replicas is one of 1, 3, 5"),
        ({"log_level": "loud"}, "--log-level"),
        ({"on": "maybe"}, "--on"),
        ({"names": 3}, "--names"),
        ({"key": "s"}, "SHENGJI_KEY"),
        ({"nothing": "s"}, "nothing"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name(flags, named):
    with pytest.raises(ConfigError, match=named):
        load(Example, flags, {})


def test_the_table_for_the_readme_shows_each_setting_once():
    table = readme_table(one=Example, other=Other)
    assert table.count("`--nats`") == 1
    assert "| all | `--nats` |" in table
    assert "| one | `--rate` | `SHENGJI_RATE` | `1.5` | a rate |" in table
    assert "| one | — | `SHENGJI_KEY` | — | a secret |" in table
    assert "odd" not in table


def test_a_setting_that_services_mean_differently_stands_once_for_each():
    table = readme_table(one=Example, other=Other)
    assert "| one | `--on` | `SHENGJI_ON` | `False` | a switch |" in table
    assert "| other | `--on` | `SHENGJI_ON` | `False` | another switch |" in table


@pytest.mark.parametrize("text", ["", "a", "a:", ":1", "a:b", "a:70000", "a:-1", "a:１"])
def test_an_address_is_host_and_port(text):
    with pytest.raises(ConfigError):
        split_address(text)


def test_addresses():
    assert split_address("[::1]:80") == ("::1", 80)
    assert [is_loopback(h) for h in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "10.0.0.1", "box")] == [
        *[True] * 3,
        *[False] * 3,
    ]
