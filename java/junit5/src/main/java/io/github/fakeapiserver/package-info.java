/**
 * An in-memory Kubernetes apiserver for JUnit 5 tests: {@link io.github.fakeapiserver.WithFakeApiserver} starts it, {@link
 * io.github.fakeapiserver.FakeApiserver} breaks LIST and WATCH on cue, and violations by clients fail the test.
 */
package io.github.fakeapiserver;
