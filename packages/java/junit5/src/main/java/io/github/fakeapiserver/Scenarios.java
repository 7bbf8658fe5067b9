package io.github.fakeapiserver;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/** Scenarios against a command, as {@code fake-apiserver run} plays them. */
public final class Scenarios {
    private static final Set<String> FINE = Set.of("passed", "warned", "known", "not_scored", "skipped");

    private final List<String> scenarios;
    private final List<String> options = new ArrayList<>();

    /** Selects files, folders or ids such as {@code gone/}; none selects all that are built in. */
    public Scenarios(String... scenarios) {
        this.scenarios = List.of(scenarios);
    }

    /** Adds a library whose known failures do not count, such as {@code fabric8@8}. */
    public Scenarios library(String library) {
        return arguments("--library", library);
    }

    /** Adds a file of known failures, which do not count. */
    public Scenarios knownFailures(Path file) {
        return arguments("--known-failures", file.toString());
    }

    /** Adds further arguments of {@code fake-apiserver run}. */
    public Scenarios arguments(String... arguments) {
        options.addAll(List.of(arguments));
        return this;
    }

    /**
     * Plays the scenarios against a command that gets KUBECONFIG, and returns the results, as {@code run --format json} prints them.
     *
     * @throws AssertionError if the command fails one that no list excuses, an entry of a list is stale, or nothing was judged
     */
    public List<JsonNode> run(String... command) {
        List<String> words = new ArrayList<>(List.of(Binary.find(), "run", "--format", "json"));
        words.addAll(options);
        words.addAll(scenarios);
        words.add("--");
        words.addAll(List.of(command));
        try {
            Path errors = Files.createTempFile("fake-apiserver-", ".log");
            try {
                Process process = new ProcessBuilder(words).redirectError(errors.toFile()).start();
                process.getOutputStream().close();
                List<JsonNode> lines =
                        new String(process.getInputStream().readAllBytes()).lines().map(Control::parse).toList();
                int code = process.waitFor();
                List<JsonNode> results = lines.stream().filter(line -> !line.has("footer")).toList();
                if (code != 0) {
                    throw new AssertionError(reasons(code, lines, Files.readString(errors)));
                }
                return results;
            } finally {
                Files.deleteIfExists(errors);
            }
        } catch (IOException error) {
            throw new UncheckedIOException("cannot start " + words.get(0) + ": " + Binary.advice(), error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted", error);
        }
    }

    private static String reasons(int code, List<JsonNode> lines, String errors) {
        StringBuilder reasons = new StringBuilder("fake-apiserver run: exit code " + code);
        for (JsonNode line : lines) {
            if (line.has("footer")) {
                line.path("footer").path("stale").forEach(entry -> reasons.append("\n" + entry + ": a known failure that passes"));
            } else if (!FINE.contains(line.path("verdict").asText())) {
                String name = line.path("id").asText(line.path("file").asText());
                reasons.append("\n" + name + ": " + line.path("message").asText());
            }
        }
        return (reasons + "\n" + errors).strip();
    }
}
