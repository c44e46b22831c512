"""The house keeps its own rules: style, types, protos, imports, and what the README says of the code."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, version
from pathlib import Path

import pytest

from services.bot.config import BotConfig
from services.ledger.config import LedgerConfig
from services.lobby.config import LobbyConfig
from services.rules.sheet.catalogue import markdown
from services.shell.config import readme_table
from services.table.config import TableConfig

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
LONGEST_FILE = 400


@pytest.mark.parametrize(
    ("command", "folder"),
    [
        (["ruff", "check", "."], "."),
        (["ruff", "format", "--check", "."], "."),
        (["mypy"], "."),
        (["lint-imports"], "."),
        (["buf", "lint"], "protos"),
        (["python", "protos/generate.py", "--check"], "."),
        (["stubtest", "engine_ext._core"], "."),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_check_of_the_readme_is_clean(command: list[str], folder: str) -> None:
    done = subprocess.run(
        [BIN / command[0], *command[1:]], cwd=ROOT / folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_readmes_settings_are_the_codes() -> None:
    readme = (ROOT / "README.md").read_text()
    shown = re.search(r"<!-- settings: [^>]*-->\n(.*)<!-- end of settings -->", readme, re.S)
    assert shown is not None
    services = {"table": TableConfig, "lobby": LobbyConfig, "ledger": LedgerConfig, "bot": BotConfig}
    assert shown[1].strip() == readme_table(**services).strip()


def test_the_readmes_presets_are_the_codes() -> None:
    readme = (ROOT / "README.md").read_text()
    shown = re.search(r"<!-- presets: [^>]*-->\n(.*)<!-- end of presets -->", readme, re.S)
    assert shown is not None
    assert shown[1].strip() == markdown("en").strip()


def test_the_readmes_commands_exist() -> None:
    from services.cli.main import main

    readme = (ROOT / "README.md").read_text()
    named = set(re.findall(r"`shengji ([a-z]+)", readme))
    assert named <= set(main.list_commands(None))  # type: ignore[arg-type]
    assert set(main.list_commands(None)) <= named  # type: ignore[arg-type]


def test_files_are_short() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for folder in ("services", "engine_ext", "tests", "protos")
        for path in (ROOT / folder).rglob("*.py")
        if "pb" not in path.relative_to(ROOT).parts
        and (lines := len(path.read_text().splitlines())) > LONGEST_FILE
    }
    assert not long


def test_generated_code_needs_no_newer_library_than_is_asked_for() -> None:
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    floor = re.compile(r"([a-z-]+)(?:\[[a-z]+\])?>=([0-9.]+)")
    floors = dict(floor.match(line).groups() for line in dependencies)  # type: ignore[union-attr]
    grpc_stub = (ROOT / "services/pb/table/v1/table_service_pb2_grpc.py").read_text()
    assert re.search(r"GRPC_GENERATED_VERSION = '([0-9.]+)'", grpc_stub)[1] == floors["grpcio"]  # type: ignore[index]
    stub = (ROOT / "services/pb/table/v1/table_service_pb2.py").read_text()
    assert re.search(r"Protobuf Python Version: ([0-9.]+)", stub)[1] == floors["protobuf"]  # type: ignore[index]


def test_our_import_names_are_ours_alone() -> None:
    if version("shengji"):
        owners = packages_distributions()
        assert set(owners.get("services", ["shengji"])) == {"shengji"}
        assert set(owners.get("engine_ext", ["shengji"])) == {"shengji"}
