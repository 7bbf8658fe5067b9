package io.github.fakeapiserver;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ScenariosTest {
    private static final String SCENARIO = "watch/clean-eof-resumes-from-the-last-event";

    /** A command that lists once and then fails. */
    private static final String LISTS_ONCE =
            """
            import java.net.Proxy;
            import java.net.URI;
            import java.nio.file.Files;
            import java.nio.file.Path;
            import java.util.regex.Pattern;

            class ListsOnce {
                public static void main(String[] arguments) throws Exception {
                    String kubeconfig = Files.readString(Path.of(System.getenv("KUBECONFIG")));
                    String server = Pattern.compile("https?://[^\\\\s\\",]+").matcher(kubeconfig).results().findFirst().get().group();
                    URI list = URI.create(server + "/api/v1/namespaces/default/configmaps");
                    list.toURL().openConnection(Proxy.NO_PROXY).getInputStream().readAllBytes();
                    System.exit(1);
                }
            }
            """;

    private static Scenarios once() {
        return new Scenarios(SCENARIO).arguments("--restart", "never");
    }

    @Test
    void aFailureIsThrownUnlessItIsKnown(@TempDir Path folder) throws IOException {
        String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        String program = Files.writeString(folder.resolve("ListsOnce.java"), LISTS_ONCE).toString();
        AssertionError failed = assertThrows(AssertionError.class, () -> once().run(java, program));
        assertTrue(failed.getMessage().contains(SCENARIO), failed.getMessage());
        Path known = Files.writeString(
                folder.resolve("known.yaml"),
                "- {scenario: " + SCENARIO + ", outcome: crash, reason: it lists once, issue: none public}\n");
        JsonNode result = once().knownFailures(known).run(java, program).get(0);
        assertEquals("known", result.path("verdict").asText());
        assertEquals("it lists once", result.path("known").path("reason").asText());
    }

    @Test
    void anUnknownLibraryIsNamed() {
        AssertionError failed = assertThrows(AssertionError.class, () -> once().library("nope").run("true"));
        assertTrue(failed.getMessage().contains("'nope'"), failed.getMessage());
    }
}
