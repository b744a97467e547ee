package ottla;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * Kafka's own classes as a worker of benches/worker.py: JOB FILE CALLS.
 *
 * <p>A turn does the job CALLS times, again and again until it is long enough to be timed; its
 * clock is the CPU time of this thread. What HotSpot compiles and collects besides, in threads of
 * its own, is not counted.
 */
public final class Race {
    private static final long WARM_UP_NS = 3_000_000_000L;
    private static final long SHORTEST_TURN_NS = 500_000L;

    /** What is timed; it answers how many records it saw. */
    interface Job {
        long run(ByteBuffer data);
    }

    private Race() {}

    private static Job named(String name) {
        return switch (name) {
            case "check" -> new Reader();
            case "decide" -> new Leader();
            default -> throw new IllegalArgumentException("no job " + name);
        };
    }

    private static long turn(Job job, ByteBuffer data, int calls) {
        long count = 0;
        for (int call = 0; call < calls; call++) {
            count += job.run(data);
        }
        return count;
    }

    private static long cpuNs() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    public static void main(String[] arguments) throws IOException {
        Job job = named(arguments[0]);
        ByteBuffer data = ByteBuffer.wrap(Files.readAllBytes(Path.of(arguments[1])));
        int calls = Integer.parseInt(arguments[2]);
        long count = turn(job, data, calls);
        long begin = cpuNs();
        long turns = 0;
        while (cpuNs() - begin < WARM_UP_NS) {
            turn(job, data, calls);
            turns++;
        }
        long repeats = Math.max(1, SHORTEST_TURN_NS * turns / WARM_UP_NS);
        System.out.println(
            "ready " + count + " Java " + Runtime.version().feature() + ", Kafka " + AppInfoParser.getVersion());
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        while (lines.readLine() != null) {
            long from = cpuNs();
            for (long repeat = 0; repeat < repeats; repeat++) {
                turn(job, data, calls);
            }
            System.out.println((cpuNs() - from) / 1e9 / repeats);
        }
    }
}
