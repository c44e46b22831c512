"""Who plays with whom, by examples and against an oracle that tries every set of people."""

import math
import random
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.lobby.matching import Sitter, Waiting, match, window

NOW = 1_800_000_000_000
unhurried = settings(deadline=None)


def ticket(
    name, age_s=0.0, rating=1500.0, size=1, *, bots_after_s=0, bots=2, stake=0, operator="", present=True
):
    return Waiting(
        name,
        size,
        operator,
        "classic-2d",
        stake,
        rating,
        NOW - round(age_s * 1000),
        bots_after_s,
        bots,
        present,
    )


def ids(groups):
    return [group.ticket_ids for group in groups]


def at_seats(group):
    return [sitter and sitter.ticket_id for sitter in group.seats]


# ----------------------------------------------------------------------------------------------- examples


@pytest.mark.parametrize(
    ("age_s", "far"), [(-5, 50), (0, 50), (20, 225), (40, 400), (119.9, 400), (120, math.inf)]
)
def test_windows_widen(age_s, far):
    assert window(age_s) == pytest.approx(far)


def test_four_are_needed():
    three = [ticket(name) for name in "abc"]
    assert match(three, NOW) == []
    assert ids(match([*three, ticket("d")], NOW)) == [("a", "b", "c", "d")]


def test_the_oldest_come_first():
    five = [ticket(name, age_s) for name, age_s in zip("abcde", (1, 2, 3, 4, 5), strict=True)]
    assert ids(match(five, NOW)) == [("e", "d", "c", "b")]


def test_both_windows_count():
    old = [ticket(name, 40) for name in "abc"]
    assert match([*old, ticket("young", 0, 1600)], NOW) == []
    assert ids(match([*old, ticket("young", 10, 1600)], NOW)) == [("a", "b", "c", "young")]


def test_after_two_minutes_anybody_will_do_who_waits_as_long():
    waiting = [ticket(name, 120 + n, 3000.0 * n) for n, name in enumerate("abcd")]
    assert ids(match(waiting, NOW)) == [("d", "c", "b", "a")]
    assert match(waiting, NOW - 1000) == []


def test_an_old_ticket_that_fits_nobody_holds_nobody_up():
    waiting = [ticket("lonely", 100, 5000), *(ticket(name, 1) for name in "abcd")]
    assert ids(match(waiting, NOW)) == [("a", "b", "c", "d")]


def test_a_pair_that_does_not_fit_is_left_for_a_single_that_does():
    waiting = [ticket("a", 9), ticket("b", 8), ticket("c", 7), ticket("p", 6, size=2), ticket("d", 5)]
    assert ids(match(waiting, NOW)) == [("a", "b", "c", "d")]
    assert ids(match(waiting[:-1], NOW)) == [("a", "b", "p")]


def test_pairs_sit_opposite():
    (group,) = match([ticket("p", 2, size=2), ticket("q", 1, size=2)], NOW)
    assert group.seats == (Sitter("p", 0), Sitter("q", 0), Sitter("p", 1), Sitter("q", 1))


def test_two_singles_against_a_pair_are_partners():
    (group,) = match([ticket("a", 3), ticket("p", 2, size=2), ticket("b", 1)], NOW)
    assert at_seats(group) == ["a", "p", "b", "p"]


def test_best_and_worst_play_the_two_between():
    ratings = {"a": 1510, "b": 1520, "c": 1540, "d": 1500}
    (group,) = match([ticket(name, ord("z") - ord(name), rating) for name, rating in ratings.items()], NOW)
    assert at_seats(group) == ["a", "c", "b", "d"]


def test_bots_fill_when_everybody_takes_them():
    willing = [ticket("a", 30, bots_after_s=20, bots=1), ticket("b", 25, bots_after_s=20, bots=3)]
    (group,) = match([*willing, ticket("c", 50)], NOW)
    assert group.ticket_ids == ("a", "b")
    assert group.bots == 1
    assert [sitter is None for sitter in group.seats].count(True) == 2
    assert at_seats(group)[2] is None, "each has a bot for a partner"


