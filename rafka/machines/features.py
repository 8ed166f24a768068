"""Which levels of the protocol's features are in force: what is supported, and what an administrator chose.

A feature's level tells clients how to behave: with `transaction.version` 2 they end each
transaction with a new epoch, with less they do as they did before. A cluster begins
with the highest levels; UpdateFeatures changes them, all that it names or none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from ..errors import ErrorCode, KafkaError
from ..ops.features import METADATA, SUPPORTED, TRANSACTIONS, Levels
from ..ops.txn import FeatureResult, FeatureUpdate, UpdateFeatures, UpdateFeaturesReply
from .facts import fact

UPGRADE: Final = 1
DOWNGRADES: Final = (2, 3)  # safe and unsafe: nothing is lost here by either
TOLD_OK: Final = "NONE"


@fact("feature-level-set")
class FeatureLevelSet:
    name: str
    level: int
    epoch: int


@attrs.define
class Features:
    """The levels in force."""

    levels: dict[str, int] = attrs.Factory(lambda: dict(Levels().of))
    epoch: int = 0

    def published(self) -> Levels:
        return Levels(self.epoch, tuple(self.levels.items()))

    def update(self, op: UpdateFeatures) -> tuple[list[FeatureLevelSet], UpdateFeaturesReply]:
        """KafkaError, in Kafka's words, where one of the changes cannot be made."""
        levels = dict(self.levels)
        for asked in op.feature_updates:
            if why := self._objection(asked, levels.get(asked.feature, 0)):
                raise KafkaError(
                    ErrorCode.INVALID_UPDATE_VERSION,
                    f"The update failed for all features since the following feature had an error: {why}",
                )
            levels[asked.feature] = asked.max_version_level
        changed = [
            FeatureLevelSet(name, level, self.epoch + 1)
            for name, level in levels.items()
            if level != self.levels[name]
        ]
        results = [
            FeatureResult(feature=asked.feature, error_message=TOLD_OK) for asked in op.feature_updates
        ]
        reply = UpdateFeaturesReply(results=results if op.results_told else ())
        return ([] if op.validate_only else changed), reply

    def _objection(self, asked: FeatureUpdate, now: int) -> str | None:
        name, level = asked.feature, asked.max_version_level
        start = f"Invalid update version {level} for feature {name}. "
        if asked.upgrade_type not in (UPGRADE, *DOWNGRADES):
            return start + "The controller does not support the given upgrade type."
        if name not in SUPPORTED:
            return start + "This broker does not support this feature."
        low, high = SUPPORTED[name]
        if level < 0:
            return start + "A feature version cannot be less than 0."
        if not low <= level <= high:
            return start + f"This broker only supports versions {low}-{high}"
        if level < now and asked.upgrade_type == UPGRADE:
            return (
                start + "Can't downgrade the version of this feature without setting the upgrade type to"
                " either safe or unsafe downgrade."
            )
        if name == METADATA and level != now:
            return f"{METADATA} is what this release of the broker answers as: {now}. It cannot be changed."
        return None

    def apply(self, fact: FeatureLevelSet) -> None:
        low, high = SUPPORTED.get(fact.name, (0, -1))
        if low <= fact.level <= high:  # else it was set by a release that knew more
            self.levels[fact.name] = fact.level
        self.epoch = max(self.epoch, fact.epoch)

    def facts(self) -> Iterator[FeatureLevelSet]:
        """What an administrator chose. The rest goes by the release."""
        chosen = [name for name, level in self.levels.items() if level != SUPPORTED[name][1]]
        if self.epoch:
            for name in chosen or [TRANSACTIONS]:  # one at the least, to keep the epoch
                yield FeatureLevelSet(name, self.levels[name], self.epoch)
