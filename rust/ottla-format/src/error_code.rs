//! The error codes of Kafka's protocol: one table, from which every other list of them comes.

/// What a client does with a request that was answered with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// Reports it: the same request would fail again.
    Never,
    /// Sends the same request again.
    Same,
    /// Refreshes its metadata, then sends the request again.
    Refresh,
}

macro_rules! error_codes {
    ($($name:ident = $code:literal, $kafka:literal, $retry:ident;)+) => {
        /// An error code of Kafka's protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(i16)]
        #[allow(missing_docs, reason = "Kafka's own names")]
        pub enum ErrorCode {
            $($name = $code,)+
        }

        impl ErrorCode {
            /// Every code, ascending.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Kafka's name, such as `INVALID_RECORD`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $kafka),+ }
            }

            /// What a client does about it, by the class of the exception in Kafka's own client.
            pub fn retry(self) -> Retry {
                match self { $(Self::$name => Retry::$retry),+ }
            }
        }
    };
}

error_codes! {
    UnknownServerError = -1, "UNKNOWN_SERVER_ERROR", Never;
    None = 0, "NONE", Never;
    OffsetOutOfRange = 1, "OFFSET_OUT_OF_RANGE", Never;
    CorruptMessage = 2, "CORRUPT_MESSAGE", Same;
    UnknownTopicOrPartition = 3, "UNKNOWN_TOPIC_OR_PARTITION", Refresh;
    InvalidFetchSize = 4, "INVALID_FETCH_SIZE", Never;
    LeaderNotAvailable = 5, "LEADER_NOT_AVAILABLE", Refresh;
    NotLeaderOrFollower = 6, "NOT_LEADER_OR_FOLLOWER", Refresh;
    RequestTimedOut = 7, "REQUEST_TIMED_OUT", Same;
    BrokerNotAvailable = 8, "BROKER_NOT_AVAILABLE", Never;
    ReplicaNotAvailable = 9, "REPLICA_NOT_AVAILABLE", Refresh;
    MessageTooLarge = 10, "MESSAGE_TOO_LARGE", Never;
    StaleControllerEpoch = 11, "STALE_CONTROLLER_EPOCH", Never;
    OffsetMetadataTooLarge = 12, "OFFSET_METADATA_TOO_LARGE", Never;
    NetworkException = 13, "NETWORK_EXCEPTION", Refresh;
    CoordinatorLoadInProgress = 14, "COORDINATOR_LOAD_IN_PROGRESS", Same;
    CoordinatorNotAvailable = 15, "COORDINATOR_NOT_AVAILABLE", Same;
    NotCoordinator = 16, "NOT_COORDINATOR", Same;
    InvalidTopicException = 17, "INVALID_TOPIC_EXCEPTION", Never;
    RecordListTooLarge = 18, "RECORD_LIST_TOO_LARGE", Never;
    NotEnoughReplicas = 19, "NOT_ENOUGH_REPLICAS", Same;
    NotEnoughReplicasAfterAppend = 20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", Same;
    InvalidRequiredAcks = 21, "INVALID_REQUIRED_ACKS", Never;
    IllegalGeneration = 22, "ILLEGAL_GENERATION", Never;
    InconsistentGroupProtocol = 23, "INCONSISTENT_GROUP_PROTOCOL", Never;
    InvalidGroupId = 24, "INVALID_GROUP_ID", Never;
    UnknownMemberId = 25, "UNKNOWN_MEMBER_ID", Never;
    InvalidSessionTimeout = 26, "INVALID_SESSION_TIMEOUT", Never;
    RebalanceInProgress = 27, "REBALANCE_IN_PROGRESS", Never;
    InvalidCommitOffsetSize = 28, "INVALID_COMMIT_OFFSET_SIZE", Never;
    TopicAuthorizationFailed = 29, "TOPIC_AUTHORIZATION_FAILED", Never;
    GroupAuthorizationFailed = 30, "GROUP_AUTHORIZATION_FAILED", Never;
    ClusterAuthorizationFailed = 31, "CLUSTER_AUTHORIZATION_FAILED", Never;
    InvalidTimestamp = 32, "INVALID_TIMESTAMP", Never;
    UnsupportedSaslMechanism = 33, "UNSUPPORTED_SASL_MECHANISM", Never;
    IllegalSaslState = 34, "ILLEGAL_SASL_STATE", Never;
    UnsupportedVersion = 35, "UNSUPPORTED_VERSION", Never;
    TopicAlreadyExists = 36, "TOPIC_ALREADY_EXISTS", Never;
    InvalidPartitions = 37, "INVALID_PARTITIONS", Never;
    InvalidReplicationFactor = 38, "INVALID_REPLICATION_FACTOR", Never;
    InvalidReplicaAssignment = 39, "INVALID_REPLICA_ASSIGNMENT", Never;
    InvalidConfig = 40, "INVALID_CONFIG", Never;
    NotController = 41, "NOT_CONTROLLER", Same;
    InvalidRequest = 42, "INVALID_REQUEST", Never;
    UnsupportedForMessageFormat = 43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", Never;
    PolicyViolation = 44, "POLICY_VIOLATION", Never;
    OutOfOrderSequenceNumber = 45, "OUT_OF_ORDER_SEQUENCE_NUMBER", Never;
    DuplicateSequenceNumber = 46, "DUPLICATE_SEQUENCE_NUMBER", Never;
    InvalidProducerEpoch = 47, "INVALID_PRODUCER_EPOCH", Never;
    InvalidTxnState = 48, "INVALID_TXN_STATE", Never;
    InvalidProducerIdMapping = 49, "INVALID_PRODUCER_ID_MAPPING", Never;
    InvalidTransactionTimeout = 50, "INVALID_TRANSACTION_TIMEOUT", Never;
    ConcurrentTransactions = 51, "CONCURRENT_TRANSACTIONS", Same;
    TransactionCoordinatorFenced = 52, "TRANSACTION_COORDINATOR_FENCED", Never;
    TransactionalIdAuthorizationFailed = 53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", Never;
    SecurityDisabled = 54, "SECURITY_DISABLED", Never;
    OperationNotAttempted = 55, "OPERATION_NOT_ATTEMPTED", Never;
    KafkaStorageError = 56, "KAFKA_STORAGE_ERROR", Refresh;
    LogDirNotFound = 57, "LOG_DIR_NOT_FOUND", Never;
    SaslAuthenticationFailed = 58, "SASL_AUTHENTICATION_FAILED", Never;
    UnknownProducerId = 59, "UNKNOWN_PRODUCER_ID", Never;
    ReassignmentInProgress = 60, "REASSIGNMENT_IN_PROGRESS", Never;
    DelegationTokenAuthDisabled = 61, "DELEGATION_TOKEN_AUTH_DISABLED", Never;
    DelegationTokenNotFound = 62, "DELEGATION_TOKEN_NOT_FOUND", Never;
    DelegationTokenOwnerMismatch = 63, "DELEGATION_TOKEN_OWNER_MISMATCH", Never;
    DelegationTokenRequestNotAllowed = 64, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", Never;
    DelegationTokenAuthorizationFailed = 65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", Never;
    DelegationTokenExpired = 66, "DELEGATION_TOKEN_EXPIRED", Never;
    InvalidPrincipalType = 67, "INVALID_PRINCIPAL_TYPE", Never;
    NonEmptyGroup = 68, "NON_EMPTY_GROUP", Never;
    GroupIdNotFound = 69, "GROUP_ID_NOT_FOUND", Never;
    FetchSessionIdNotFound = 70, "FETCH_SESSION_ID_NOT_FOUND", Same;
    InvalidFetchSessionEpoch = 71, "INVALID_FETCH_SESSION_EPOCH", Same;
    ListenerNotFound = 72, "LISTENER_NOT_FOUND", Refresh;
    TopicDeletionDisabled = 73, "TOPIC_DELETION_DISABLED", Never;
    FencedLeaderEpoch = 74, "FENCED_LEADER_EPOCH", Refresh;
    UnknownLeaderEpoch = 75, "UNKNOWN_LEADER_EPOCH", Same;
    UnsupportedCompressionType = 76, "UNSUPPORTED_COMPRESSION_TYPE", Never;
    StaleBrokerEpoch = 77, "STALE_BROKER_EPOCH", Never;
    OffsetNotAvailable = 78, "OFFSET_NOT_AVAILABLE", Same;
    MemberIdRequired = 79, "MEMBER_ID_REQUIRED", Never;
    PreferredLeaderNotAvailable = 80, "PREFERRED_LEADER_NOT_AVAILABLE", Refresh;
    GroupMaxSizeReached = 81, "GROUP_MAX_SIZE_REACHED", Never;
    FencedInstanceId = 82, "FENCED_INSTANCE_ID", Never;
    EligibleLeadersNotAvailable = 83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", Refresh;
    ElectionNotNeeded = 84, "ELECTION_NOT_NEEDED", Refresh;
    NoReassignmentInProgress = 85, "NO_REASSIGNMENT_IN_PROGRESS", Never;
    GroupSubscribedToTopic = 86, "GROUP_SUBSCRIBED_TO_TOPIC", Never;
    InvalidRecord = 87, "INVALID_RECORD", Never;
    UnstableOffsetCommit = 88, "UNSTABLE_OFFSET_COMMIT", Same;
    ThrottlingQuotaExceeded = 89, "THROTTLING_QUOTA_EXCEEDED", Same;
    ProducerFenced = 90, "PRODUCER_FENCED", Never;
    ResourceNotFound = 91, "RESOURCE_NOT_FOUND", Never;
    DuplicateResource = 92, "DUPLICATE_RESOURCE", Never;
    UnacceptableCredential = 93, "UNACCEPTABLE_CREDENTIAL", Never;
    InconsistentVoterSet = 94, "INCONSISTENT_VOTER_SET", Never;
    InvalidUpdateVersion = 95, "INVALID_UPDATE_VERSION", Never;
    FeatureUpdateFailed = 96, "FEATURE_UPDATE_FAILED", Never;
    PrincipalDeserializationFailure = 97, "PRINCIPAL_DESERIALIZATION_FAILURE", Never;
    SnapshotNotFound = 98, "SNAPSHOT_NOT_FOUND", Never;
    PositionOutOfRange = 99, "POSITION_OUT_OF_RANGE", Never;
    UnknownTopicId = 100, "UNKNOWN_TOPIC_ID", Refresh;
    DuplicateBrokerRegistration = 101, "DUPLICATE_BROKER_REGISTRATION", Never;
    BrokerIdNotRegistered = 102, "BROKER_ID_NOT_REGISTERED", Never;
    InconsistentTopicId = 103, "INCONSISTENT_TOPIC_ID", Refresh;
    InconsistentClusterId = 104, "INCONSISTENT_CLUSTER_ID", Never;
    TransactionalIdNotFound = 105, "TRANSACTIONAL_ID_NOT_FOUND", Never;
    FetchSessionTopicIdError = 106, "FETCH_SESSION_TOPIC_ID_ERROR", Same;
    IneligibleReplica = 107, "INELIGIBLE_REPLICA", Never;
    NewLeaderElected = 108, "NEW_LEADER_ELECTED", Never;
    OffsetMovedToTieredStorage = 109, "OFFSET_MOVED_TO_TIERED_STORAGE", Never;
    FencedMemberEpoch = 110, "FENCED_MEMBER_EPOCH", Never;
    UnreleasedInstanceId = 111, "UNRELEASED_INSTANCE_ID", Never;
    UnsupportedAssignor = 112, "UNSUPPORTED_ASSIGNOR", Never;
    StaleMemberEpoch = 113, "STALE_MEMBER_EPOCH", Never;
    MismatchedEndpointType = 114, "MISMATCHED_ENDPOINT_TYPE", Never;
    UnsupportedEndpointType = 115, "UNSUPPORTED_ENDPOINT_TYPE", Never;
    UnknownControllerId = 116, "UNKNOWN_CONTROLLER_ID", Never;
    UnknownSubscriptionId = 117, "UNKNOWN_SUBSCRIPTION_ID", Never;
    TelemetryTooLarge = 118, "TELEMETRY_TOO_LARGE", Never;
    InvalidRegistration = 119, "INVALID_REGISTRATION", Never;
    TransactionAbortable = 120, "TRANSACTION_ABORTABLE", Never;
    InvalidRecordState = 121, "INVALID_RECORD_STATE", Never;
    ShareSessionNotFound = 122, "SHARE_SESSION_NOT_FOUND", Same;
    InvalidShareSessionEpoch = 123, "INVALID_SHARE_SESSION_EPOCH", Same;
    FencedStateEpoch = 124, "FENCED_STATE_EPOCH", Never;
    InvalidVoterKey = 125, "INVALID_VOTER_KEY", Never;
    DuplicateVoter = 126, "DUPLICATE_VOTER", Never;
    VoterNotFound = 127, "VOTER_NOT_FOUND", Never;
    InvalidRegularExpression = 128, "INVALID_REGULAR_EXPRESSION", Never;
    RebootstrapRequired = 129, "REBOOTSTRAP_REQUIRED", Never;
    StreamsInvalidTopology = 130, "STREAMS_INVALID_TOPOLOGY", Never;
    StreamsInvalidTopologyEpoch = 131, "STREAMS_INVALID_TOPOLOGY_EPOCH", Never;
    StreamsTopologyFenced = 132, "STREAMS_TOPOLOGY_FENCED", Never;
    ShareSessionLimitReached = 133, "SHARE_SESSION_LIMIT_REACHED", Same;
}

impl ErrorCode {
    /// Its number on the wire.
    pub fn code(self) -> i16 {
        self as i16
    }

    /// The error of a number.
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.iter().copied().find(|error| error.code() == code)
    }

    /// Whether a client may send the request again.
    pub fn is_retriable(self) -> bool {
        self.retry() != Retry::Never
    }

    /// Whether a client refreshes its metadata first.
    pub fn refreshes_metadata(self) -> bool {
        self.retry() == Retry::Refresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_ascend_without_a_gap_and_have_a_name_each() {
        let codes: Vec<i16> = ErrorCode::ALL.iter().map(|error| error.code()).collect();
        assert_eq!(codes, (-1..=133).collect::<Vec<_>>());
        let mut names: Vec<_> = ErrorCode::ALL.iter().map(|error| error.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), codes.len());
    }

    #[test]
    fn a_client_refreshes_its_metadata_only_to_send_the_request_again() {
        assert!(ErrorCode::NotLeaderOrFollower.refreshes_metadata());
        assert!(ErrorCode::CorruptMessage.is_retriable());
        assert!(!ErrorCode::CorruptMessage.refreshes_metadata());
        assert!(!ErrorCode::InvalidRecord.is_retriable());
    }
}
