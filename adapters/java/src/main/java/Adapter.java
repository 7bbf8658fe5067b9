import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/** Shared by the adapters of this folder: the messages of docs/adapter-protocol.md, and commands. It must not know any client. */
public final class Adapter {
    /** A library behind the protocol. */
    interface Client {
        /** Name of the client, repository, and group and artifact of the library. */
        record About(String name, String repository, String artifact) {}

        About about();

        List<String> capabilities();

        /** What the client has models of; null: any resource. */
        default List<String> resources() {
            return null;
        }

        /** Starts an informer. */
        void follow(JsonObject start) throws Exception;

        /** Lists the cache, as messages print it. */
        List<Map<String, Object>> items();
    }

    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private static final Gson GSON = new Gson();
    private static final Object CONSUMER = new Object();
    /** Events about objects that the consumer receives before it pauses; -1: no pause. */
    private static int credit = -1;

    private static final Set<String> DELIVERED = new HashSet<>();
    /** The objects of the first set, once the library reports them as complete; null: not yet. */
    private static List<String> first;

    private static boolean synced;

    private Adapter() {}

    /** Prints `hello` and carries out commands. */
    static void run(Client client) throws Exception {
        // Libraries may print: their output goes to standard error.
        System.setOut(System.err);
        String repository = "https://github.com/" + client.about().repository();
        Map<String, Object> hello = new LinkedHashMap<>();
        hello.put("protocol", 1);
        hello.put("client", Map.of(
                "name", client.about().name(),
                "lang", "java",
                "version", version(client.about().artifact()),
                "url", repository,
                "issues", repository + "/issues"));
        hello.put("contracts", List.of("informer"));
        hello.put("caps", client.capabilities());
        if (client.resources() != null) {
            hello.put("resources", client.resources());
        }
        hello.put("recovers", "library");
        emit("hello", hello);
        obey(client);
        // Threads of the library may be waiting for the server.
        Runtime.getRuntime().halt(0);
    }

    /** Returns the version of a library, from its package. */
    private static String version(String artifact) throws IOException {
        try (InputStream file = Adapter.class.getResourceAsStream("/META-INF/maven/" + artifact + "/pom.properties")) {
            Properties properties = new Properties();
            properties.load(file);
            return properties.getProperty("version");
        }
    }

    private static void obey(Client client) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonObject command = JsonParser.parseString(line).getAsJsonObject();
            String word = command.get("cmd").getAsString();
            switch (word) {
                case "start" -> start(client, command);
                case "dump" -> emit("dump", Map.of("id", command.get("id").getAsInt(), "items", client.items()));
                case "pause" -> grant(0);
                case "resume" -> grant(command.has("events") ? command.get("events").getAsInt() : -1);
                case "stop" -> {
                    return;
                }
                default -> emit("unsupported", Map.of("what", "cmd", "why", "no " + word));
            }
        }
    }

    private static void start(Client client, JsonObject command) {
        if (!command.get("contract").getAsString().equals("informer")) {
            emit("unsupported", Map.of("what", "contract", "why", "only informer"));
            return;
        }
        if (command.has("paused") && command.get("paused").getAsBoolean()) {
            grant(0);
        }
        Thread following = new Thread(() -> {
            try {
                client.follow(command);
            } catch (Exception error) {
                emitError(error, null);
                emit("end", Map.of());
            }
        });
        following.setDaemon(true);
        following.start();
    }

    private static void grant(int events) {
        synchronized (CONSUMER) {
            credit = events;
            CONSUMER.notifyAll();
        }
    }

    /** A string of a command; null: absent. */
    static String text(JsonObject command, String key) {
        return command.has(key) ? command.get(key).getAsString() : null;
    }

    /** Prints one message. */
    static void emit(String event, Map<String, ?> keys) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("ev", event);
        line.putAll(keys);
        String text = GSON.toJson(line);
        synchronized (OUT) {
            OUT.print(text + "\n");
            OUT.flush();
        }
    }

    /** Prints an event about an object, after any pause of the consumer. */
    static void emitObject(String event, Map<String, Object> identity) {
        synchronized (CONSUMER) {
            if (!awaitConsumer()) {
                return;
            }
            announceIfDelivered();
            if (credit > 0) {
                credit--;
            }
            emit(event, identity);
            DELIVERED.add(key(identity));
            CONSUMER.notifyAll();
        }
    }

    /** Waits until the consumer is not paused; false: the thread must end. */
    private static boolean awaitConsumer() {
        while (credit == 0) {
            try {
                CONSUMER.wait();
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
                return false;
            }
        }
        return true;
    }

    static void emitError(Throwable error, Integer code) {
        error.printStackTrace();
        Map<String, Object> keys = new LinkedHashMap<>();
        keys.put("message", error.toString());
        if (code != null && code > 0) {
            keys.put("code", code);
        }
        emit("error", keys);
    }

    /** Key, UID and version of an object; absent ones are omitted. */
    static Map<String, Object> identity(String namespace, String name, String uid, String version) {
        Map<String, Object> keys = new LinkedHashMap<>();
        String[] words = {"ns", namespace, "name", name, "uid", uid, "rv", version};
        for (int word = 0; word < words.length; word += 2) {
            if (words[word + 1] != null) {
                keys.put(words[word], words[word + 1]);
            }
        }
        // Without UID or version the whole object is printed.
        return uid != null && version != null ? keys : whole(namespace, name, uid, version);
    }

    private static Map<String, Object> whole(String namespace, String name, String uid, String version) {
        Map<String, Object> metadata = new LinkedHashMap<>();
        metadata.put("namespace", namespace);
        metadata.put("name", name);
        metadata.put("uid", uid);
        metadata.put("resourceVersion", version);
        Map<String, Object> keys = new LinkedHashMap<>();
        keys.put("obj", Map.of("metadata", metadata));
        return keys;
    }

    /**
     * Prints `synced` once the objects of the first set have reached the handler, which another thread calls. It is called
     * between the first list and the watch behind it: later, what a watch brings could not be told from the first set.
     */
    static void announce(BooleanSupplier hasSynced, Supplier<List<Map<String, Object>>> items) {
        try {
            // The cache is filled by another thread of the library.
            while (!hasSynced.getAsBoolean()) {
                Thread.sleep(1);
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            return;
        }
        synchronized (CONSUMER) {
            first = new ArrayList<>();
            items.get().forEach(item -> first.add(key(item)));
        }
        Thread waiting = new Thread(() -> {
            try {
                synchronized (CONSUMER) {
                    while (!synced) {
                        if (credit != 0) {
                            announceIfDelivered();
                        }
                        CONSUMER.wait(100);
                    }
                }
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        });
        waiting.setDaemon(true);
        waiting.start();
    }

    /** Prints `synced`, for a library that calls its handler at the end of the first set. */
    static void emitSynced() {
        synchronized (CONSUMER) {
            if (!synced && awaitConsumer()) {
                synced = true;
                emit("synced", Map.of());
            }
        }
    }

    private static void announceIfDelivered() {
        if (!synced && first != null && DELIVERED.containsAll(first)) {
            synced = true;
            emit("synced", Map.of());
        }
    }

    private static String key(Map<String, Object> identity) {
        return identity.get("ns") + "/" + identity.get("name");
    }
}
