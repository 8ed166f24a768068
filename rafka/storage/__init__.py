"""Where batches are kept: logs, and the journal of facts that is one of them.

`backend` says what a log is and which promises it keeps; `memory` and `embedded` keep
them. `policy`, `epochs` and `times` are the rules both share. Over a log of either kind
work `journal` and `compaction`. Nothing here knows topics, clients or the wire.
"""
