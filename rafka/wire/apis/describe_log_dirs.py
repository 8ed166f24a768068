"""DescribeLogDirs, key 35, versions 1-5.

Where the logs lie and how much room they take (KIP-113).

* v2: flexible
* v3: an error for the answer as a whole
* v4: total and usable bytes (KIP-827)
* v5: whether the directory takes no new logs (KIP-1066)
"""

from ..api import Api
from ..schema import INT32, array, boolean, int16, int32, int64, nullable_array, string, struct

DESCRIBE_LOG_DIRS = Api(
    key=35,
    name="DescribeLogDirs",
    versions=range(1, 6),
    flexible=2,
    request=struct(nullable_array("topics", struct(string("topic"), array("partitions", INT32)), default=())),
    response=struct(
        int32("throttle_time_ms"),
        int16("error_code", since=3),
        array(
            "results",
            struct(
                int16("error_code"),
                string("log_dir"),
                array(
                    "topics",
                    struct(
                        string("name"),
                        array(
                            "partitions",
                            struct(
                                int32("partition_index"),
                                int64("partition_size"),
                                int64("offset_lag"),
                                boolean("is_future_key"),
                            ),
                        ),
                    ),
                ),
                int64("total_bytes", since=4, default=-1),
                int64("usable_bytes", since=4, default=-1),
                boolean("is_cordoned", since=5),
            ),
        ),
    ),
)
