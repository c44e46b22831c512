"""Issuers' keys on disk: one or many, changed while services run."""

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from services.shell import jwks
from services.shell.config import ConfigError
from services.shell.key_ring import LEAD_S, STAY_S, KeyRing
from services.shell.keys import KeyFileError, keys_folder, signing_key
from services.shell.tokens import Kind, TokenError, Verifier, sign
from services.shell.trust import FileKeys, issuer_of, trusted

NOW = 1_900_000_000


class Clock:
    now = float(NOW)

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def signed(ring, clock, player="ply_1"):
    kid, key, _ = ring.current()
    return sign(key, "lobby", player, now=clock.now, kid=kid)


def test_a_key_set_is_read_as_it_was_written():
    keys = {str(i): Ed25519PrivateKey.generate().public_key() for i in range(3)}
    read = jwks.read_keys(jwks.key_set(keys))
    assert {kid: key.public_bytes_raw() for kid, key in read.items()} == {
        kid: key.public_bytes_raw() for kid, key in keys.items()
    }


def test_the_worked_example_of_rfc_8037():
    entry = {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
    (key,) = jwks.read_keys(json.dumps({"keys": [{**entry, "kid": "a"}]})).values()
    assert jwks.key_id(key) == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


KEY = {"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"keys": 1}',
        '{"keys": [1]}',
        json.dumps({"keys": [KEY, KEY]}),
        json.dumps({"keys": [{**KEY, "kid": ""}]}),
        json.dumps({"keys": [{**KEY, "x": "AAAA"}]}),
        json.dumps({"keys": [{**KEY, "x": "*"}]}),
        json.dumps({"keys": [{**KEY, "kid": str(i)} for i in range(65)]}),
    ],
)
def test_a_key_set_that_is_none(text):
    with pytest.raises(jwks.JwksError):
        jwks.read_keys(text)


def test_keys_of_other_kinds_are_left_out():
    others = [{"kty": "RSA", "kid": "r"}, {**KEY, "kid": "enc", "use": "enc"}, {**KEY, "crv": "X25519"}]
    assert list(jwks.read_keys(json.dumps({"keys": [*others, KEY]}))) == ["a"]


def test_a_ring_is_made_once_and_closed(tmp_path, clock):
    ring = KeyRing(tmp_path, "lobby", clock)
    assert KeyRing(tmp_path, "lobby", clock).current().kid == ring.current().kid
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "keys").iterdir()} == {0o600}
    assert '"d"' not in (tmp_path / "keys/lobby.jwks").read_text()


def test_a_new_key_is_public_before_it_signs_and_the_old_one_stays_for_an_hour(tmp_path, clock):
    ring, replica = KeyRing(tmp_path, "lobby", clock), KeyRing(tmp_path, "lobby", clock)
    verifier = Verifier(trusted(tmp_path), "table", clock=clock)
    old = replica.current().kid
    added = ring.rotate().kid
    clock.now += LEAD_S - 1
    assert replica.current().kid == ring.current().kid == old
    assert [key.kid for key in replica.listed()] == [old, added]
    last_of_old = signed(replica, clock)
    clock.now += 1
    assert replica.current().kid == ring.current().kid == added
    assert verifier.verify(last_of_old).player_id == verifier.verify(signed(replica, clock)).player_id
    clock.now += STAY_S - 1
    assert old in replica.key_set()
    clock.now += 1
    assert old not in replica.key_set()
    assert old not in (tmp_path / "keys/lobby.jwks").read_text()
    assert old not in (tmp_path / "keys/lobby.keys").read_text()
    assert replica.current().kid == added


def test_changes_of_several_processes_are_all_kept(tmp_path, clock):
    rings = [KeyRing(tmp_path, "lobby", clock) for _ in range(8)]
    with ThreadPoolExecutor(len(rings)) as pool:
        added = {key.kid for key in pool.map(KeyRing.rotate, rings)}
    clock.now += 2
    assert {key.kid for key in rings[0].listed()} >= added
    assert len(added) == len(rings)


@pytest.mark.parametrize("text", ["", "{}", '{"keys": []}', '{"keys": [{"kid": "a", "d": "AAAA"}]}'])
def test_a_ring_that_is_none(tmp_path, clock, text):
    (keys_folder(tmp_path) / "lobby.keys").write_text(text)
    with pytest.raises(KeyFileError, match=r"lobby\.keys"):
        KeyRing(tmp_path, "lobby", clock)


def test_a_verifier_sees_a_key_come_and_go(tmp_path, clock):
    verifier = Verifier(trusted(tmp_path), "table", clock=clock)  # before the lobby has ever run
    ring = KeyRing(tmp_path, "lobby", clock)
    token = signed(ring, clock)
    with pytest.raises(TokenError, match="no such key"):
        verifier.verify(token)  # the files are looked at once a second
    clock.now += 1
    assert verifier.verify(token).issuer == "lobby"
    assert verifier.recall(token) is not None
    (tmp_path / "keys/lobby.jwks").write_text(jwks.key_set({}))
    clock.now += 1
    assert verifier.recall(token) is None
    with pytest.raises(TokenError, match="no such key"):
        verifier.verify(token)


def test_a_file_that_became_unusable_leaves_the_keys_as_they_were(tmp_path, clock, caplog):
    ring = KeyRing(tmp_path, "lobby", clock)
    verifier = Verifier(trusted(tmp_path), "table", clock=clock)
    token = signed(ring, clock)
    for content in ("{", None):
        path = tmp_path / "keys/lobby.jwks"
        path.write_text(content) if content else path.unlink()
        clock.now += 1
        assert verifier.verify(token).player_id == "ply_1"
    assert [record.message for record in caplog.records] == ["issuer_keys_unusable"] * 2


def test_configured_issuers_take_the_place_of_this_machines_own(tmp_path, clock):
    key = signing_key(tmp_path, "mine")
    ring = KeyRing(tmp_path, "lobby", clock)
    folder = tmp_path / "keys"
    entries = [f"mine={folder}/mine.pub", f"sets={folder}/lobby.jwks"]
    verifier = Verifier(trusted(tmp_path, players=entries), "table", clock=clock)
    assert verifier.verify(sign(key, "mine", "ply_1", now=NOW)).issuer == "mine"
    kid, private, _ = ring.current()
    assert verifier.verify(sign(private, "sets", "ply_1", now=NOW, kid=kid)).issuer == "sets"
    with pytest.raises(TokenError, match="not trusted"):
        verifier.verify(signed(ring, clock))
    service = sign(signing_key(tmp_path, "services"), "services", "svc:lobby", now=NOW)
    assert verifier.verify(service).player_id == "svc:lobby"


def test_an_issuer_that_cannot_be(tmp_path):
    for entry in ("lobby", "=x", "lobby="):
        with pytest.raises(ConfigError, match="name=file"):
            issuer_of(entry, Kind.PLAYERS)
    (tmp_path / "bad").write_text('{"keys": 3}')
    for name in ("bad", "none"):
        with pytest.raises(KeyFileError, match=name):
            issuer_of(f"x={tmp_path}/{name}", Kind.PLAYERS)


def test_a_file_that_is_not_needed_may_come_later(tmp_path):
    keys = FileKeys(tmp_path / "x.jwks", required=False)
    assert keys.find("a") is None
    (tmp_path / "x.tmp").write_text(json.dumps({"keys": [KEY]}))
    os.replace(tmp_path / "x.tmp", tmp_path / "x.jwks")
    assert keys.changed()
    assert not keys.changed()
    assert keys.find("a") is not None
