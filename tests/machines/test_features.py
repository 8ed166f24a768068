"""Levels of features: what may be set, by whom understood, and that all or nothing changes."""

from __future__ import annotations

import pytest

from rafka.errors import ErrorCode, KafkaError
from rafka.machines.features import DOWNGRADES, UPGRADE, Features
from rafka.ops.features import SUPPORTED, TRANSACTIONS
from rafka.ops.txn import FeatureUpdate, UpdateFeatures, UpdateFeaturesReply


def update(
    features: Features, *asked: tuple[str, int, int], validate_only: bool = False, results_told: bool = True
) -> UpdateFeaturesReply:
    op = UpdateFeatures(
        feature_updates=[
            FeatureUpdate(feature=name, max_version_level=level, upgrade_type=kind)
            for name, level, kind in asked
        ],
        validate_only=validate_only,
        results_told=results_told,
    )
    facts, reply = features.update(op)
    for fact in facts:
        features.apply(fact)
    return reply


def test_a_cluster_begins_with_the_highest_levels() -> None:
    assert Features().levels == {name: high for name, (_, high) in SUPPORTED.items()}


def test_a_level_can_be_lowered_and_raised_again() -> None:
    features = Features()

    update(features, (TRANSACTIONS, 0, DOWNGRADES[0]))
    lowered, epoch = features.levels[TRANSACTIONS], features.epoch
    reply = update(features, (TRANSACTIONS, 2, UPGRADE))

    assert (lowered, features.levels[TRANSACTIONS]) == (0, 2)
    assert 0 < epoch < features.epoch
    assert [(result.feature, result.error_message) for result in reply.results] == [(TRANSACTIONS, "NONE")]


@pytest.mark.parametrize(
    ("name", "level", "kind"),
    [
        ("nope", 1, UPGRADE),
        ("", 1, UPGRADE),
        (TRANSACTIONS, 1, UPGRADE),
        (TRANSACTIONS, 3, UPGRADE),
        (TRANSACTIONS, -1, DOWNGRADES[0]),
        (TRANSACTIONS, 1, 0),
        (TRANSACTIONS, 1, 9),
        ("metadata.version", 29, DOWNGRADES[1]),
        ("metadata.version", 6, DOWNGRADES[0]),
    ],
)
def test_what_cannot_be_set_is_refused_and_nothing_else_of_the_request_is_set(
    name: str, level: int, kind: int
) -> None:
    features = Features()

    with pytest.raises(KafkaError) as refused:
        update(features, ("eligible.leader.replicas.version", 0, DOWNGRADES[0]), (name, level, kind))

    assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION
    assert features.levels == Features().levels


def test_a_dry_run_changes_nothing() -> None:
    features = Features()

    update(features, (TRANSACTIONS, 1, DOWNGRADES[0]), validate_only=True)

    assert features.levels[TRANSACTIONS] == 2


def test_what_was_chosen_and_how_often_outlives_a_restart() -> None:
    features, after = Features(), Features()
    update(features, (TRANSACTIONS, 0, DOWNGRADES[0]))
    update(features, (TRANSACTIONS, 2, UPGRADE))

    for fact in features.facts():
        after.apply(fact)

    assert (after.levels, after.epoch) == (features.levels, features.epoch)