def test_who_came_later_need_not_wait_as_long_for_bots():
    waiting = [ticket("a", 15, bots_after_s=15), ticket("b", 12, bots_after_s=15), ticket("c", 14)]
    assert ids(match(waiting, NOW)) == [("a", "b")]
    assert match(waiting, NOW - 1) == []


def test_an_older_ticket_whose_wait_for_bots_goes_on_is_left_waiting():
    waiting = [
        ticket("a", 20, bots_after_s=60),
        ticket("b", 15, bots_after_s=15),
        ticket("c", 1, bots_after_s=9),
    ]
    assert ids(match(waiting, NOW)) == [("b", "c")]


def test_people_come_before_bots():
    waiting = [ticket("a", 30, bots_after_s=20), *(ticket(name, 1) for name in "bcd")]
    assert ids(match(waiting, NOW)) == [("a", "b", "c", "d")]


def test_three_with_a_bot_sooner_than_two_who_are_older():
    takes = {"bots_after_s": 10}
    waiting = [
        ticket("a", 25, 1500, **takes),
        ticket("b", 24, 1300, **takes),
        ticket("c", 23, 1600, **takes),
        ticket("d", 22, 1600, **takes),
    ]
    assert ids(match(waiting, NOW)) == [("a", "c", "d"), ("b",)]


def test_whoever_is_away_takes_no_part():
    assert match([ticket(name, present=name != "d") for name in "abcd"], NOW) == []


# --------------------------------------------------------------------------------------------- properties


def anybody(number, pick):
    """One more ticket, most of them in one pool; ``pick`` chooses one of several."""
    near = pick((1000, 1040, 1100, 1300, 1450))
    return ticket(
        f"t{number}",
        pick(range(131)),
        pick((near, pick(range(3001)))),
        pick((1, 1, 2)),
        bots_after_s=pick((0, 0, 10, 60)),
        stake=pick((0, 0, 0, 100)),
        operator=pick(("", "", "", "other")),
        present=pick((True, True, True, True, False)),
    )


@st.composite
def pools(draw, most=9):
    """A few tickets, fewer and plainer ones when something is wrong."""
    return [
        anybody(number, lambda choices: draw(st.sampled_from(choices)))
        for number in range(draw(st.integers(0, most)))
    ]


@st.composite
def crowds(draw, most):
    """Many tickets, quickly made: all of them by one number."""
    chance = random.Random(draw(st.integers(0, 2**32 - 1)))
    return [anybody(number, chance.choice) for number in range(chance.randint(0, most))]


def pool_of(one):
    return one.operator, one.preset, one.stake


def fits(one, other, now_ms):
    return all(
        abs(one.rating - other.rating) <= window((now_ms - each.created_at_ms) / 1000)
        for each in (one, other)
    )


def sets_of(seed, others, people, now_ms):
    """Every set of so many people with the seed that fits together, in no order."""
    for count in range(4):
        for chosen in combinations(others, count):
            group = (seed, *chosen)
            if sum(one.size for one in group) == people and all(
                fits(one, other, now_ms) for one, other in combinations(group, 2)
            ):
                yield group


def bots_are_due(one, now_ms):
    return 0 < one.bots_after_s * 1000 <= now_ms - one.created_at_ms


def oracle(waiting, now_ms):
    """The rule of the module, read literally."""
    made = []
    for pool in sorted({pool_of(one) for one in waiting}):
        left = sorted(
            (one for one in waiting if pool_of(one) == pool and one.present),
            key=lambda one: (one.created_at_ms, one.ticket_id),
        )
        for sizes in ((4,), (3, 2, 1)):
            if sizes != (4,):
                left = [one for one in left if one.bots_after_s]
            for seed in list(left):
                if seed not in left or (sizes != (4,) and not bots_are_due(seed, now_ms)):
                    continue
                others = left[left.index(seed) + 1 :]
                for people in sizes:
                    sets = list(sets_of(seed, others, people, now_ms))
                    if sets:
                        first = min(sets, key=lambda group: [left.index(one) for one in group])
                        made.append(tuple(one.ticket_id for one in first))
                        left = [one for one in left if one not in first]
                        break
    return made


@unhurried
@given(pools(), st.integers(0, 60_000))
def test_groups_are_those_of_the_rule(waiting, later):
    assert ids(match(waiting, NOW + later)) == oracle(waiting, NOW + later)


