"""What stands in deploy/ is true of the code."""

import os
import subprocess
from pathlib import Path

from services.shell.nats_server import find_nats_server
from services.shell.nats_users import USERS, authorization

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


def test_nats_conf_has_the_users_of_the_code() -> None:
    variables = {user.name: f"$SHENGJI_NATS_{user.name.upper()}" for user in USERS}
    expected = authorization(variables)
    for variable in variables.values():
        expected = expected.replace(f'"{variable}"', variable)
    assert expected in (DEPLOY / "nats.conf").read_text()


def test_nats_conf_is_one_that_nats_server_takes(tmp_path: Path) -> None:
    passwords = {f"SHENGJI_NATS_{user.name.upper()}": f"password-of-{user.name}" for user in USERS}
    done = subprocess.run(
        [find_nats_server(), "-t", "-c", DEPLOY / "nats.conf"],
        env={**os.environ, **passwords, "SHENGJI_NATS_STORE": str(tmp_path)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
