//! Error codes of Kafka's protocol.

macro_rules! error_codes {
    ($($name:ident = $code:literal, $kafka:literal;)+) => {
        /// An error code of Kafka's protocol, as far as appending knows them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(i16)]
        #[allow(missing_docs)] // Kafka's own names
        pub enum ErrorCode {
            $($name = $code,)+
        }

        impl ErrorCode {
            /// Kafka's name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $kafka),+ }
            }
        }
    };
}

error_codes! {
    UnknownServerError = -1, "UNKNOWN_SERVER_ERROR";
    None = 0, "NONE";
    CorruptMessage = 2, "CORRUPT_MESSAGE";
    MessageTooLarge = 10, "MESSAGE_TOO_LARGE";
    RecordListTooLarge = 18, "RECORD_LIST_TOO_LARGE";
    InvalidTimestamp = 32, "INVALID_TIMESTAMP";
    UnsupportedForMessageFormat = 43, "UNSUPPORTED_FOR_MESSAGE_FORMAT";
    OutOfOrderSequenceNumber = 45, "OUT_OF_ORDER_SEQUENCE_NUMBER";
    InvalidProducerEpoch = 47, "INVALID_PRODUCER_EPOCH";
    InvalidTxnState = 48, "INVALID_TXN_STATE";
    InvalidProducerIdMapping = 49, "INVALID_PRODUCER_ID_MAPPING";
    TransactionCoordinatorFenced = 52, "TRANSACTION_COORDINATOR_FENCED";
    TransactionalIdAuthorizationFailed = 53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED";
    UnknownProducerId = 59, "UNKNOWN_PRODUCER_ID";
    UnsupportedCompressionType = 76, "UNSUPPORTED_COMPRESSION_TYPE";
    InvalidRecord = 87, "INVALID_RECORD";
}

impl ErrorCode {
    /// Its number on the wire.
    pub fn code(self) -> i16 {
        self as i16
    }
}
