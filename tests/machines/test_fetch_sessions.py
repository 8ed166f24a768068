"""Fetch sessions: one test a rule, and a naive model beside the cache."""

from __future__ import annotations

import pytest

from rafka.errors import ErrorCode
from rafka.machines.fetch_sessions import HIGHEST_ID, IDLE_S, LAST_EPOCH, FetchSessions
from rafka.ops.log import (
    EpochEnd,
    PartitionFetchReply,
)

from .session_kit import THEM, US, A, B, C, Named, ask, cache, opened, refused, result, same, told, wanted

# --- full requests -------------------------------------------------------------------------


def test_without_a_session_all_is_told_and_nothing_kept() -> None:
    sessions = cache()

    asked = sessions.open(ask(0, -1, A, B), US, 0)
    reply = same(asked)

    assert wanted(asked) == told(reply) == [A, B]
    assert reply.session_id == 0
    assert len(sessions) == 0


def test_a_session_is_made_and_told_in_full() -> None:
    """LF-040."""
    sessions = cache()

    asked = sessions.open(ask(0, 0, A, B), US, 0)
    reply = same(asked)

    assert told(reply) == [A, B]
    assert reply.session_id > 0
    assert len(sessions) == 1


def test_a_full_request_of_errors_only_makes_a_session_too() -> None:
    sessions = cache()

    asked = sessions.open(ask(0, 0, A), US, 0)

    assert asked.reply([result(0, code=3)]).session_id > 0


