import stat

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from services.shell.keys import KeyFileError, master_keys, public_key, signing_key
from services.shell.tokens import Issuer, TokenError, Verifier, sign

PLAYERS = Ed25519PrivateKey.generate()
BOTS = Ed25519PrivateKey.generate()
ISSUERS = [Issuer("players", PLAYERS.public_key()), Issuer("bots", BOTS.public_key(), bots=True)]
NOW = 1_900_000_000


class Clock:
    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now


def make(key=PLAYERS, issuer="players", player="ply_1", **changes):
    token = sign(key, issuer, player, now=NOW)
    if not changes:
        return token
    claims = jwt.decode(token, options={"verify_signature": False})
    claims.update(changes)
    return jwt.encode({k: v for k, v in claims.items() if v is not None}, key, algorithm="EdDSA")


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def verifier(clock):
    return Verifier(ISSUERS, "table", clock=clock)


def test_a_good_token_proves_its_player_until_it_expires(verifier, clock):
    token = make()
    assert verifier.verify(token).player_id == "ply_1"
    clock.now = NOW + 899
    assert verifier.verify(token).expires_at == NOW + 900
    clock.now = NOW + 900
    with pytest.raises(TokenError, match="expired"):
        verifier.verify(token)
    assert verifier.recall(token) is None


def test_a_token_may_hold_several_scopes(verifier):
    assert verifier.verify(make(scope="lobby table")).scope == "lobby table"


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("", "not valid"),
        ("a.b.c", "not valid"),
        ("x" * 3000, "too long"),
        (make(iss="strangers"), "not trusted"),
        (jwt.PyJWS().encode(b'{"iss": ["players"]}', PLAYERS, algorithm="EdDSA"), "not valid"),
        (make(key=BOTS), "not valid"),
        (make(scope="lobby"), "scope"),
        (make(scope=["table"]), "scope"),
        (make(exp=None), "not valid"),
        (make(jti=None), "not valid"),
        (make(exp=NOW + 0.5), "whole number"),
        (make(sub="a b"), "player id"),
        (make(sub="x" * 65), "player id"),
        (make(sub=""), "player id"),
        (make(player="bot:1"), "may not speak"),
        (make(key=BOTS, issuer="bots", player="ply_1"), "may not speak"),
        (jwt.encode({"iss": "players", "sub": "ply_1"}, "k" * 32, algorithm="HS256"), "not valid"),
    ],
)
def test_a_token_that_proves_nothing(verifier, token, why):
    with pytest.raises(TokenError, match=why):
        verifier.verify(token)
    assert verifier.recall(token) is None


def test_an_unsigned_token_proves_nothing(verifier):
    head, body, _ = make().split(".")
    with pytest.raises(TokenError):
        verifier.verify(f"{head}.{body}.")
    with pytest.raises(TokenError):
        verifier.verify(jwt.encode({"iss": "players", "sub": "ply_1"}, None, algorithm="none"))


def test_bots_have_an_issuer_of_their_own(verifier):
    assert verifier.verify(make(key=BOTS, issuer="bots", player="bot:1")).player_id == "bot:1"


def test_the_memory_is_bounded(clock):
    verifier = Verifier(ISSUERS, "table", remembered=2, clock=clock)
    tokens = [make(player=f"ply_{i}") for i in range(3)]
    for token in tokens:
        verifier.verify(token)
    assert [bool(verifier.recall(token)) for token in tokens] == [False, True, True]


def test_an_odd_player_id_is_not_signed():
    with pytest.raises(ValueError, match="player id"):
        sign(PLAYERS, "players", "a\nb")


def test_key_files_are_made_once_and_closed(tmp_path):
    key = signing_key(tmp_path, "players")
    again = signing_key(tmp_path, "players")
    assert key.private_bytes_raw() == again.private_bytes_raw()
    folder = tmp_path / "keys"
    assert public_key(folder / "players.pub").public_bytes_raw() == key.public_key().public_bytes_raw()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_master_keys_are_made_once_and_rotate(tmp_path):
    first = master_keys(tmp_path)
    assert master_keys(tmp_path) == first
    assert list(first) == ["k1"]
    path = tmp_path / "keys" / "master.keys"
    path.write_text(path.read_text() + f"k2:{'ab' * 32}\n")
    assert list(master_keys(tmp_path)) == ["k1", "k2"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "text", ["k1", "k1:zz", "k1:abcd", ":" + "ab" * 32, f"k1:{'ab' * 32},k1:{'cd' * 32}"]
)
def test_a_master_key_that_is_none(tmp_path, text):
    with pytest.raises(KeyFileError) as caught:
        master_keys(tmp_path, text)
    assert "ab" * 32 not in str(caught.value)


def test_a_key_file_that_is_none(tmp_path):
    (tmp_path / "x.pub").write_text("hello")
    with pytest.raises(KeyFileError, match=r"x\.pub"):
        public_key(tmp_path / "x.pub")
    with pytest.raises(KeyFileError, match=r"y\.pub"):
        public_key(tmp_path / "y.pub")
