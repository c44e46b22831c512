"""`shengji token`: what a token is for."""

import pytest
from click.testing import CliRunner

from services.cli.main import main
from services.shell.tokens import TokenError, Verifier
from services.shell.trust import trusted


@pytest.fixture
def ask(tmp_path):
    def run(*options):
        done = CliRunner().invoke(main, ["token", "--player", "ply_anna", "--data", str(tmp_path), *options])
        return done.exit_code, done.output.strip()

    return run


@pytest.mark.parametrize(
    ("options", "services"),
    [
        ((), {"table", "lobby", "ledger"}),
        (("--scope", "ledger admin"), {"ledger"}),
        (("--scope", " table  lobby "), {"table", "lobby"}),
    ],
)
def test_a_token_is_for_the_services_of_its_scope(ask, tmp_path, options, services):
    status, token = ask(*options)
    assert status == 0
    for service in ("table", "lobby", "ledger"):
        verifier = Verifier(trusted(tmp_path, (), (), ()), service)
        if service in services:
            identity = verifier.verify(token)
            assert identity.player_id == "ply_anna"
            assert ("admin" in identity.scope.split()) == ("admin" in " ".join(options))
        else:
            with pytest.raises(TokenError):
                verifier.verify(token)


@pytest.mark.parametrize("scope", ["", "ledgers", "table,lobby", "Admin"])
def test_what_nothing_understands_is_no_scope(ask, scope):
    status, said = ask("--scope", scope)
    assert status == 2
    assert "table, lobby, ledger, admin" in said
