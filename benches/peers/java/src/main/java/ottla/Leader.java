package ottla;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.apache.kafka.common.InvalidRecordException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.CorruptRecordException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.RecordValidationStats;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.record.BrokerCompressionType;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LeaderHwChange;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogValidator;

/**
 * What a leader's log decides on the bytes of a produce request, in the order of UnifiedLog.append:
 * the analysis of the batches with their CRC, then Kafka's own LogValidator, which writes the
 * offsets into the buffer. No producer state, no lock, no file, no meters: LogValidator's work and
 * what must come before it, nothing that would make Kafka look slower.
 *
 * <p>The buffer is the same each time. What LogValidator writes, base offset and leader epoch, lies
 * outside what the CRC covers; the base offset is put back to the 0 that a client sends.
 */
final class Leader implements Race.Job {
    private static final TopicPartition PARTITION = new TopicPartition("bench", 0);
    private static final int LEADER_EPOCH = 0;
    private static final int MAX_MESSAGE_BYTES = 1_048_588;
    private static final long BEFORE_MAX_MS = Long.MAX_VALUE;
    private static final long AFTER_MAX_MS = 3_600_000;

    private final Time clock = new Stopped(1_800_000_000_000L);
    private final LogValidator.MetricsRecorder metrics = new Uncounted();
    private final BufferSupplier buffers = BufferSupplier.create();
    private long endOffset;

    @Override
    public long run(ByteBuffer request) {
        request.putLong(0, 0L);
        long before = endOffset;
        LogAppendInfo info = append(MemoryRecords.readableRecords(request.duplicate()));
        endOffset = info.lastOffset() + 1;
        if (info.firstOffset() != before) {
            throw new IllegalStateException("base offset " + info.firstOffset() + ", expected " + before);
        }
        return info.numMessages();
    }

    private LogAppendInfo append(MemoryRecords records) {
        LogAppendInfo info = analyse(records);
        if (info.validBytes() != records.sizeInBytes()) {
            throw new IllegalStateException("part of a batch at the end");
        }
        PrimitiveRef.LongRef offset = PrimitiveRef.ofLong(endOffset);
        info.setFirstOffset(offset.value);
        Compression target =
            BrokerCompressionType.targetCompression(Optional.empty(), info.sourceCompression());
        LogValidator.ValidationResult result = new LogValidator(
            records,
            PARTITION,
            clock,
            info.sourceCompression(),
            target,
            false,
            RecordBatch.MAGIC_VALUE_V2,
            TimestampType.CREATE_TIME,
            BEFORE_MAX_MS,
            AFTER_MAX_MS,
            LEADER_EPOCH,
            AppendOrigin.CLIENT
        ).validateMessagesAndAssignOffsets(offset, metrics, buffers);
        info.setMaxTimestamp(result.maxTimestampMs);
        info.setLastOffset(offset.value - 1);
        info.setRecordValidationStats(result.recordValidationStats);
        if (result.messageSizeMaybeChanged) {
            throw new IllegalStateException("not in place");
        }
        return info;
    }

    private LogAppendInfo analyse(MemoryRecords records) {
        int validBytes = 0;
        long firstOffset = -1;
        long lastOffset = -1;
        long lastOffsetOfFirstBatch = -1;
        int leaderEpoch = RecordBatch.NO_PARTITION_LEADER_EPOCH;
        long maxTimestamp = RecordBatch.NO_TIMESTAMP;
        CompressionType source = CompressionType.NONE;
        boolean isFirst = true;
        for (MutableRecordBatch batch : records.batches()) {
            if (batch.magic() >= RecordBatch.MAGIC_VALUE_V2 && batch.baseOffset() != 0) {
                throw new InvalidRecordException("base offset " + batch.baseOffset());
            }
            if (isFirst) {
                firstOffset = batch.baseOffset();
                lastOffsetOfFirstBatch = batch.lastOffset();
                isFirst = false;
            }
            lastOffset = batch.lastOffset();
            leaderEpoch = batch.partitionLeaderEpoch();
            int size = batch.sizeInBytes();
            if (size > MAX_MESSAGE_BYTES) {
                throw new RecordTooLargeException(size + " bytes");
            }
            if (!batch.isValid()) {
                throw new CorruptRecordException("CRC " + batch.checksum());
            }
            maxTimestamp = Math.max(maxTimestamp, batch.maxTimestamp());
            validBytes += size;
            CompressionType compression = CompressionType.forId(batch.compressionType().id);
            source = compression == CompressionType.NONE ? source : compression;
        }
        return new LogAppendInfo(
            firstOffset,
            lastOffset,
            leaderEpoch == RecordBatch.NO_PARTITION_LEADER_EPOCH ? Optional.empty() : Optional.of(leaderEpoch),
            maxTimestamp,
            RecordBatch.NO_TIMESTAMP,
            0,
            RecordValidationStats.EMPTY,
            source,
            validBytes,
            lastOffsetOfFirstBatch,
            List.of(),
            LeaderHwChange.NONE
        );
    }

    /** The broker's clock as a constant: Ottla is told the time, too. */
    private record Stopped(long milliseconds) implements Time {
        @Override
        public long nanoseconds() {
            return milliseconds * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void waitObject(Object on, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    /** The meters of refused records; every record here is good. */
    private static final class Uncounted implements LogValidator.MetricsRecorder {
        @Override
        public void recordInvalidMagic() {}

        @Override
        public void recordInvalidOffset() {}

        @Override
        public void recordInvalidSequence() {}

        @Override
        public void recordInvalidChecksums() {}

        @Override
        public void recordNoKeyCompactedTopic() {}
    }
}
