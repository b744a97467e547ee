package ottla;

import java.nio.ByteBuffer;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;

/** Kafka's own reader: CRC, decoding and offsets of a log. */
final class Reader implements Race.Job {
    @Override
    public long run(ByteBuffer log) {
        long count = 0;
        for (RecordBatch batch : MemoryRecords.readableRecords(log.duplicate()).batches()) {
            batch.ensureValid();
            long offset = batch.baseOffset();
            for (Record record : batch) {
                if (record.offset() != offset++) {
                    throw new IllegalStateException("offset");
                }
                count++;
            }
        }
        return count;
    }
}
