import hmac
import json
import stat

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from services.shell.jwks import encode
from services.shell.keys import KeyFileError, master_keys, public_key, signing_key
from services.shell.tokens import SCOPES, Issuer, Keys, Kind, TokenError, Verifier, sign

PLAYERS = Ed25519PrivateKey.generate()
BOTS = Ed25519PrivateKey.generate()
SERVICES = Ed25519PrivateKey.generate()
OLD, NEW = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
ISSUERS = [
    Issuer("players", Keys(PLAYERS.public_key())),
    Issuer("bots", Keys(BOTS.public_key()), Kind.BOTS),
    Issuer("services", Keys(SERVICES.public_key()), Kind.SERVICES),
    Issuer("lobby", Keys({"old": OLD.public_key(), "new": NEW.public_key()})),
]
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


def raw(header, key, issuer):
    """A token with any header, really signed."""
    claims = jwt.decode(make(key, issuer), options={"verify_signature": False})
    body = ".".join(encode(json.dumps(part).encode()) for part in (header, claims))
    return f"{body}.{encode(key.sign(body.encode()))}"


def test_a_token_made_by_hand_is_like_any(verifier):
    assert verifier.verify(raw({"alg": "EdDSA", "kid": "old"}, OLD, "lobby")).player_id == "ply_1"


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
        (make(exp=2**62), "beyond all time"),
        (make(sub="a b"), "player id"),
        (make(sub="x" * 65), "player id"),
        (make(sub=""), "player id"),
        (make(player="bot:1"), "may not speak"),
        (make(player="svc:lobby"), "may not speak"),
        (make(key=BOTS, issuer="bots", player="svc:lobby"), "may not speak"),
        (make(key=SERVICES, issuer="services", player="bot:1"), "may not speak"),
        (make(key=SERVICES, issuer="services", player="ply_1"), "may not speak"),
        (make(key=SERVICES, issuer="bots", player="bot:1"), "not valid"),
        (make(op=""), "operator"),
        (make(op="A"), "operator"),
        (make(op="x" * 33), "operator"),
        (make(op=7), "operator"),
        (sign(OLD, "lobby", "ply_1", now=NOW), "no such key"),
        (sign(OLD, "lobby", "ply_1", now=NOW, kid="older"), "no such key"),
        (sign(OLD, "lobby", "ply_1", now=NOW, kid="new"), "not valid"),
        (sign(PLAYERS, "lobby", "ply_1", now=NOW, kid="old"), "not valid"),
        (raw({"alg": "EdDSA", "kid": 7}, OLD, "lobby"), "not valid"),
        (raw({"alg": "EdDSA", "kid": ["old"]}, OLD, "lobby"), "not valid"),
        (raw({"alg": "ES256", "kid": "old"}, OLD, "lobby"), "not valid"),
        (raw({"alg": "none", "kid": "old"}, OLD, "lobby"), "not valid"),
        (raw({"alg": "EdDSA", "kid": "old", "crit": ["x"], "x": 1}, OLD, "lobby"), "not valid"),
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


@pytest.mark.parametrize("encoding", [Encoding.Raw, Encoding.DER, Encoding.PEM])
def test_the_public_key_is_no_secret_to_sign_with(verifier, encoding):
    """HMAC with the public key as its secret, whichever way it is written."""
    shape = PublicFormat.Raw if encoding is Encoding.Raw else PublicFormat.SubjectPublicKeyInfo
    secret = PLAYERS.public_key().public_bytes(encoding, shape)
    body = encode(b'{"alg":"HS256"}') + "." + make().split(".")[1]
    with pytest.raises(TokenError, match="not valid"):
        verifier.verify(f"{body}.{encode(hmac.digest(secret, body.encode(), 'sha256'))}")


def test_a_key_set_has_a_key_for_each_kid(verifier):
    for kid, key in (("old", OLD), ("new", NEW)):
        identity = verifier.verify(sign(key, "lobby", "ply_1", now=NOW, kid=kid))
        assert (identity.player_id, identity.issuer) == ("ply_1", "lobby")


def test_a_token_tells_its_operator(verifier):
    assert verifier.verify(make()).operator == ""
    token = sign(PLAYERS, "players", "ply_1", now=NOW, operator="acme-2")
    assert verifier.verify(token).operator == "acme-2"
    with pytest.raises(ValueError, match="operator"):
        sign(PLAYERS, "players", "ply_1", operator="Acme")


def test_a_token_is_for_every_service_unless_its_signer_says_otherwise(clock):
    for scope in SCOPES.split():
        assert Verifier(ISSUERS, scope, clock=clock).verify(make()).player_id == "ply_1"


def test_services_have_an_issuer_of_their_own(verifier):
    token = make(key=SERVICES, issuer="services", player="svc:lobby")
    assert verifier.verify(token).player_id == "svc:lobby"


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
