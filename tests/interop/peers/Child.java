import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.zeromq.ZMQ;

/**
 * A child in Java on JeroMQ, a ZeroMQ of its own: asks a parent for a subtree, then follows what it publishes.
 *
 * <pre>java -cp /usr/share/java/jeromq.jar:. Child DEALER tcp://127.0.0.1:27503 tcp://127.0.0.1:27502 /CONFIG/web/</pre>
 *
 * DEALER: the snapshot, a beat, and the first update. REQ: the one answer that it can hear. BUNDLE: a REQ that asks for
 * all in one message. Prints a line per message: its word, key or subtree, number, value.
 */
public final class Child {
    private static final int PATIENCE_MS = 20_000;

    public static void main(String[] words) {
        ZMQ.Context context = ZMQ.context(1);
        boolean isDealer = words[0].equals("DEALER");
        ZMQ.Socket updates = open(context, ZMQ.SUB);
        if (isDealer) {
            updates.subscribe("HUGZ".getBytes(StandardCharsets.UTF_8));
            updates.subscribe(words[3].getBytes(StandardCharsets.UTF_8));
            updates.connect(words[2]);
            tell(hear(updates));
        }
        ZMQ.Socket parent = open(context, isDealer ? ZMQ.DEALER : ZMQ.REQ);
        parent.connect(words[1]);
        if (isDealer) {
            parent.sendMore("");
        }
        for (String frame : new String[] {"ICANHAZ", "", ""}) {
            parent.sendMore(frame);
        }
        parent.sendMore(words[0].equals("BUNDLE") ? "{\"bundle\":true}" : "");
        parent.send(words[3]);
        String last = "";
        while (!last.equals("KTHXBAI") && (isDealer || last.isEmpty())) {
            List<byte[]> frames = hear(parent);
            last = tell(isDealer ? frames.subList(1, frames.size()) : frames);
        }
        while (isDealer && !last.equals("KVPUB")) {
            last = tell(hear(updates));
        }
        updates.close();
        parent.close();
        context.term();
    }

    private static ZMQ.Socket open(ZMQ.Context context, int type) {
        ZMQ.Socket socket = context.socket(type);
        socket.setLinger(0);
        socket.setReceiveTimeOut(PATIENCE_MS);
        return socket;
    }

    private static List<byte[]> hear(ZMQ.Socket socket) {
        List<byte[]> frames = new ArrayList<>();
        do {
            byte[] frame = socket.recv();
            if (frame == null) {
                System.out.println("SILENCE");
                System.exit(1);
            }
            frames.add(frame);
        } while (socket.hasReceiveMore());
        return frames;
    }

    /** Prints a message, a bundle pair by pair; the word of the last line. */
    private static String tell(List<byte[]> frames) {
        String word = "";
        for (int at = 0; at < frames.size(); at += 5) {
            String name = text(frames.get(at));
            BigInteger number = new BigInteger(1, frames.get(at + 1));
            if (name.equals("WTF")) {
                System.out.println("WTF " + number + " " + text(frames.get(at + 2)));
                System.exit(1);
            }
            boolean isEnd = name.equals("KTHXBAI");
            word = name.startsWith("/") ? (frames.get(at + 2).length == 16 ? "KVPUB" : "KVSYNC") : name;
            String subject = isEnd ? text(frames.get(at + 4)) : word.equals("HUGZ") ? "-" : name;
            System.out.println((word + " " + subject + " " + number + (isEnd ? "" : " " + text(frames.get(at + 4)))).trim());
            System.out.flush();
        }
        return word;
    }

    private static String text(byte[] frame) {
        return new String(frame, StandardCharsets.UTF_8);
    }
}
