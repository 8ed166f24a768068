"""DescribeProducers, key 61, version 0.

Which producers have written to a partition of late, and which has a transaction open (KIP-664).
"""

from ..api import Api
from ..schema import INT32, array, int16, int32, int64, nullable_string, string, struct

DESCRIBE_PRODUCERS = Api(
    key=61,
    name="DescribeProducers",
    versions=range(1),
    flexible=0,
    request=struct(array("topics", struct(string("name"), array("partition_indexes", INT32)))),
    response=struct(
        int32("throttle_time_ms"),
        array(
            "topics",
            struct(
                string("name"),
                array(
                    "partitions",
                    struct(
                        int32("partition_index"),
                        int16("error_code"),
                        nullable_string("error_message"),
                        array(
                            "active_producers",
                            struct(
                                int64("producer_id"),
                                int32("producer_epoch"),
                                int32("last_sequence", default=-1),
                                int64("last_timestamp", default=-1),
                                int32("coordinator_epoch"),
                                int64("current_txn_start_offset", default=-1),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    ),
)
