package io.github.fakeapiserver;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.ArrayList;
import java.util.List;

/**
 * The control API of a running server: one method per path of schema/control.v1.openapi.json. Rules and waits are texts in YAML
 * or JSON, as docs/control-api.md describes them.
 */
public final class Control {
    static final ObjectMapper JSON = new ObjectMapper();

    // A server on this machine is never behind a proxy.
    private final HttpClient client =
            HttpClient.newBuilder().proxy(HttpClient.Builder.NO_PROXY).version(HttpClient.Version.HTTP_1_1).build();
    private final String url;
    private final String token;

    Control(String url, String token) {
        this.url = url;
        this.token = token;
    }

    /** Version, URLs, kubeconfig, resourceVersion and {@code nextRecord}. */
    public JsonNode state() {
        return json("GET", "/v1", "");
    }

    /** Open responses. */
    public JsonNode streams() {
        return json("GET", "/v1/streams", "").path("streams");
    }

    /** Active rules. */
    public JsonNode rules() {
        return json("GET", "/v1/rules", "").path("rules");
    }

    /** Adds a rule. */
    public Injected addRule(String rule) {
        JsonNode added = json("POST", "/v1/rules", rule);
        List<Long> streams = new ArrayList<>();
        added.path("streams").forEach(stream -> streams.add(stream.asLong()));
        return new Injected(added.path("rule").path("id").asLong(), List.copyOf(streams), added.path("nextRecord").asLong());
    }

    /** Removes all rules. */
    public JsonNode removeRules() {
        return json("DELETE", "/v1/rules", "").path("removed");
    }

    /** Removes a rule. */
    public JsonNode removeRule(long id) {
        return json("DELETE", "/v1/rules/" + id, "").path("removed").path(0);
    }

    /** Waits for a record of the trace; times out with {@link Refused} and status 504. */
    public JsonNode waitFor(String wait) {
        return json("POST", "/v1/wait", wait);
    }

    /** The records of the trace from number {@code since} on. */
    public List<JsonNode> trace(long since) {
        return text("GET", "/v1/trace?since=" + since, "").lines().map(Control::parse).toList();
    }

    /** The verdict on every client so far. */
    public JsonNode verdict() {
        return json("GET", "/v1/verdict", "");
    }

    /** Removes all rules and faults, and restores the initial objects. */
    public JsonNode reset() {
        return json("POST", "/v1/reset", "");
    }

    static JsonNode parse(String text) {
        try {
            return JSON.readTree(text);
        } catch (IOException error) {
            throw new UncheckedIOException("not JSON: " + text, error);
        }
    }

    private JsonNode json(String method, String path, String body) {
        return parse(text(method, path, body));
    }

    private String text(String method, String path, String body) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url + path))
                .header("Authorization", "Bearer " + token)
                .method(method, BodyPublishers.ofString(body))
                .build();
        try {
            HttpResponse<String> response = client.send(request, BodyHandlers.ofString());
            if (response.statusCode() >= 300) {
                throw new Refused(response.statusCode(), parse(response.body()));
            }
            return response.body();
        } catch (IOException error) {
            throw new UncheckedIOException("cannot reach the control API", error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted", error);
        }
    }

    /**
     * An added rule, or one that was carried out at once.
     *
     * @param rule number of the rule; 0 if it was carried out at once
     * @param streams open responses that it was carried out on
     * @param nextRecord number of the next record of the trace: {@code since} of a wait that must miss nothing
     */
    public record Injected(long rule, List<Long> streams, long nextRecord) {}
}
