"""Whole worlds from one seed: storage and broker, network, clients, kills, power losses, and a judge.

* `kit/` makes a world deterministic: the runner, a network, a mortal machine with its disk.
* `history.py` records what clients saw, and finds what must never be seen.
* `clients.py` are producers and consumers that speak Kafka's protocol in real bytes.
* `storage_world.py` and `broker_world.py` put worlds together; the tests run them by seed.
* `group_world.py` puts members of groups into a world: `group_member.py` is one, `group_history.py`
  is what they saw, `group_judge.py` holds it against what a coordinator promises, and `group_bugs.py`
  shows that the judge can see.
* `test_bugs.py` looks after all the bugs that are planted: each still has a place to stand in.
"""
