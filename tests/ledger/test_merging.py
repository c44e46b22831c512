"""Streams merged by the time of recording, as far as the next message of each is known."""

from hypothesis import given
from hypothesis import strategies as st

from services.ledger.folding import Entry
from services.ledger.merging import Merge
from services.pb.log.v1.log_pb2 import Commit

LATEST = (1 << 63) - 1


def entries(stream, times):
    return [Entry(stream, at, "", b"", Commit(recorded_at_us=at_us), ()) for at, at_us in enumerate(times, 1)]


def places(taken):
    return [(entry.at_us, entry.stream, entry.sequence) for entry in taken]


@given(
    st.lists(st.lists(st.integers(0, 9) | st.just(LATEST)).map(sorted), min_size=1, max_size=4),
    st.lists(st.integers(1, 7)),
)
def test_messages_come_in_the_order_of_their_recording(streams, portions):
    merge = Merge(len(streams))
    for number, times in enumerate(streams):
        merge.add(number, entries(number, times), ended=True)
    taken = [entry for most in [*portions, 1000] for entry in merge.take(most)]
    everything = [entry for number, times in enumerate(streams) for entry in entries(number, times)]
    assert places(taken) == sorted(places(everything))
    assert merge.ended()


@given(st.lists(st.integers(0, 9)).map(sorted), st.lists(st.integers(0, 9), min_size=1).map(sorted))
def test_nothing_is_taken_that_a_stream_which_goes_on_might_come_before(ended, going_on):
    merge = Merge(2)
    merge.add(0, entries(0, ended), ended=True)
    merge.add(1, entries(1, going_on), ended=False)
    taken = merge.take(1000)
    assert [entry for entry in taken if entry.stream == 1] == entries(1, going_on)
    assert [entry.at_us for entry in taken if entry.stream == 0] == [at for at in ended if at <= going_on[-1]]
    assert merge.take(1000) == []
    assert not merge.ended()
    merge.add(1, [], ended=True)
    assert len(merge.take(1000)) == len(ended) + len(going_on) - len(taken)
    assert merge.ended()
