from services.shell.limits import Buckets


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def test_a_bucket_gives_its_burst_and_then_its_rate():
    clock = Clock()
    buckets = Buckets(10, 3, clock=clock)
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 0.1]
    assert buckets.take("b") == 0
    clock.now += 0.05
    assert round(buckets.wait("a"), 6) == 0.05
    clock.now += 0.05
    assert buckets.take("a") == 0
    clock.now += 60
    assert [bool(buckets.take("a")) for _ in range(4)] == [False, False, False, True]


def test_a_refused_call_costs_nothing():
    clock = Clock()
    buckets = Buckets(10, 1, clock=clock)
    buckets.take("a")
    for _ in range(50):
        assert buckets.take("a") > 0
    clock.now += 0.1
    assert buckets.take("a") == 0


def test_rate_zero_limits_nothing_and_memory_is_bounded():
    assert all(Buckets(0, 1).take("a") == 0 for _ in range(5))
    clock = Clock()
    buckets = Buckets(1, 1, callers=4, clock=clock)
    for i in range(50):
        buckets.take(f"{i}")
        assert len(buckets) <= 4
    assert buckets.take("49") > 0
    clock.now += 5
    for i in range(5):
        buckets.take(f"new{i}")
        assert len(buckets) <= 4


def test_what_is_given_back_can_be_taken_again_and_no_more():
    now = [0.0]
    buckets = Buckets(1, 2, clock=lambda: now[0])
    buckets.give_back("a")
    assert [buckets.take("a") for _ in range(3)] == [0, 0, 1]
    buckets.give_back("a")
    assert [buckets.take("a") for _ in range(2)] == [0, 1]
    for _ in range(5):
        buckets.give_back("a")
    assert [buckets.take("a") for _ in range(3)] == [0, 0, 1]
