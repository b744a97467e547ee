import org.apache.kafka.common.utils.Exit;

/** A session of Kafka's command-line tools, which leave their JVM alone. */
public final class Tools {
    public static void main(String[] none) throws Exception {
        Exit.setExitProcedure(Session::exit);
        Exit.setHaltProcedure(Session::exit);
        Exit.setShutdownHookAdder((name, hook) -> Session.HOOKS.add(hook));
        Session.main(none);
    }
}
