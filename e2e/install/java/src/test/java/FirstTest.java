import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fakeapiserver.FakeApiserver;
import io.github.fakeapiserver.WithFakeApiserver;
import java.io.IOException;
import java.io.InputStream;
import java.net.Proxy;
import java.net.URI;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The first test of a project that has added the extension and nothing else. */
@WithFakeApiserver
class FirstTest {
    private static final Pattern VERSION = Pattern.compile("\"metadata\":\\{\"resourceVersion\":\"(\\d+)\"");

    private static InputStream opened(FakeApiserver server, String query) throws IOException {
        URI uri = URI.create(server.url() + "/api/v1/configmaps" + query);
        return uri.toURL().openConnection(Proxy.NO_PROXY).getInputStream();
    }

    private static String listed(FakeApiserver server) throws IOException {
        try (InputStream list = opened(server, "")) {
            Matcher version = VERSION.matcher(new String(list.readAllBytes()));
            assertTrue(version.find());
            return version.group(1);
        }
    }

    @Test
    void aClientListsAgainAfter410(FakeApiserver server) throws IOException {
        try (InputStream watch = opened(server, "?watch=true&resourceVersion=" + listed(server))) {
            server.expire("configmaps");
            assertTrue(new String(watch.readAllBytes()).contains("410"));
        }
        listed(server);
        server.expectNoViolations();
    }
}
