package io.github.fakeapiserver;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/** Each test that has a parameter {@link FakeApiserver} gets a server of its own, and fails if a client violated an invariant. */
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(FakeApiserverExtension.class)
public @interface WithFakeApiserver {
    /** Further arguments of {@code fake-apiserver serve}, such as {@code --crd}. */
    String[] value() default {};
}
