package io.github.fakeapiserver;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.List;

/** The control API of a running server. A wait that times out throws {@link ControlException} with status 504. */
public final class Control extends Operations {
    // A newer server may send more fields.
    static final ObjectMapper JSON =
            JsonMapper.builder().disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES).build();

    // The server is local: no proxy.
    private final HttpClient client =
            HttpClient.newBuilder().proxy(HttpClient.Builder.NO_PROXY).version(HttpClient.Version.HTTP_1_1).build();
    private final String url;
    private final String token;

    Control(String url, String token) {
        this.url = url;
        this.token = token;
    }

    @Override
    JsonNode send(String method, String path, String body) {
        return parse(text(method, path, body));
    }

    @Override
    List<JsonNode> lines(String path) {
        return text("GET", path, "").lines().map(Control::parse).toList();
    }

    @Override
    <T> T read(JsonNode json, Class<T> type) {
        return JSON.convertValue(json, type);
    }

    @Override
    <T> List<T> readList(JsonNode json, Class<T> type) {
        return JSON.convertValue(json, JSON.getTypeFactory().constructCollectionType(List.class, type));
    }

    static JsonNode parse(String text) {
        try {
            return JSON.readTree(text);
        } catch (IOException error) {
            throw new UncheckedIOException("not JSON: " + text, error);
        }
    }

    private String text(String method, String path, String body) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url + path))
                .header("Authorization", "Bearer " + token)
                .method(method, BodyPublishers.ofString(body))
                .build();
        try {
            HttpResponse<String> response = client.send(request, BodyHandlers.ofString());
            if (response.statusCode() >= 300) {
                throw new ControlException(response.statusCode(), parse(response.body()));
            }
            return response.body();
        } catch (IOException error) {
            throw new UncheckedIOException("cannot reach the control API", error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted", error);
        }
    }
}
