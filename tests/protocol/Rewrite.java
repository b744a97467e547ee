import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/** Reads messages as Kafka does, and writes them again: a line "class version bytes" becomes a line of bytes. */
public final class Rewrite {
    public static void main(String[] arguments) throws Exception {
        HexFormat hex = HexFormat.of();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = new PrintStream(System.out, false);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", -1);
            short version = Short.parseShort(words[1]);
            try {
                ByteBuffer read = ByteBuffer.wrap(hex.parseHex(words[2]));
                ApiMessage message = (ApiMessage) Class.forName(words[0]).getConstructor().newInstance();
                message.read(new ByteBufferAccessor(read), version);
                if (read.hasRemaining()) throw new IllegalStateException(read.remaining() + " bytes are left");
                ObjectSerializationCache cache = new ObjectSerializationCache();
                ByteBuffer written = ByteBuffer.allocate(message.size(cache, version));
                message.write(new ByteBufferAccessor(written), cache, version);
                out.println(hex.formatHex(written.array()));
            } catch (Exception | LinkageError error) {
                out.println(error);
            }
        }
        out.flush();
    }
}
