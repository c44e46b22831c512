"""Key files below DATA/keys: the folder is 0700, every file 0600, each made on its first use."""

import os
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

MASTER_KEY_BYTES: Final = 32


class KeyFileError(Exception):
    """A key file that cannot be used; the message names the file, never its contents."""


def keys_folder(data: Path) -> Path:
    """DATA/keys, made if need be and closed to everybody else."""
    folder = data / "keys"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    return folder


def signing_key(data: Path, issuer: str) -> Ed25519PrivateKey:
    """The private key of an issuer of this machine; made with its ``.pub`` beside it on first use.

    Raises:
        KeyFileError: the file is no Ed25519 key.
    """
    folder = keys_folder(data)
    path = folder / f"{issuer}.key"
    if not path.exists():
        pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        write_once(path, pem)
    try:
        key = load_pem_private_key(path.read_bytes(), None)
    except ValueError:
        raise KeyFileError(f"{path} holds no private key") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyFileError(f"{path} is not an Ed25519 key")
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    write_once(folder / f"{issuer}.pub", public)
    return key


def public_key(path: Path) -> Ed25519PublicKey:
    """An issuer's public key from its PEM file.

    Raises:
        KeyFileError: no such file, or no Ed25519 public key in it.
    """
    try:
        key = load_pem_public_key(path.read_bytes())
    except OSError as error:
        raise KeyFileError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise KeyFileError(f"{path} holds no public key") from None
    if not isinstance(key, Ed25519PublicKey):
        raise KeyFileError(f"{path} is not an Ed25519 key")
    return key


def master_keys(data: Path, text: str = "") -> dict[str, bytes]:
    """The table service's master keys by their id, the one in use last.

    They come from ``text`` (``id:hex`` separated by commas) or, when that is empty, from
    DATA/keys/master.keys with one ``id:hex`` a line. To rotate, append a line;
    take one out when no deal that used it is open.

    Raises:
        KeyFileError: an entry is not ``id:hex`` of 32 bytes, or there is none.
    """
    source = "SHENGJI_MASTER_KEYS"
    if not text:
        path = keys_folder(data) / "master.keys"
        source = str(path)
        write_once(path, f"k1:{os.urandom(MASTER_KEY_BYTES).hex()}\n".encode())
        text = path.read_text()
    keys: dict[str, bytes] = {}
    for entry in text.replace(",", "\n").split():
        key_id, _, value = entry.partition(":")
        try:
            key = bytes.fromhex(value)
        except ValueError:
            key = b""
        if not key_id or len(key) != MASTER_KEY_BYTES or key_id in keys:
            raise KeyFileError(f"{source}: every entry is id:hex, the id new, the key 32 bytes")
        keys[key_id] = key
    if not keys:
        raise KeyFileError(f"{source} holds no key")
    return keys


def write_once(path: Path, content: bytes) -> None:
    """Make a file whole and 0600 if there is none; processes that race agree on one of the contents."""
    if path.exists():
        return
    scratch = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    scratch.unlink(missing_ok=True)
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(scratch, path)
    except FileExistsError:
        pass
    finally:
        scratch.unlink()
