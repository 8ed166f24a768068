"""DescribeCluster, key 60, versions 0-2.

The cluster's id, its brokers and its controller (KIP-700).

* v1: whether brokers or controllers are meant (KIP-919)
* v2: fenced brokers as well, where asked for (KIP-1073)
"""

from ..api import Api
from ..schema import array, boolean, int8, int16, int32, nullable_string, string, struct

DESCRIBE_CLUSTER = Api(
    key=60,
    name="DescribeCluster",
    versions=range(3),
    flexible=0,
    request=struct(
        boolean("include_cluster_authorized_operations"),
        int8("endpoint_type", since=1, default=1),
        boolean("include_fenced_brokers", since=2),
    ),
    response=struct(
        int32("throttle_time_ms"),
        int16("error_code"),
        nullable_string("error_message"),
        int8("endpoint_type", since=1, default=1),
        string("cluster_id"),
        int32("controller_id", default=-1),
        array(
            "brokers",
            struct(
                int32("broker_id"),
                string("host"),
                int32("port"),
                nullable_string("rack"),
                boolean("is_fenced", since=2),
            ),
        ),
        int32("cluster_authorized_operations", default=-2147483648),
    ),
)
