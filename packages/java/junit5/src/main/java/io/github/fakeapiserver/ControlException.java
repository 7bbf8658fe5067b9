package io.github.fakeapiserver;

import com.fasterxml.jackson.databind.JsonNode;

/** The control API rejected a request. */
public final class ControlException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final int status;

    ControlException(int status, JsonNode body) {
        super(status + ": " + body.path("error").asText("no error message")
                + (body.hasNonNull("hint") ? " (" + body.path("hint").asText() + ")" : ""));
        this.status = status;
    }

    /** The HTTP status: 400 for a mistake in a rule, 409 for one that matches nothing, 504 for a wait that timed out. */
    public int status() {
        return status;
    }
}
