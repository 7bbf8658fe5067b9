package io.github.fakeapiserver;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.HttpURLConnection;
import java.net.Proxy;
import java.net.URI;
import java.nio.file.Files;
import org.junit.jupiter.api.Test;
import org.junit.platform.testkit.engine.EngineTestKit;
import org.junit.platform.testkit.engine.Events;

@WithFakeApiserver
class FakeApiserverTest {
    private static final String DELAY = "{when: {list: next}, do: {delay: 1s}}";

    private static HttpURLConnection opened(String url) throws IOException {
        return (HttpURLConnection) URI.create(url).toURL().openConnection(Proxy.NO_PROXY);
    }

    @Test
    void aRuleMatchesItsRequest(FakeApiserver server) throws IOException {
        assertTrue(Files.readString(server.kubeconfig()).contains(server.url()));
        Control.Injected added = server.inject("{name: flaky, when: {list: next}, do: {reply: {status: 503}}}");
        assertEquals("flaky", server.control().rules().get(0).name());
        assertEquals(503, opened(server.url() + "/api/v1/pods").getResponseCode());
        assertTrue(server.control().rules().isEmpty());
        Control.WaitResult found = server.await("when: {list: 1}", added.nextRecord());
        assertTrue(found.line().contains("LIST"));
        assertFalse(server.control().trace(added.nextRecord()).isEmpty());
        server.expectNoViolations();
    }

    @Test
    void rulesCanBeRemoved(FakeApiserver server) {
        long first = server.inject(DELAY).rule().id();
        server.inject(DELAY);
        server.control().removeRule(first);
        assertEquals(1, server.control().removeRules().size());
        server.inject(DELAY);
        server.reset();
        assertEquals(0, server.control().state().rules());
        assertTrue(server.control().streams().isEmpty());
    }

    @Test
    void aMistakeInARuleIsReported(FakeApiserver server) {
        ControlException rejected = assertThrows(ControlException.class, () -> server.inject("{do: {explode: true}}"));
        assertEquals(400, rejected.status());
        assertTrue(rejected.getMessage().contains("no key `explode`"), rejected.getMessage());
        assertThrows(AssertionError.class, server::expectNoViolations);
    }

    @Test
    @WithFakeApiserver({"--kubernetes-version", "1.34"})
    void argumentsReachTheServer(FakeApiserver server) {
        assertEquals("1.34", server.control().state().kubernetes());
    }

    @Test
    void violationsFailTheTestAtItsEnd() {
        Events tests = EngineTestKit.engine("junit-jupiter").selectors(selectClass(ResumesAfter410.class)).execute().testEvents();
        tests.assertStatistics(counts -> counts.started(2).succeeded(1).failed(1));
        assertTrue(tests.failed().list().get(0).toString().contains("INV-04"), tests.failed().list()::toString);
    }

    /** A client that resumes from an expired version. Run only by the test above. */
    @WithFakeApiserver
    static class ResumesAfter410 {
        @Test
        void fails(FakeApiserver server) throws IOException {
            violate(server);
        }

        @Test
        void isAllowed(FakeApiserver server) throws IOException {
            server.allowViolations();
            violate(server);
        }

        private static void violate(FakeApiserver server) throws IOException {
            String configMaps = server.url() + "/api/v1/configmaps";
            String version;
            try (InputStream list = opened(configMaps).getInputStream()) {
                version = Control.JSON.readTree(list).path("metadata").path("resourceVersion").asText();
            }
            String watch = configMaps + "?watch=true&resourceVersion=" + version;
            InputStream stream = opened(watch).getInputStream();
            server.expire("configmaps");
            try (BufferedReader lines = new BufferedReader(new InputStreamReader(stream))) {
                assertTrue(lines.readLine().contains("410"));
            }
            opened(watch).getInputStream();
        }
    }
}
