import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** What a Java program does with a broker, and prints of it: `Clients SCENARIO SERVERS ARGUMENT`. */
public final class Clients {
    private static final Duration A_MOMENT = Duration.ofMillis(100);
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final TopicPartition FIRST = new TopicPartition("orders", 0);
    private static final long EPOCH_MS = 1_700_000_000_000L;

    public static void main(String[] arguments) throws Exception {
        String servers = arguments[1];
        String given = arguments.length > 2 ? arguments[2] : "";
        switch (arguments[0]) {
            case "codec" -> codec(servers, given);
            case "idempotent" -> idempotent(servers);
            case "transactions" -> transactions(servers);
            case "fenced" -> fenced(servers);
            case "offsets-in-transactions" -> offsetsInTransactions(servers);
            case "refused" -> refused(servers, given);
            case "too-large" -> tooLarge(servers);
            case "times" -> times(servers);
            case "group" -> group(servers, given);
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }

    private static void codec(String servers, String codec) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (var producer = producer(servers, "compression.type", codec, "linger.ms", "50")) {
            for (int number = 0; number < 100; number++) {
                String value = ("value " + number + " ").repeat(20);
                var record = new ProducerRecord<>("orders", 0, EPOCH_MS + number, "key", value);
                record.headers().add(new RecordHeader("h", "1".getBytes(StandardCharsets.UTF_8)));
                sent.add(producer.send(record));
            }
        }
        for (int number = 0; number < 100; number++) {
            check(sent.get(number).get().offset() == number, "another offset");
        }
        try (var consumer = consumer(servers)) {
            consumer.assign(List.of(FIRST));
            var found = records(consumer, 100);
            for (int number = 0; number < 100; number++) {
                var record = found.get(number);
                check(record.value().equals(("value " + number + " ").repeat(20)), "another value");
                check(record.timestamp() == EPOCH_MS + number, "another timestamp");
                check(record.key().equals("key"), "another key");
                check(record.headers().lastHeader("h").value()[0] == '1', "another header");
            }
        }
    }

    private static void idempotent(String servers) throws Exception {
        try (var producer = producer(servers, "enable.idempotence", "true")) {
            for (String value : List.of("0", "1")) {
                var told = producer.send(new ProducerRecord<>("orders", 0, "key", value)).get();
                System.out.println(told.offset());
            }
        }
    }

    private static void transactions(String servers) throws Exception {
        try (var producer = producer(servers, "transactional.id", "t")) {
            producer.initTransactions();
            for (String value : List.of("a", "b", "c")) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>("orders", 0, "key", value));
                producer.flush();
                if (value.equals("b")) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
        for (String isolation : List.of("read_committed", "read_uncommitted")) {
            try (var consumer = consumer(servers, "isolation.level", isolation)) {
                consumer.assign(List.of(FIRST));
                int expected = isolation.equals("read_committed") ? 2 : 3;
                System.out.println(isolation + " " + values(records(consumer, expected)));
            }
        }
    }

    private static void fenced(String servers) throws Exception {
        try (var first = producer(servers, "transactional.id", "t");
            var second = producer(servers, "transactional.id", "t")) {
            first.initTransactions();
            first.beginTransaction();
            first.send(new ProducerRecord<>("orders", 0, "key", "never")).get();
            second.initTransactions();
            second.beginTransaction();
            second.send(new ProducerRecord<>("orders", 0, "key", "ever"));
            second.commitTransaction();
            try {
                first.commitTransaction();
                System.out.println("committed");
            } catch (KafkaException error) {
                System.out.println(error.getClass().getSimpleName());
            }
        }
    }

    private static void offsetsInTransactions(String servers) throws Exception {
        try (var producer = producer(servers, "transactional.id", "copier");
            var consumer = consumer(servers, "group.id", "copiers")) {
            for (int number = 0; number < 3; number++) {
                // Whoever is not in a transaction yet takes another producer.
                try (var plain = producer(servers)) {
                    plain.send(new ProducerRecord<>("orders", 0, "key", "" + number)).get();
                }
            }
            producer.initTransactions();
            consumer.subscribe(List.of("orders"));
            records(consumer, 3);
            for (int offset : new int[] {2, 3}) {
                producer.beginTransaction();
                var position = Map.of(FIRST, new OffsetAndMetadata(offset));
                producer.sendOffsetsToTransaction(position, consumer.groupMetadata());
                if (offset == 2) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
                System.out.println(consumer.committed(Set.of(FIRST)).get(FIRST).offset());
            }
        }
    }

