package io.github.fakeapiserver;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/** Each test with a {@link FakeApiserver} parameter has its own server, and fails if a client violated an invariant. */
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(FakeApiserverExtension.class)
public @interface WithFakeApiserver {
    /** Additional arguments of {@code fake-apiserver serve}, such as {@code --crd}. */
    String[] value() default {};
}
