"""The judge of groups finds what it is there for, and nothing in a history that is right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import permutations
from math import inf
from random import Random
from typing import Any, TypeAlias
from uuid import UUID

import attrs
import pytest

from rafka.client.assignors import write_assignment
from rafka.client.model import TopicPartition

from .group_history import (
    Beat,
    Change,
    Committed,
    Ending,
    Fetched,
    GroupHistory,
    Joined,
    Left,
    LogEnd,
    Ownership,
    Place,
    Processed,
    Synced,
    Told,
)
from .group_judge import judge_groups

PLACE = Place("orders", 0)
TP = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)


def asked(client: str, begun: float, ended: float, **more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"group": "g", "client": client, "member_id": client, "generation": 1, "code": 0}
    return given | {"begun": begun, "ended": ended} | more


def commit(mark: str, begun: float, ended: float, **more: Any) -> Committed:
    said = asked("ann", begun, ended, **more)
    return Committed(**place_and_offset(1) | said, mark=mark)


def fetch(mark: str, begun: float, ended: float, **more: Any) -> Fetched:
    said = asked("bob", begun, ended, **more)
    return Fetched(**place_and_offset(1 if mark else -1) | said, mark=mark)


def place_and_offset(offset: int) -> dict[str, Any]:
    return {"place": PLACE, "offset": offset}


def right() -> GroupHistory:
    """Two members make a generation and share two partitions; one goes, and the other has both."""
    history = GroupHistory(longest_rebalance=6.0, longest_session=6.0)
    history.changes.append(Change(group="g", at=0, what="ann is born"))
    shares = {"ann": write_assignment([TP]), "bob": write_assignment([OTHER])}
    both = {"bob": write_assignment([TP, OTHER])}
    roll = (("ann", None), ("bob", None))
    history.joins += [
        Joined(**asked("ann", 0, 1), leader="ann", protocol="range", roll=roll),
        Joined(**asked("bob", 0.5, 1), leader="ann", protocol="range"),
        Joined(**asked("bob", 4, 5, generation=2), leader="bob", protocol="range", roll=roll[1:]),
    ]
    history.syncs += [
        Synced(**asked("ann", 1, 1.1), given=shares, assignment=shares["ann"]),
        Synced(**asked("bob", 1, 1.2), assignment=shares["bob"]),
        Synced(**asked("bob", 5, 5.1, generation=2), given=both, assignment=both["bob"]),
    ]
    history.owned += [
        Ownership(group="g", client="ann", instance=None, tp=TP, since=1.1, until=2.9, patience=6),
        Ownership(group="g", client="bob", instance=None, tp=OTHER, since=1.2, until=4, patience=6),
        Ownership(group="g", client="bob", instance=None, tp=TP, since=5.1, until=inf, patience=6),
        Ownership(group="g", client="bob", instance=None, tp=OTHER, since=5.1, until=inf, patience=6),
    ]
    history.processed.append(Processed(group="g", tp=TP, first=0, after=1, at=1.5))
    history.commits += [commit("ann/1", 2, 2.1)]
    history.beats += [Beat(**asked("bob", 2, 2.1)), Beat(**asked("bob", 6, 6.1, generation=2))]
    history.leaves.append(Left(**asked("ann", 2.9, 3)))
    history.fetches += [fetch("", 1.2, 1.3), fetch("ann/1", 5.2, 5.3)]
    history.ends.append(LogEnd(place=PLACE, begun=2, ended=2.1, offset=1))
    history.told.append(Told(group="g", begun=7, ended=7.1, state="Stable", members=("bob",)))
    wanted = frozenset({TP, OTHER})
    history.endings.append(
        Ending(group="g", calm=True, since=6, due_at=8, wanted=wanted, living=frozenset({"bob"}))
    )
    return history


def found(history: GroupHistory) -> set[str]:
    return set(judge_groups(history).anomalies)


def test_a_right_history_has_no_anomalies() -> None:
    verdict = judge_groups(right())

    assert not verdict.anomalies, verdict
    assert verdict.generations == 2


def test_an_answer_that_astonished_somebody_is_told() -> None:
    history = right()
    history.surprises.append("UNKNOWN_SERVER_ERROR for Heartbeat")

    assert found(history) == {"G0"}


@pytest.mark.parametrize(
    ("change", "anomaly"),
    [
        (lambda h: h.fetches.append(fetch("", 6, 6.1)), "G1"),
        (lambda h: h.fetches.append(fetch("nobody/1", 6, 6.1)), "G2"),
        (lambda h: h.fetches.append(fetch("ann/1", 6, 6.1, offset=2)), "G2"),
        (lambda h: h.ends.append(LogEnd(place=PLACE, begun=6, ended=7, offset=0)), "G2"),
        (lambda h: h.commits.append(commit("ann/2", 6, 6.1, generation=1)), "G5"),
        (lambda h: h.commits.append(commit("ann/2", 5.05, 5.08, generation=1)), "G5"),
        (lambda h: h.beats.append(Beat(**asked("bob", 6, 6.1, generation=1))), "G9"),
        (lambda h: h.beats.append(Beat(**asked("bob", 6, 6.1, generation=3))), "G9"),
        (lambda h: h.joins.append(Joined(**asked("eve", 6, 7, generation=2), leader="eve")), "G6"),
        (lambda h: h.joins.append(Joined(**asked("eve", 6, 7, generation=1), leader="ann")), "G6"),
        (lambda h: h.joins.append(Joined(**asked("eve", 4, 5, generation=2), leader="bob")), "G7"),
        (lambda h: h.owned.pop(), "G8"),
        (lambda h: h.joins.append(Joined(**asked("bob", 0, 40, code=None))), "G11"),
        (lambda h: h.joins.append(Joined(**asked("bob", 6, 7, generation=3), leader="bob")), "G11"),
        (lambda h: h.commits.append(commit("bob/1", 6, 6.1, generation=2, offset=9)), "G12"),
        (lambda h: h.told.append(Told(group="g", begun=7, ended=8, state="Stable", members=("ann",))), "G15"),
        (lambda h: h.beats.append(Beat(**asked("ann", 3.1, 3.2))), "G15"),
    ],
)
def test_each_anomaly_is_found(change: Any, anomaly: str) -> None:
    history = right()

    change(history)

    assert anomaly in found(history)


@pytest.mark.parametrize("who", ["eve", "", "ann"])
def test_a_commit_of_somebody_who_is_not_in_the_generation_is_found(who: str) -> None:
    """Ann was in the one before."""
    history = right()
    history.commits.append(commit("eve/1", 6, 6.1, member_id=who, generation=2))
    history.leaves.clear()

    assert found(history) == {"G5"}


def test_a_generation_is_void_in_which_nobody_had_synced_when_the_broker_died() -> None:
    """CG-147: the one before goes on."""
    history = right()
    history.beats.append(Beat(**asked("ann", 5.05, 5.08)))
    history.leaves.clear()
    assert found(history) == {"G9"}

    history.faults.append((5.06, "kill"))
    assert found(history) == set()


def test_a_commit_of_nobody_in_no_generation_is_another_matter() -> None:
    """A group without members takes it from anybody."""
    history = right()
    history.commits.append(commit("eve/1", 6, 6.1, member_id="", generation=-1))

    assert found(history) == set()


# --- rolls -------------------------------------------------------------------------------


def eve(begun: float, ended: float, **more: Any) -> Joined:
    """A join that was not answered."""
    return Joined(**asked("eve", begun, ended, code=None) | more)


def with_eve_on_the_second_roll(instance: str | None = None, member_id: str = "eve") -> GroupHistory:
    history = right()
    history.joins[2] = attrs.evolve(history.joins[2], roll=(("bob", None), (member_id, instance)))
    return history


def test_a_member_that_is_on_the_roll_and_never_joined_is_found() -> None:
    assert found(with_eve_on_the_second_roll()) == {"G7"}


def test_a_static_member_may_be_on_the_roll_without_having_joined() -> None:
    """It is kept until its session ends."""
    assert found(with_eve_on_the_second_roll("i")) == set()


@pytest.mark.parametrize("begun", [-20.0, 3.0])
def test_a_member_that_did_not_hear_that_it_joined_may_be_on_the_roll_that_was_made_next(
    begun: float,
) -> None:
    """The first generation was asked for at 0 s. What was given up long before was over by then."""
    history = with_eve_on_the_second_roll()
    history.joins.append(eve(begun, begun + 1))

    assert found(history) == (set() if begun > 0 else {"G7"})


@pytest.mark.parametrize("client", ["eve", "bob"])
def test_an_id_that_nobody_was_told_of_belongs_to_the_client_that_it_begins_with(client: str) -> None:
    history = with_eve_on_the_second_roll(member_id=f"eve-{UUID(int=7)}")
    history.joins.append(eve(3, 4, client=client, member_id=""))

    assert found(history) == (set() if client == "eve" else {"G7"})


def test_a_member_that_joined_the_generation_before_has_to_join_again() -> None:
    history = right()
    history.joins[2] = attrs.evolve(history.joins[2], roll=(("bob", None), ("ann", None)))
    history.leaves.clear()

    assert found(history) == {"G7"}


# --- answers in time, and no more generations than there are reasons -----------------------


@pytest.mark.parametrize("code", [0, 27, None])
@pytest.mark.parametrize(("took", "late"), [(9.9, False), (10.1, True)])
def test_a_join_is_answered_within_the_rebalance_timeout(code: int | None, took: float, late: bool) -> None:
    history = right()
    said = asked("bob", 4, 4 + took, generation=2, code=code)
    history.joins.append(Joined(**said, leader="bob", protocol="range"))

    assert found(history) == ({"G11"} if late else set())


@pytest.mark.parametrize("code", [0, 27, None])
@pytest.mark.parametrize(("took", "late"), [(3.9, False), (4.1, True)])
def test_a_heartbeat_is_answered_at_once(code: int | None, took: float, late: bool) -> None:
    history = right()
    history.beats.append(Beat(**asked("bob", 5.2, 5.2 + took, generation=2, code=code)))

    assert found(history) == ({"G11"} if late else set())


def test_a_commit_and_a_farewell_are_answered_at_once() -> None:
    slow_commit, slow_farewell = right(), right()
    slow_commit.commits.append(commit("bob/1", 6, 11, member_id="bob", generation=2, code=None))
    slow_farewell.leaves.append(Left(**asked("bob", 6, 11, generation=2, code=None)))

    assert found(slow_commit) == found(slow_farewell) == {"G11"}


def test_nobody_is_answered_while_the_network_is_partitioned() -> None:
    history = right()
    history.faults.append((5, "partition"))
    history.beats.append(Beat(**asked("bob", 5.2, 10, generation=2)))

    assert found(history) == set()


@pytest.mark.parametrize("count", [2, 3])
def test_one_change_accounts_for_two_generations(count: int) -> None:
    """Wherever they are: the first changes were over long before."""
    history = right()
    history.changes.append(Change(group="g", at=100, what="bob lost an answer"))
    history.changes.append(Change(group="other", at=100, what="ann is born"))
    for number in range(3, 3 + count):
        begun = 100.0 + number
        said = asked("bob", begun, begun + 0.5, generation=number)
        history.joins.append(Joined(**said, leader="bob", roll=(("bob", None),)))

    assert found(history) == ({"G11"} if count > 2 else set())


def test_a_generation_without_any_change_is_found() -> None:
    history = right()
    said = asked("bob", 100, 101, generation=3)
    history.joins.append(Joined(**said, leader="bob", roll=(("bob", None),)))

    assert found(history) == {"G11"}


# --- ownership -----------------------------------------------------------------------------


def test_two_members_with_one_partition_are_found() -> None:
    history = right()
    history.syncs[1] = attrs.evolve(history.syncs[1], assignment=write_assignment([TP, OTHER]))

    assert {"G3", "G7"} <= found(history)


def test_taking_over_from_one_within_its_session_is_found() -> None:
    """And from one who has been silent for as long as its session is not."""
    early, late = right(), right()
    for history in (early, late):
        history.owned[0].until = inf
    late.owned[0].patience = 2.0

    assert found(early) == {"G4"}
    assert found(late) == set()


def test_whoever_hears_late_that_it_owns_something_though_it_was_replaced_takes_nothing_over() -> None:
    """The answer to its sync was under way when another came in with its instance id."""

    def static(client: str, begun: float, ended: float) -> Joined:
        return Joined(**asked(client, begun, ended), instance="i", leader="i-old")

    def owns(client: str, since: float) -> Ownership:
        return Ownership(group="g", client=client, instance="i", tp=TP, since=since, until=inf, patience=6.0)

    history = GroupHistory(longest_rebalance=6.0)
    history.joins += [static("i-old", 0, 1), static("i-new", 2, 3)]
    history.owned += [owns("i-new", 3.5), owns("i-old", 4)]
    assert "G4" not in found(history)

    history.joins[1] = attrs.evolve(history.joins[1], instance="another")
    history.owned[0].instance = "another"
    assert "G4" in found(history)


def test_the_older_of_two_with_one_instance_id_is_found_if_it_goes_on() -> None:
    def static(client: str, begun: float, ended: float) -> Joined:
        return Joined(**asked(client, begun, ended), instance="i", leader="i-old")

    history = GroupHistory(longest_rebalance=6.0)
    history.joins += [static("i-old", 0, 1), static("i-new", 2, 3)]
    history.beats.append(Beat(**asked("i-old", 4, 5)))

    assert "G10" in found(history)


def test_an_offset_of_a_deleted_topic_is_found() -> None:
    place = Place("passing", 0, "aa")
    history = GroupHistory(deleted={"aa": 3.0})
    history.commits.append(commit("ann/1", 1, 2, place=place, generation=-1))
    history.fetches.append(fetch("ann/1", 4, 5, place=Place("passing", 0, "bb")))

    assert found(history) == {"G14"}


# --- registers, against an honest search -------------------------------------------------


Register: TypeAlias = Committed | Fetched


def explained(commits: Sequence[Committed], fetches: Sequence[Fetched]) -> bool:
    """Whether some order of everything explains it: all of them are tried."""
    certain = [one for one in commits if one.ok]
    unsure = [one for one in commits if not one.ok]
    for count in range(len(unsure) + 1):
        for some in permutations(unsure, count):
            everything: list[Register] = [*certain, *some, *fetches]
            if any(_fits(order) for order in permutations(everything)):
                return True
    return False


def _fits(order: Iterable[Register]) -> bool:
    value, latest = "", -inf
    for one in order:
        if _end(one) < latest:
            return False  # it was over before something that comes earlier here had begun
        latest = max(latest, one.begun)
        if isinstance(one, Committed):
            value = one.mark
        elif one.mark != value:
            return False
    return True


def _end(one: Register) -> float:
    return one.ended if one.ok else inf


@pytest.mark.parametrize("seed", range(150))
def test_registers_are_judged_as_a_search_of_all_orders_judges_them(seed: int) -> None:
    dice = Random(seed)

    def times() -> tuple[float, float]:
        begun = dice.randrange(20)
        return begun, begun + dice.choice((0.5, 3.5, 9.5))

    marks = [f"ann/{number}" for number in range(dice.randint(1, 3))]
    history = GroupHistory()
    for mark in marks:
        history.commits.append(commit(mark, *times(), code=dice.choice((0, 0, None)), generation=-1))
    for _ in range(dice.randint(1, 3)):
        history.fetches.append(fetch(dice.choice(["", *marks]), *times()))

    judged = {"G1", "G2"} & found(history)

    assert (not judged) == explained(history.commits, history.fetches)
