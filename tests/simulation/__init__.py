"""Whole worlds from one seed: storage and broker, network, clients, kills, power losses, and a judge.

* `kit/` makes a world deterministic: the runner, a network, a mortal machine with its disk.
* `history.py` records what clients saw, and finds what must never be seen.
* `clients.py` are producers and consumers that speak Kafka's protocol in real bytes.
* `storage_world.py` and `broker_world.py` put worlds together; the tests run them by seed.
"""
