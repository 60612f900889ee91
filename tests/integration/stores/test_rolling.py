"""Three nodes on one store are restarted one after the other, while clients use all of them."""
import os

from clustered import Cluster, Load

ROUNDS = 2 if "LONG" in os.environ else 1  # LONG: the suite of long tests


def test_a_rolling_restart_loses_nothing_and_charges_no_attempt(tmp_path):
    """MQ-46, SH-F6: clients see 503 with Retry-After at most; no attempt is charged."""
    with Cluster(tmp_path, 3) as cluster:
        cluster.settle()
        load = Load(cluster, 3)
        load.goes_on()
        for _ in range(ROUNDS):
            for node in cluster.nodes:
                node.restart("stop")
                cluster.settle()
                load.goes_on()
        load.stop()
        load.check()