    /** Four records in one batch; those that the digits name have no key. */
    private static void refused(String servers, String culprits) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (var producer = producer(servers, "linger.ms", "60000", "retries", "0")) {
            for (int index = 0; index < 4; index++) {
                String key = culprits.contains("" + index) ? null : "k";
                sent.add(producer.send(new ProducerRecord<>("compacted", 0, key, "v")));
            }
        }
        print(sent);
    }

    /** Three records, each in a batch of its own; the second one is larger than the topic allows. */
    private static void tooLarge(String servers) throws Exception {
        try (var producer = producer(servers)) {
            for (int size : new int[] {10, 2000, 10}) {
                var sent = producer.send(new ProducerRecord<>("small", 0, "k", "v".repeat(size)));
                print(List.of(sent));
            }
        }
    }

    private static void print(List<Future<RecordMetadata>> sent) throws Exception {
        for (var future : sent) {
            try {
                System.out.println(future.get().offset());
            } catch (ExecutionException error) {
                Throwable cause = error.getCause();
                System.out.println(cause.getClass().getSimpleName() + ": " + cause.getMessage());
            }
        }
    }

    private static void times(String servers) throws Exception {
        try (var producer = producer(servers)) {
            for (int number = 0; number < 5; number++) {
                producer.send(new ProducerRecord<>("orders", 0, EPOCH_MS + number, "k", "v")).get();
            }
        }
        try (var consumer = consumer(servers)) {
            for (long time : new long[] {EPOCH_MS - 1, EPOCH_MS + 3, EPOCH_MS + 5}) {
                var found = consumer.offsetsForTimes(Map.of(FIRST, time)).get(FIRST);
                System.out.println(found == null ? "none" : found.offset());
            }
            System.out.println(consumer.beginningOffsets(List.of(FIRST)).get(FIRST));
            System.out.println(consumer.endOffsets(List.of(FIRST)).get(FIRST));
        }
    }

    private static void group(String servers, String protocol) throws Exception {
        send(servers, "early");
        String[] team = {"group.id", "team", "group.protocol", protocol};
        Set<String> found = new HashSet<>();
        try (var first = consumer(servers, team)) {
            first.subscribe(List.of("orders"));
            until(() -> poll(first, found) && found.size() == 3);
            first.commitSync();
            try (var second = consumer(servers, team)) {
                second.subscribe(List.of("orders"));
                until(() -> poll(first, found) && poll(second, found)
                    && shared(first.assignment(), second.assignment()));
                System.out.println("shared");
                send(servers, "shared");
                until(() -> poll(first, found) && poll(second, found) && found.size() == 6);
                second.commitSync();
                first.commitSync();
            }
            until(() -> poll(first, found) && first.assignment().size() == 3);
            System.out.println("taken back");
        }
        send(servers, "later");
        Set<String> later = new HashSet<>();
        try (var third = consumer(servers, team)) {
            third.subscribe(List.of("orders"));
            until(() -> poll(third, later) && later.size() >= 3);
        }
        System.out.println(later.stream().sorted().toList());
    }

    private static boolean shared(Collection<TopicPartition> first, Collection<TopicPartition> second) {
        return !first.isEmpty() && !second.isEmpty() && first.size() + second.size() == 3;
    }

    private static void send(String servers, String word) throws Exception {
        try (var producer = producer(servers)) {
            for (int partition = 0; partition < 3; partition++) {
                producer.send(new ProducerRecord<>("orders", partition, "k", word + partition)).get();
            }
        }
    }

    private static boolean poll(Consumer<String, String> consumer, Set<String> found) {
        consumer.poll(A_MOMENT).forEach(record -> found.add(record.value()));
        return true;
    }

    static void until(BooleanSupplier condition) {
        long end = System.nanoTime() + PATIENCE.toNanos();
        while (!condition.getAsBoolean()) {
            check(System.nanoTime() < end, "it has not come to pass");
        }
    }

    static List<ConsumerRecord<String, String>> records(Consumer<String, String> from, int count) {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        until(() -> {
            from.poll(A_MOMENT).forEach(found::add);
            return found.size() >= count;
        });
        from.poll(A_MOMENT).forEach(found::add);
        check(found.size() == count, "too many records: " + values(found));
        return found;
    }

    static List<String> values(List<ConsumerRecord<String, String>> records) {
        return records.stream().map(ConsumerRecord::value).toList();
    }

    private static void check(boolean isTrue, String message) {
        if (!isTrue) {
            throw new IllegalStateException(message);
        }
    }

    static Producer<String, String> producer(String servers, String... options) {
        return new KafkaProducer<>(
            settings(servers, options), new StringSerializer(), new StringSerializer());
    }

    static Consumer<String, String> consumer(String servers, String... options) {
        var settings = settings(servers, options);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    private static Map<String, Object> settings(String servers, String... options) {
        Map<String, Object> found = new HashMap<>(Map.of("bootstrap.servers", servers));
        for (int i = 0; i < options.length; i += 2) {
            found.put(options[i], options[i + 1]);
        }
        return found;
    }
}
