"""One unambiguous way to join byte strings before they are hashed, used as a key's info or authenticated."""


def frame(*parts: bytes) -> bytes:
    """Every part behind its length as 4 bytes, big-endian: different parts never give equal bytes."""
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def u32(number: int) -> bytes:
    """A number as 4 bytes, big-endian."""
    return number.to_bytes(4, "big")


def u64(number: int) -> bytes:
    """A number as 8 bytes, big-endian."""
    return number.to_bytes(8, "big")
