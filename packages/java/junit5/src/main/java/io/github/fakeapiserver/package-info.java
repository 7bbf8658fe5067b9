/**
 * An in-memory Kubernetes apiserver for JUnit 5 tests: {@link io.github.fakeapiserver.WithFakeApiserver} starts it, {@link
 * io.github.fakeapiserver.FakeApiserver} injects faults into LIST and WATCH, and violations by clients fail the test.
 */
package io.github.fakeapiserver;
