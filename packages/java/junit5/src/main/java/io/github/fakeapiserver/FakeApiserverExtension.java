package io.github.fakeapiserver;

import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.platform.commons.support.AnnotationSupport;

/** Resolves the {@link FakeApiserver} parameters of tests. Registered by {@link WithFakeApiserver}. */
public final class FakeApiserverExtension implements ParameterResolver, AfterEachCallback {
    private static final Namespace NAMESPACE = Namespace.create(FakeApiserverExtension.class);

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == FakeApiserver.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        // @BeforeEach and the test share one server.
        return context.getStore(NAMESPACE)
                .getOrComputeIfAbsent("server", key -> FakeApiserver.start(arguments(context)), FakeApiserver.class);
    }

    @Override
    public void afterEach(ExtensionContext context) {
        FakeApiserver server = context.getStore(NAMESPACE).remove("server", FakeApiserver.class);
        if (server == null) {
            return;
        }
        try (server) {
            if (context.getExecutionException().isPresent()) {
                context.publishReportEntry("fake-apiserver", server.log());
            } else {
                server.checkAtEnd();
            }
        }
    }

    private static String[] arguments(ExtensionContext context) {
        return AnnotationSupport.findAnnotation(context.getElement(), WithFakeApiserver.class)
                .or(() -> AnnotationSupport.findAnnotation(context.getTestClass(), WithFakeApiserver.class))
                .map(WithFakeApiserver::value)
                .orElse(new String[0]);
    }
}
