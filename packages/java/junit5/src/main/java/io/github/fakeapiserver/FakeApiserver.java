package io.github.fakeapiserver;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A running server. {@link #close()} stops it. */
public final class FakeApiserver implements AutoCloseable {
    private static final int STOP_SECONDS = 10;
    private static final String GONE =
            "[{error: {code: 410, reason: Expired, message: The resourceVersion for the provided watch is too old.}}, {end: eof}]";

    private final Process process;
    private final Path log;
    private final Control control;
    private final String url;
    private final Path kubeconfig;
    private boolean violationsAllowed;

    private FakeApiserver(Process process, Path log, JsonNode announced) {
        this.process = process;
        this.log = log;
        this.control = new Control(announced.path("control").asText(), announced.path("token").asText());
        this.url = announced.path("server").asText();
        this.kubeconfig = Path.of(announced.path("kubeconfigs").path(0).asText());
    }

    /** Starts {@code fake-apiserver serve} with additional arguments: the program in FAKE_APISERVER_BIN, in a jar, or on PATH. */
    public static FakeApiserver start(String... arguments) {
        String binary = Binary.find();
        // The server exits when its standard input is closed, also if this process is killed.
        List<String> command = new ArrayList<>(List.of(binary, "serve", "--announce", "json", "--exit-with-stdin"));
        command.addAll(List.of(arguments));
        try {
            Path log = Files.createTempFile("fake-apiserver-", ".log");
            Process process = new ProcessBuilder(command).redirectError(log.toFile()).start();
            InputStreamReader output = new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8);
            String line = new BufferedReader(output).readLine();
            if (line == null) {
                throw new IllegalStateException("fake-apiserver did not start:\n" + Files.readString(log));
            }
            return new FakeApiserver(process, log, Control.parse(line));
        } catch (IOException error) {
            throw new UncheckedIOException("cannot start " + binary + ": " + Binary.advice(), error);
        }
    }

    /** URL of the Kubernetes API. */
    public String url() {
        return url;
    }

    /** Path of a kubeconfig for the server. */
    public Path kubeconfig() {
        return kubeconfig;
    }

    /** The control API. */
    public Control control() {
        return control;
    }

    /** Adds a rule, such as <code>{when: {list: next}, do: {reply: {status: 503}}}</code>. */
    public Control.Injected inject(String rule) {
        return control.addRule(rule);
    }

    /** Ends all open watches of a resource, such as {@code deployments.apps}, with a 410 Gone event. */
    public Control.Injected expire(String resource) {
        return inject("{from: {resource: " + resource + "}, do: " + GONE + "}");
    }

    /** Waits for a record of the trace: <code>when: {list: 2}</code>, <code>sent: {type: MODIFIED, name: web}</code>. */
    public Control.WaitResult await(String condition) {
        return control.waitFor("{" + condition + "}");
    }

    /** As {@link #await(String)}, starting at a record of the trace. */
    public Control.WaitResult await(String condition, long since) {
        return await(condition + ", since: " + since);
    }

    /** Removes all rules and faults, and restores the initial objects. */
    public void reset() {
        control.reset();
    }

    /** Throws if a client violated an invariant of LIST and WATCH, or if none listed or watched. */
    public void expectNoViolations() {
        Control.Verdict verdict = control.verdict();
        if (verdict.outcome().equals("nothing")) {
            throw new AssertionError("no client listed or watched: nothing was judged");
        }
        expectNoViolations(verdict);
    }

    /** Keeps violations from failing the test at its end. */
    public void allowViolations() {
        violationsAllowed = true;
    }

    /** Log of the server: requests, responses, violations. */
    public String log() {
        try {
            return Files.readString(log);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** Throws if a client violated an invariant; passes if none listed or watched. */
    void checkAtEnd() {
        if (!violationsAllowed) {
            expectNoViolations(control.verdict());
        }
    }

    private static void expectNoViolations(Control.Verdict verdict) {
        StringBuilder violations = new StringBuilder();
        for (Control.ClientVerdict client : verdict.clients()) {
            for (Control.Violation found : client.contradictions()) {
                violations.append("\n%s %s reading %s: %s\n    proof: %s".formatted(
                        found.check(), found.client(), found.reading(), found.sentence(), found.proof()));
            }
        }
        if (!violations.isEmpty()) {
            throw new AssertionError("a client violated the rules of LIST and WATCH:" + violations);
        }
    }

    /** Stops the server. */
    @Override
    public void close() {
        process.destroy();
        try {
            if (!process.waitFor(STOP_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor();
            }
            Files.deleteIfExists(log);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