def test_a_full_request_for_nothing_makes_a_session_of_nothing() -> None:
    """As Apache Kafka does: partitions may come later. If none come, S5."""
    sessions = cache()
    first, second = opened(sessions), opened(sessions)

    assert wanted(sessions.open(ask(first, 1, A), US, 0)) == [A]
    assert same(sessions.open(ask(second, 1), US, 0)).session_id == 0
    assert len(sessions) == 1


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_session_is_closed_by_a_full_request_with_its_id(epoch: int) -> None:
    """LF-042: and with epoch 0 another one is made."""
    sessions = cache()
    first = opened(sessions, A)

    reply = same(sessions.open(ask(first, epoch, B), US, 0))

    assert told(reply) == [B]
    assert (reply.session_id == 0) == (epoch == -1)
    assert reply.session_id != first
    assert refused(sessions, ask(first, 1)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("epoch", [0, -1])
def test_closing_what_is_not_there_is_no_error(epoch: int) -> None:
    assert told(same(cache().open(ask(77, epoch, A), US, 0))) == [A]


# --- S: incremental requests ------------------------------------------------------------------


@pytest.mark.parametrize("session_id", [0, -1, 77, HIGHEST_ID])
@pytest.mark.parametrize("epoch", [1, 5, -2])
def test_an_unknown_session_is_told(session_id: int, epoch: int) -> None:
    """S1, LF-041; bad input 71."""
    assert refused(cache(), ask(session_id, epoch)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("session_id", [2147483640, 2**31 - 1])
def test_ids_that_trip_the_original_fail_here_as_well(session_id: int) -> None:
    """S1."""
    assert refused(cache(), ask(session_id, 1)) == ErrorCode.UNKNOWN_SERVER_ERROR


def test_no_session_gets_such_an_id() -> None:
    sessions = FetchSessions(10, lambda: 2**31 - 1)

    assert 0 < opened(sessions, A) <= HIGHEST_ID


def test_an_id_that_is_taken_is_not_given_again() -> None:
    numbers = iter([5, 5, 5, 6])
    sessions = FetchSessions(10, lambda: next(numbers))

    assert opened(sessions, A) != opened(sessions, A)


@pytest.mark.parametrize("epoch", [2, 3, -2, LAST_EPOCH])
def test_a_wrong_epoch_is_refused_and_the_session_lives(epoch: int) -> None:
    """S2, LF-041."""
    sessions = cache()
    session = opened(sessions, A)

    assert refused(sessions, ask(session, epoch)) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert wanted(sessions.open(ask(session, 1), US, 0)) == [A]
    assert refused(sessions, ask(session, 1)) == ErrorCode.INVALID_FETCH_SESSION_EPOCH, "a request come again"


def test_a_session_keeps_to_names_or_to_ids() -> None:
    """S3, LF-045: and lives."""
    sessions = cache()
    session = opened(sessions, A)

    assert refused(sessions, ask(session, 1, by_id=True)) == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert wanted(sessions.open(ask(session, 1), US, 0)) == [A]


def test_a_session_is_changed_by_what_is_asked() -> None:
    """S4, LF-043: added, moved on, forgotten; the order is that of coming in."""
    sessions = cache()
    session = opened(sessions, A, B)

    added = sessions.open(ask(session, 1, C, A, offset=9), US, 0)
    assert wanted(added) == [A, B, C]
    assert [w.asked.fetch_offset for w in added.wanted] == [9, 0, 9]
    forgotten = sessions.open(ask(session, 2, forget=(B, ("nobody", 4))), US, 0)
    assert wanted(forgotten) == [A, C], "forgetting what is not in it is no error: S11"


def test_what_is_added_and_forgotten_at_once_is_forgotten() -> None:
    sessions = cache()
    session = opened(sessions, A)

    assert wanted(sessions.open(ask(session, 1, B, forget=(B,)), US, 0)) == [A]


def test_after_the_greatest_epoch_comes_1() -> None:
    """S4."""
    sessions = cache()
    session = opened(sessions, A)
    sessions._sessions[session].next_epoch = LAST_EPOCH

    sessions.open(ask(session, LAST_EPOCH), US, 0)

    assert wanted(sessions.open(ask(session, 1), US, 0)) == [A]


def test_a_session_over_nothing_is_gone() -> None:
    """S5, LF-044."""
    sessions = cache()
    session = opened(sessions, A)

    reply = same(sessions.open(ask(session, 1, forget=(A,)), US, 0))

    assert (reply.error_code, reply.session_id, reply.responses) == (0, 0, [])
    assert refused(sessions, ask(session, 2)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_only_news_are_told() -> None:
    """S6, LF-040, LF-046."""
    sessions = cache()
    session = opened(sessions, A, B, C)

    def news(epoch: int, *results: PartitionFetchReply) -> list[Named]:
        reply = sessions.open(ask(session, epoch), US, 0).reply(results)
        assert reply.session_id == session
        return told(reply)

    old = [result(0), result(0), result(1)]
    assert news(1, *old) == []
    assert news(2, result(0, hw=6), *old[1:]) == [A], "another high watermark"
    assert news(3, result(0, hw=6), *old[1:]) == []
    assert news(4, result(0, hw=6), result(0, start=2), old[2]) == [B], "another start"
    assert news(5, result(0, hw=6), result(0, start=2), old[2]) == []
    parted = result(1)
    parted.diverging_epoch = EpochEnd(epoch=1, end_offset=2)  # type: ignore[misc]
    assert news(6, result(0, hw=6), result(0, start=2), parted) == [C], "a log that parts from the reader's"


def test_who_was_given_records_goes_to_the_end_of_the_line() -> None:
    """S6, LF-088: so that partitions take turns; not so in the reply that made the session."""
    sessions = cache()
    asked = sessions.open(ask(0, 0, A, B, C), US, 0)
    session = asked.reply([result(0, records=b"x"), result(0), result(1)]).session_id

    first = sessions.open(ask(session, 1), US, 0)
    assert wanted(first) == [A, B, C]
    first.reply([result(0, records=b"x"), result(0), result(1)])
    second = sessions.open(ask(session, 2), US, 0)
    assert wanted(second) == [B, C, A]
    second.reply([result(0), result(1, records=b"x"), result(0)])
    assert wanted(sessions.open(ask(session, 3), US, 0)) == [B, A, C]


def test_records_are_told_again_to_whom_does_not_move_on() -> None:
    """S6."""
    sessions = cache()
    session = opened(sessions, A)

    for epoch in (1, 2):
        assert told(sessions.open(ask(session, epoch), US, 0).reply([result(0, records=b"x")])) == [A]


def test_an_error_is_told_while_it_lasts_and_its_end_once() -> None:
    """S7."""
    sessions = cache()
    session = opened(sessions, A)

    seen = [
        told(sessions.open(ask(session, epoch), US, 0).reply([now]))
        for epoch, now in enumerate(
            [result(0, -1, -1, code=6), result(0, -1, -1, code=6), result(0), result(0)], start=1
        )
    ]

    assert seen == [[A], [A], [A], []]


def test_a_session_that_goes_on_while_a_request_waits_refuses_that_request() -> None:
    """S9: and nothing of it counts as told."""
    sessions = cache()
    session = opened(sessions, A)
    parked = sessions.open(ask(session, 1), US, 0)
    after = sessions.open(ask(session, 2), US, 0)

    late = parked.reply([result(0, hw=9)])
    reply = after.reply([result(0, hw=9)])

    assert (late.error_code, late.session_id, told(late)) == (71, session, [])
    assert told(reply) == [A]


def test_an_unknown_topic_is_asked_for_each_time() -> None:
    """S10, LF-087: so it is served once it is there."""
    sessions = cache()
    asked = sessions.open(ask(0, 0, A), US, 0)
    session = asked.reply([result(0, -1, -1, code=3)]).session_id

    again = sessions.open(ask(session, 1), US, 0)

    assert wanted(again) == [A]
    assert told(again.reply([result(0, records=b"x")])) == [A]


def test_a_session_belongs_to_an_organisation() -> None:
    """S11: to no connection, but to nobody else either."""
    sessions = cache()
    session = opened(sessions, A)

    assert refused(sessions, ask(session, 1), THEM) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    sessions.open(ask(session, -1), THEM, 0)
    assert wanted(sessions.open(ask(session, 1), US, 0)) == [A], "nor can they close it"


def test_partitions_come_under_their_topics() -> None:
    sessions = cache()

    reply = same(sessions.open(ask(0, -1, A, B, C), US, 0))

    assert [(t.topic, len(t.partitions)) for t in reply.responses] == [("a", 1), ("b", 2)]


# --- the cache's bound ---------------------------------------------------------------------------


def test_a_full_cache_makes_no_session_and_answers_all_the_same() -> None:
    sessions = cache(slots=1)
    first = opened(sessions, A)

    reply = same(sessions.open(ask(0, 0, A, B), US, IDLE_S))

    assert reply.session_id == 0
    assert told(reply) == [A, B]
    assert wanted(sessions.open(ask(first, 1), US, 0)) == [A]


def test_no_slots_are_no_sessions() -> None:
    assert opened(cache(slots=0), A) == 0


def test_the_one_idle_longest_makes_room_if_it_has_been_idle_for_long() -> None:
    sessions = cache(slots=2)
    idle, busy = opened(sessions, A), opened(sessions, A)
    sessions.open(ask(busy, 1), US, IDLE_S)

    assert opened(sessions, A, now=IDLE_S + 1) > 0

    assert refused(sessions, ask(idle, 1)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert wanted(sessions.open(ask(busy, 2), US, 0)) == [A]


def test_an_old_one_that_reads_less_makes_room_for_one_that_reads_more() -> None:
    """Though all are in use; and a small one that is young does not stand before an old one."""
    sessions = cache(slots=3)
    old_large, old_small = opened(sessions, A, B, C), opened(sessions, A, B)
    young = opened(sessions, A, now=IDLE_S)
    for session in (old_large, old_small):
        sessions.open(ask(session, 1), US, IDLE_S)

    assert opened(sessions, A, B, now=IDLE_S + 1) == 0, "no more than the smallest reads"
    assert opened(sessions, A, B, C, now=IDLE_S + 1) > 0

    assert refused(sessions, ask(old_small, 2)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert wanted(sessions.open(ask(young, 1), US, 0)) == [A]
