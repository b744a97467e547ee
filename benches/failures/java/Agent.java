import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Java's client as an agent: the commands of `agents/agent.py`, in lines of words between tabs. */
public final class Agent {
    private static final String LINGER_MS = "300";

    private final String release;
    private KafkaProducer<byte[], byte[]> producer;
    private KafkaConsumer<byte[], byte[]> consumer;

    private Agent(String release) {
        this.release = release;
    }

    /** Takes commands until there are none; the argument is the release of the client. */
    public static void main(String[] arguments) throws Exception {
        var commands =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var agent = new Agent(arguments[0]);
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String answer;
            try {
                answer = agent.run(line.split("\t", -1));
            } catch (Exception error) {
                answer = json("error", quoted(name(error)), "words", list(List.of(words(error))));
            }
            System.out.println(answer);
        }
        Runtime.getRuntime().halt(0);
    }

    private String run(String[] words) throws Exception {
        switch (words[0]) {
            case "about":
                return json("version", quoted(release));
            case "producer":
                return json("settings", makeProducer(options(words)));
            case "consumer":
                return json("settings", makeConsumer(options(words)));
            case "send":
                return send(words);
            case "poll":
                return poll(Double.parseDouble(words[1]));
            case "init":
                producer.initTransactions();
                break;
            case "begin":
                producer.beginTransaction();
                break;
            case "commit":
                producer.commitTransaction();
                break;
            case "abort":
                producer.abortTransaction();
                break;
            case "offsets":
                producer.sendOffsetsToTransaction(
                    Map.of(first(words[1]), new OffsetAndMetadata(Long.parseLong(words[2]))),
                    consumer.groupMetadata());
                break;
            case "assign":
                consumer.assign(List.of(first(words[1])));
                consumer.seek(first(words[1]), Long.parseLong(words[2]));
                break;
            case "subscribe":
                consumer.subscribe(List.of(words[1]));
                break;
            case "commit_positions":
                consumer.commitSync();
                break;
            default:
                throw new IllegalArgumentException(words[0]);
        }
        return "{}";
    }

    private String makeProducer(Map<String, String> options) {
        var settings = new TreeMap<String, Object>();
        String timeout = options.get("timeout_ms");
        settings.put("enable.idempotence", options.getOrDefault("idempotent", "true"));
        settings.put("acks", "all");
        settings.put("delivery.timeout.ms", timeout);
        settings.put("request.timeout.ms", "" + Integer.parseInt(timeout) / 2);
        settings.put("max.block.ms", timeout);
        settings.put("linger.ms", LINGER_MS);
        if (options.containsKey("transactional_id")) {
            settings.put("transactional.id", options.get("transactional_id"));
        }
        var all = new HashMap<>(settings);
        all.put("bootstrap.servers", options.get("servers"));
        producer = new KafkaProducer<>(all, new ByteArraySerializer(), new ByteArraySerializer());
        return object(settings);
    }

    private String makeConsumer(Map<String, String> options) {
        var settings = new TreeMap<String, Object>();
        settings.put("auto.offset.reset", options.getOrDefault("reset", "earliest"));
        settings.put("isolation.level", options.getOrDefault("isolation", "read_uncommitted"));
        settings.put("enable.auto.commit", "false");
        if (options.containsKey("group")) {
            settings.put("group.id", options.get("group"));
        }
        var all = new HashMap<>(settings);
        all.put("bootstrap.servers", options.get("servers"));
        consumer =
            new KafkaConsumer<>(all, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        return object(settings);
    }

    private String send(String[] words) throws InterruptedException {
        var sent = new ArrayList<Future<RecordMetadata>>();
        var errors = new ArrayList<Exception>();
        for (String word : Arrays.copyOfRange(words, 1, words.length)) {
            String[] record = word.split(",", -1);
            int size = Integer.parseInt(record[3]);
            String value = record[2] + " ".repeat(Math.max(0, size - record[2].length()));
            byte[] key = record[1].equals("-") ? null : record[1].getBytes(StandardCharsets.UTF_8);
            Exception thrown = null;
            Future<RecordMetadata> future = null;
            try {
                future = producer.send(
                    new ProducerRecord<>(
                        record[0], 0, key, value.getBytes(StandardCharsets.UTF_8)));
            } catch (RuntimeException error) {
                thrown = error;
            }
            sent.add(future);
            errors.add(thrown);
        }
        var told = new ArrayList<String>();
        var texts = new ArrayList<String>();
        for (int index = 0; index < sent.size(); index++) {
            Throwable error = errors.get(index);
            try {
                if (error == null) {
                    sent.get(index).get();
                }
            } catch (ExecutionException failed) {
                error = failed.getCause();
            }
            told.add(error == null ? "ok" : name(error));
            texts.add(error == null ? "" : words(error));
        }
        return json("told", list(told), "words", list(texts));
    }

    private String poll(double withinS) {
        var found = new ArrayList<String>();
        for (ConsumerRecord<byte[], byte[]> each :
            consumer.poll(Duration.ofMillis((long) (withinS * 1000)))) {
            found.add(new String(each.value(), StandardCharsets.UTF_8).stripTrailing());
        }
        return json("read", list(found));
    }

    private static TopicPartition first(String topic) {
        return new TopicPartition(topic, 0);
    }

    private static Map<String, String> options(String[] words) {
        return Arrays.stream(words).skip(1).map(word -> word.split("=", 2))
            .collect(Collectors.toMap(pair -> pair[0], pair -> pair[1]));
    }

    private static String name(Throwable error) {
        String own = error.getClass().getSimpleName();
        return error.getCause() == null ? own : own + " (" + name(error.getCause()) + ")";
    }

    private static String words(Throwable error) {
        String own = "" + error.getMessage();
        return error.getCause() == null ? own : own + " " + words(error.getCause());
    }

    private static String json(String... pairs) {
        var parts = new ArrayList<String>();
        for (int index = 0; index < pairs.length; index += 2) {
            parts.add(quoted(pairs[index]) + ":" + pairs[index + 1]);
        }
        return "{" + String.join(",", parts) + "}";
    }

    private static String object(Map<String, Object> values) {
        return values.entrySet().stream()
            .map(each -> quoted(each.getKey()) + ":" + quoted("" + each.getValue()))
            .collect(Collectors.joining(",", "{", "}"));
    }

    private static String list(List<String> texts) {
        return texts.stream().map(Agent::quoted).collect(Collectors.joining(",", "[", "]"));
    }

    private static String quoted(String text) {
        var out = new StringBuilder("\"");
        for (char each : text.toCharArray()) {
            if (each == '"' || each == '\\') {
                out.append('\\').append(each);
            } else if (each < ' ') {
                out.append(String.format("\\u%04x", (int) each));
            } else {
                out.append(each);
            }
        }
        return out.append('"').toString();
    }
}
