package ottla;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;

/** Kafka's own reader as a worker of benches/worker.py: CRC, decoding and offsets of a log. */
public final class Race {
    private static final long WARM_UP_NS = 3_000_000_000L;
    private static final long SHORTEST_TURN_NS = 500_000L;

    private Race() {}

    private static long check(ByteBuffer log) {
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

    private static long cpuNs() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    public static void main(String[] arguments) throws IOException {
        ByteBuffer log = ByteBuffer.wrap(Files.readAllBytes(Path.of(arguments[0])));
        long count = check(log);
        long begin = cpuNs();
        long runs = 0;
        while (cpuNs() - begin < WARM_UP_NS) {
            check(log);
            runs++;
        }
        long repeats = Math.max(1, SHORTEST_TURN_NS * runs / WARM_UP_NS);
        System.out.println("ready " + count + " Java " + Runtime.version().feature());
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        while (lines.readLine() != null) {
            long turn = cpuNs();
            for (long run = 0; run < repeats; run++) {
                check(log);
            }
            System.out.println((cpuNs() - turn) / 1e9 / repeats);
        }
    }
}
