import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;

/**
 * Runs the main methods of many classes in one JVM, one behind the other.
 *
 * A request is a line: the class, what it finds on standard input, and its arguments, each in
 * base64. The answer is a line: the status, what it wrote, and what it wrote on standard error.
 */
public final class Session {
    private static final class Exited extends Error {}

    /** What a main method would have done when the JVM ends. */
    static final List<Runnable> HOOKS = new ArrayList<>();

    // Code in Scala keeps the streams that it found first.
    private static final ByteArrayOutputStream OUTPUT = new ByteArrayOutputStream();
    private static final ByteArrayOutputStream ERRORS = new ByteArrayOutputStream();

    private static Integer exited;
    private static byte[] errorsAtExit;

    public static void main(String[] none) throws Exception {
        PrintStream answers = System.out;
        BufferedReader requests =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.setOut(new PrintStream(OUTPUT, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(ERRORS, true, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            String[] words = line.split(" ", -1);
            for (int i = 0; i < words.length; i++) {
                words[i] = new String(Base64.getDecoder().decode(words[i]), StandardCharsets.UTF_8);
            }
            answers.println(answer(words));
            answers.flush();
        }
    }

    /** Ends a main method that would end the JVM. */
    static void exit(int status, String message) {
        if (exited == null) {
            if (message != null) {
                System.err.println(message);
            }
            exited = status;
            // Some tools catch what is thrown here, and complain of it.
            errorsAtExit = ERRORS.toByteArray();
        }
        throw new Exited();
    }

    private static String answer(String[] words) throws Exception {
        OUTPUT.reset();
        ERRORS.reset();
        exited = null;
        System.setIn(new ByteArrayInputStream(words[1].getBytes(StandardCharsets.UTF_8)));
        int status = run(words[0], Arrays.copyOfRange(words, 2, words.length));
        byte[] errors = exited == null ? ERRORS.toByteArray() : errorsAtExit;
        HOOKS.forEach(Runnable::run);
        HOOKS.clear();
        Base64.Encoder encoder = Base64.getEncoder();
        return status + " " + encoder.encodeToString(OUTPUT.toByteArray())
            + " " + encoder.encodeToString(errors);
    }

    private static int run(String name, String[] arguments) throws Exception {
        try {
            Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException thrown) {
            if (exited == null) {
                thrown.getCause().printStackTrace();
                return 1;
            }
        }
        return exited == null ? 0 : exited;
    }
}
