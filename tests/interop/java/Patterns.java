import java.util.HashSet;
import java.util.Set;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.errors.InvalidRegularExpression;

/** Regular expressions that the broker evaluates: `Patterns SERVERS EXPRESSION`. */
public final class Patterns {
    public static void main(String[] arguments) {
        String[] team = {"group.id", "team", "group.protocol", "consumer"};
        try (var consumer = Clients.consumer(arguments[0], team)) {
            consumer.subscribe(new SubscriptionPattern(arguments[1]));
            Set<String> topics = new HashSet<>();
            Clients.until(() -> {
                consumer.poll(java.time.Duration.ofMillis(100));
                consumer.assignment().forEach(each -> topics.add(each.topic()));
                return !topics.isEmpty();
            });
            System.out.println(topics.stream().sorted().toList());
        } catch (InvalidRegularExpression error) {
            System.out.println(error.getMessage());
        }
    }
}
