import hashlib
import hmac

from services.game.entropy import SeededEntropy, SystemEntropy


def test_system_entropy_never_repeats():
    entropy = SystemEntropy()
    assert entropy.for_commit("tbl", 1) is entropy
    assert len({entropy.bytes(16) for _ in range(100)}) == 100


def test_a_seeded_stream_depends_on_seed_and_scope_alone():
    def draw(seed, table_id, version):
        return SeededEntropy(seed).for_commit(table_id, version).bytes(40)

    first = draw("seed", "a", 1)
    used = SeededEntropy("seed")
    used.bytes(1000)
    assert used.for_commit("a", 1).bytes(40) == first
    others = [
        draw("seed", "a", 2),
        draw("seed", "b", 1),
        draw("Seed", "a", 1),
        SeededEntropy("seed").bytes(40),
    ]
    assert len({first, *others}) == 5


def test_a_stream_is_the_same_however_it_is_cut():
    whole = SeededEntropy("x").bytes(100)
    stream = SeededEntropy("x")
    assert b"".join(stream.bytes(n) for n in (0, 1, 31, 32, 33, 3)) == whole


def test_a_stream_is_what_the_docstring_says():
    key = hashlib.sha256(b"x").digest()
    label = b"\0\0\0\x19shengji seeded entropy v1"
    blocks = [hmac.digest(key, label + i.to_bytes(8, "big"), "sha256") for i in range(2)]
    assert SeededEntropy("x").bytes(64) == b"".join(blocks)