@unhurried
@given(crowds(most=40), st.randoms(use_true_random=False))
def test_order_makes_no_difference_and_nobody_is_in_two(waiting, rng):
    groups = match(waiting, NOW)
    shuffled = list(waiting)
    rng.shuffle(shuffled)
    assert match(shuffled, NOW) == groups
    used = [ticket_id for group in groups for ticket_id in group.ticket_ids]
    assert len(used) == len(set(used))


@unhurried
@given(crowds(most=40))
def test_every_group_is_whole(waiting):
    by_id = {one.ticket_id: one for one in waiting}
    for group in match(waiting, NOW):
        members = [by_id[ticket_id] for ticket_id in group.ticket_ids]
        people = [Sitter(one.ticket_id, number) for one in members for number in range(one.size)]
        assert sorted(people) == sorted(sitter for sitter in group.seats if sitter)
        assert group.seats[0] == Sitter(members[0].ticket_id, 0)
        assert len({pool_of(one) for one in members}) == 1
        assert all(one.present for one in members)
        assert all(fits(one, other, NOW) for one, other in combinations(members, 2))
        seat_of = {sitter: seat for seat, sitter in enumerate(group.seats) if sitter}
        for one in members:
            if one.size == 2:
                assert (seat_of[Sitter(one.ticket_id, 0)] - seat_of[Sitter(one.ticket_id, 1)]) % 4 == 2
        if None in group.seats:
            assert group.bots == members[0].bots
            assert bots_are_due(members[0], NOW)
            assert all(one.bots_after_s for one in members)


@unhurried
@given(crowds(most=20), st.integers(0, 2000), st.sampled_from((1, 2)))
def test_other_pools_change_nothing(waiting, rating, size):
    stranger = ticket("stranger", 60, rating, size, stake=77, bots_after_s=1)
    groups = match([*waiting, stranger], NOW)
    assert [group for group in groups if group.ticket_ids != ("stranger",)] == match(waiting, NOW)


@unhurried
@given(crowds(most=20), st.integers(0, 300_000))
def test_time_unmatches_nobody(waiting, later):
    by_id = {one.ticket_id: one for one in waiting}
    before = match(waiting, NOW)
    for group in before:
        alone = [by_id[ticket_id] for ticket_id in group.ticket_ids]
        assert ids(match(alone, NOW + later)) == [group.ticket_ids]
    matched_later = {ticket_id for group in match(waiting, NOW + later) for ticket_id in group.ticket_ids}
    for group in before:
        seed = by_id[group.ticket_ids[0]]
        as_old = {
            one.ticket_id
            for one in waiting
            if pool_of(one) == pool_of(seed)
            and (one.created_at_ms, one.ticket_id) <= (seed.created_at_ms, seed.ticket_id)
        }
        assert as_old & matched_later, "the seed still has its companions, unless somebody older has them"


@unhurried
@given(crowds(most=30))
def test_who_takes_bots_never_waits_longer_than_said(waiting):
    matched = {ticket_id for group in match(waiting, NOW) for ticket_id in group.ticket_ids}
    for one in waiting:
        if one.present and bots_are_due(one, NOW):
            assert one.ticket_id in matched


@unhurried
@given(crowds(most=12))
def test_nobody_is_passed_over_for_somebody_younger(waiting):
    """An older ticket that was to be had fits in no younger one's place."""
    by_id = {one.ticket_id: one for one in waiting}
    free = {one.ticket_id for one in waiting if one.present}
    for group in match(waiting, NOW):
        members = [by_id[ticket_id] for ticket_id in group.ticket_ids]
        bots = None in group.seats
        for older in (by_id[ticket_id] for ticket_id in free - set(group.ticket_ids)):
            takes_bots = 0 < older.bots_after_s * 1000 <= NOW - older.created_at_ms
            for place, member in enumerate(members):
                rest = members[:place] + members[place + 1 :]
                if (
                    older.size == member.size
                    and pool_of(older) == pool_of(member)
                    and (older.created_at_ms, older.ticket_id) < (member.created_at_ms, member.ticket_id)
                    and (takes_bots or not bots)
                ):
                    assert not all(fits(older, other, NOW) for other in rest)
        free -= set(group.ticket_ids)
