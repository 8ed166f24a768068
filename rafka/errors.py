"""Kafka's error codes, and the one exception that carries them.

A code knows three things: its number on the wire, whether a client may try the
same request again, and what it means in a sentence. Kafka's names are kept.
"""

from __future__ import annotations

from enum import IntEnum


class ErrorCode(IntEnum):
    """What went wrong, as the wire says it."""

    retriable: bool
    meaning: str

    def __new__(cls, number: int, retriable: bool, meaning: str) -> ErrorCode:
        code = int.__new__(cls, number)
        code._value_ = number
        code.retriable = retriable
        code.meaning = meaning
        return code

    UNKNOWN_SERVER_ERROR = -1, False, "the broker failed in a way it did not foresee"
    NONE = 0, False, "no error"
    OFFSET_OUT_OF_RANGE = 1, False, "the offset is outside the log"
    CORRUPT_MESSAGE = 2, True, "the batch is damaged: its checksum or its length is wrong"
    UNKNOWN_TOPIC_OR_PARTITION = 3, True, "no such topic or partition here"
    INVALID_FETCH_SIZE = 4, False, "the fetch size is invalid"
    LEADER_NOT_AVAILABLE = 5, True, "the partition has no leader at the moment"
    NOT_LEADER_OR_FOLLOWER = 6, True, "this broker does not lead the partition"
    REQUEST_TIMED_OUT = 7, True, "the work was not done in the time allowed"
    BROKER_NOT_AVAILABLE = 8, False, "the broker is not available"
    REPLICA_NOT_AVAILABLE = 9, True, "the replica is not available"
    MESSAGE_TOO_LARGE = 10, False, "the batch is larger than the topic allows"
    STALE_CONTROLLER_EPOCH = 11, False, "the controller epoch is old"
    OFFSET_METADATA_TOO_LARGE = 12, False, "the metadata of a committed offset is too long"
    NETWORK_EXCEPTION = 13, True, "the connection broke before the answer"
    COORDINATOR_LOAD_IN_PROGRESS = 14, True, "the coordinator is still loading"
    COORDINATOR_NOT_AVAILABLE = 15, True, "the coordinator is not available"
    NOT_COORDINATOR = 16, True, "this broker is not the coordinator"
    INVALID_TOPIC_EXCEPTION = 17, False, "the name is not one a topic may have, or not for clients to use"
    RECORD_LIST_TOO_LARGE = 18, False, "the batch is larger than a segment"
    NOT_ENOUGH_REPLICAS = 19, True, "too few replicas are in sync to take the write"
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, True, "the write was taken, then too few replicas were in sync"
    INVALID_REQUIRED_ACKS = 21, False, "acks must be -1, 0 or 1"
    ILLEGAL_GENERATION = 22, False, "the generation is not the group's current one"
    INCONSISTENT_GROUP_PROTOCOL = 23, False, "the member's protocols do not fit the group's"
    INVALID_GROUP_ID = 24, False, "the group id is invalid"
    UNKNOWN_MEMBER_ID = 25, False, "the group does not know this member"
    INVALID_SESSION_TIMEOUT = 26, False, "the session timeout is outside the broker's bounds"
    REBALANCE_IN_PROGRESS = 27, False, "the group is rebalancing: join again"
    INVALID_COMMIT_OFFSET_SIZE = 28, False, "the committed offsets are too large to be stored"
    TOPIC_AUTHORIZATION_FAILED = 29, False, "not authorised for the topic"
    GROUP_AUTHORIZATION_FAILED = 30, False, "not authorised for the group"
    CLUSTER_AUTHORIZATION_FAILED = 31, False, "not authorised for the cluster"
    INVALID_TIMESTAMP = (
        32,
        False,
        "a timestamp is out of bounds, or its type is the broker's to set",
    )
    UNSUPPORTED_SASL_MECHANISM = 33, False, "the broker does not offer this SASL mechanism"
    ILLEGAL_SASL_STATE = 34, False, "the SASL request does not fit the state of the connection"
    UNSUPPORTED_VERSION = 35, False, "the version is not supported"
    TOPIC_ALREADY_EXISTS = 36, False, "a topic of that name exists"
    INVALID_PARTITIONS = 37, False, "the number of partitions is invalid"
    INVALID_REPLICATION_FACTOR = 38, False, "the replication factor is invalid or more than there are brokers"
    INVALID_REPLICA_ASSIGNMENT = 39, False, "the replica assignment is invalid"
    INVALID_CONFIG = 40, False, "a configuration name or value is invalid"
    NOT_CONTROLLER = 41, True, "this broker is not the controller"
    INVALID_REQUEST = 42, False, "the request contradicts itself or the protocol"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, False, "the message format does not support the request"
    POLICY_VIOLATION = 44, False, "the request is against a policy of the broker"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, False, "the producer's sequence number does not follow the last one"
    DUPLICATE_SEQUENCE_NUMBER = 46, False, "the producer's sequence number was used before"
    INVALID_PRODUCER_EPOCH = 47, False, "the producer's epoch is old"
    INVALID_TXN_STATE = 48, False, "the transaction is not in a state for this"
    INVALID_PRODUCER_ID_MAPPING = 49, False, "the producer id does not belong to the transactional id"
    INVALID_TRANSACTION_TIMEOUT = 50, False, "the transaction timeout is outside the broker's bounds"
    CONCURRENT_TRANSACTIONS = 51, True, "another operation on the transaction is still under way"
    TRANSACTION_COORDINATOR_FENCED = 52, False, "the transaction coordinator was replaced by another"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, False, "not authorised for the transactional id"
    SECURITY_DISABLED = 54, False, "security is switched off"
    OPERATION_NOT_ATTEMPTED = 55, False, "not attempted, because something else in the request failed"
    KAFKA_STORAGE_ERROR = 56, True, "the broker cannot read or write its storage"
    LOG_DIR_NOT_FOUND = 57, False, "no such log directory"
    SASL_AUTHENTICATION_FAILED = 58, False, "authentication failed"
    UNKNOWN_PRODUCER_ID = 59, False, "the broker knows nothing of this producer id"
    REASSIGNMENT_IN_PROGRESS = 60, False, "a reassignment of the partition is under way"
    DELEGATION_TOKEN_AUTH_DISABLED = 61, False, "delegation tokens are switched off"
    DELEGATION_TOKEN_NOT_FOUND = 62, False, "no such delegation token"
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, False, "the delegation token belongs to somebody else"
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = (
        64,
        False,
        "this connection may not ask for delegation tokens",
    )
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, False, "not authorised for the delegation token"
    DELEGATION_TOKEN_EXPIRED = 66, False, "the delegation token has expired"
    INVALID_PRINCIPAL_TYPE = 67, False, "the type of principal is not supported"
    NON_EMPTY_GROUP = 68, False, "the group still has members"
    GROUP_ID_NOT_FOUND = 69, False, "no such group"
    FETCH_SESSION_ID_NOT_FOUND = 70, True, "no such fetch session"
    INVALID_FETCH_SESSION_EPOCH = 71, True, "the epoch of the fetch session is not the one expected"
    LISTENER_NOT_FOUND = 72, True, "the broker has no listener of that name"
    TOPIC_DELETION_DISABLED = 73, False, "deleting topics is switched off"
    FENCED_LEADER_EPOCH = 74, True, "the client's leader epoch is older than the broker's"
    UNKNOWN_LEADER_EPOCH = 75, True, "the client's leader epoch is newer than the broker's"
    UNSUPPORTED_COMPRESSION_TYPE = 76, False, "the compression type is not supported here"
    STALE_BROKER_EPOCH = 77, False, "the broker epoch is old"
    OFFSET_NOT_AVAILABLE = 78, True, "the leader cannot tell the offset yet"
    MEMBER_ID_REQUIRED = 79, False, "join again with the member id that was given"
    PREFERRED_LEADER_NOT_AVAILABLE = 80, True, "the preferred leader is not available"
    GROUP_MAX_SIZE_REACHED = 81, False, "the group is full"
    FENCED_INSTANCE_ID = 82, False, "another member has taken over this instance id"
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, True, "no eligible leader is available"
    ELECTION_NOT_NEEDED = 84, True, "the partition has its leader: nothing to elect"
    NO_REASSIGNMENT_IN_PROGRESS = 85, False, "no reassignment of the partition is under way"
    GROUP_SUBSCRIBED_TO_TOPIC = 86, False, "the group is subscribed to the topic"
    INVALID_RECORD = 87, False, "a record or batch is not as the broker requires"
    UNSTABLE_OFFSET_COMMIT = 88, True, "an offset of the group is still part of an open transaction"
    THROTTLING_QUOTA_EXCEEDED = 89, True, "the quota is used up"
    PRODUCER_FENCED = 90, False, "a newer producer with the same transactional id is at work"
    RESOURCE_NOT_FOUND = 91, False, "no such resource"
    DUPLICATE_RESOURCE = 92, False, "the resource exists"
    UNACCEPTABLE_CREDENTIAL = 93, False, "the credential is not acceptable"
    INCONSISTENT_VOTER_SET = 94, False, "the sets of voters differ"
    INVALID_UPDATE_VERSION = 95, False, "the feature version is invalid"
    FEATURE_UPDATE_FAILED = 96, False, "the feature could not be updated"
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, False, "the principal cannot be read"
    SNAPSHOT_NOT_FOUND = 98, False, "no such snapshot"
    POSITION_OUT_OF_RANGE = 99, False, "the position is outside the snapshot"
    UNKNOWN_TOPIC_ID = 100, True, "no topic has this id"
    DUPLICATE_BROKER_REGISTRATION = 101, False, "a broker of this id is registered"
    BROKER_ID_NOT_REGISTERED = 102, False, "no broker of this id is registered"
    INCONSISTENT_TOPIC_ID = 103, True, "the topic id is not that of the log"
    INCONSISTENT_CLUSTER_ID = 104, False, "the cluster id is another"
    TRANSACTIONAL_ID_NOT_FOUND = 105, False, "no such transactional id"
    FETCH_SESSION_TOPIC_ID_ERROR = 106, True, "the fetch session names topics in another way than the request"
    INELIGIBLE_REPLICA = 107, False, "the replica is not eligible"
    NEW_LEADER_ELECTED = 108, False, "a new leader was elected"
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, False, "the offset lies in tiered storage"
    FENCED_MEMBER_EPOCH = 110, False, "the member epoch is fenced: leave and join again"
    UNRELEASED_INSTANCE_ID = 111, False, "the instance id is still in use"
    UNSUPPORTED_ASSIGNOR = 112, False, "the assignor is not supported"
    STALE_MEMBER_EPOCH = 113, False, "the member epoch is old"
    MISMATCHED_ENDPOINT_TYPE = 114, False, "the request is for another type of endpoint"
    UNSUPPORTED_ENDPOINT_TYPE = 115, False, "no such type of endpoint"
    UNKNOWN_CONTROLLER_ID = 116, False, "the controller id is not known"
    UNKNOWN_SUBSCRIPTION_ID = 117, False, "the telemetry subscription is not known"
    TELEMETRY_TOO_LARGE = 118, False, "the telemetry is too large"
    INVALID_REGISTRATION = 119, False, "the registration is invalid"
    TRANSACTION_ABORTABLE = 120, False, "the transaction met an error: abort it"
    INVALID_RECORD_STATE = 121, False, "the record is not in a state for this acknowledgement"
    SHARE_SESSION_NOT_FOUND = 122, True, "no such share session"
    INVALID_SHARE_SESSION_EPOCH = 123, True, "the epoch of the share session is not the one expected"
    FENCED_STATE_EPOCH = 124, False, "the share coordinator knows a newer epoch"
    INVALID_VOTER_KEY = 125, False, "the voter's key is another"
    DUPLICATE_VOTER = 126, False, "the voter is in the set"
    VOTER_NOT_FOUND = 127, False, "the voter is not in the set"
    INVALID_REGULAR_EXPRESSION = 128, False, "the regular expression is invalid"
    REBOOTSTRAP_REQUIRED = 129, False, "the client should bootstrap anew"
    STREAMS_INVALID_TOPOLOGY = 130, False, "the topology is invalid"
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, False, "the epoch of the topology is invalid"
    STREAMS_TOPOLOGY_FENCED = 132, False, "the topology is older than the group's"
    SHARE_SESSION_LIMIT_REACHED = 133, True, "no more share sessions may be opened"


class KafkaError(Exception):
    """Refuses an op. Whoever answers turns it into a reply, once, in `refusal`."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(f"{code.name}: {message or code.meaning}")
        self.code = code
        self.message = message
