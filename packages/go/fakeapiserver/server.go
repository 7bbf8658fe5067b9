// Package fakeapiserver starts an in-memory Kubernetes apiserver for a test, injects faults into LIST and WATCH, and fails the
// test if a client violated their rules.
//
//	server := fakeapiserver.Start(t)
//	config, err := clientcmd.BuildConfigFromFlags("", server.Kubeconfig) // or &rest.Config{Host: server.URL}
//	// start the controller, then:
//	expired := server.Expire(nil)
//	server.Wait(fakeapiserver.Wait{When: map[string]any{"watch": 1}, Since: expired.NextRecord})
//
// The last line waits for the next watch, which a relist ends with: an informer of client-go reads its list as a stream, and sends no
// LIST.
//
// The package depends only on the standard library, so that importing it never changes the version of client-go. It starts
// the program fake-apiserver, which it finds or downloads: see [Binary].
package fakeapiserver

import (
	"bufio"
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// stopWithin is the time limit for the server to exit after SIGTERM.
const stopWithin = 10 * time.Second

// Server is the running server of one test. Its methods call t.Fatal on errors: call them from the goroutine of the test.
type Server struct {
	// URL of the Kubernetes API.
	URL string
	// Kubeconfig is the path of a kubeconfig for the server.
	Kubeconfig string
	// Control is the control API, whose methods return errors.
	Control *Control

	t       testing.TB
	log     log
	allowed bool
}

// Start runs `fake-apiserver serve` with additional arguments until the test ends. Then violations fail the test, with the log of
// the server.
func Start(t testing.TB, arguments ...string) *Server {
	t.Helper()
	binary, err := Binary()
	if err != nil {
		t.Fatal(err)
	}
	// The server exits when its standard input is closed, also if this process is killed.
	command := exec.Command(binary, append([]string{"serve", "--announce", "json", "--exit-with-stdin"}, arguments...)...)
	server := &Server{t: t}
	command.Stderr = &server.log
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("cannot start %s: %v", binary, err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(stopWithin, func() { _ = command.Process.Kill() })
		// The exit code repeats the verdict.
		_ = command.Wait()
		kill.Stop()
		_ = stdin.Close()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		_ = command.Wait()
		t.Fatalf("fake-apiserver did not start: %s", server.log.String())
	}
	var announced struct {
		Server, Control, Token string
		Kubeconfigs            []string
	}
	if err := json.Unmarshal([]byte(line), &announced); err != nil || len(announced.Kubeconfigs) == 0 {
		t.Fatalf("fake-apiserver announced %q: %v", line, err)
	}
	server.URL, server.Kubeconfig = announced.Server, announced.Kubeconfigs[0]
	server.Control = &Control{URL: announced.Control, Token: announced.Token}
	t.Cleanup(server.checkAtEnd)
	return server
}

// Inject adds a rule. Without When its actions run immediately.
func (s *Server) Inject(rule Rule) Injected {
	s.t.Helper()
	return must(s, func(ctx context.Context) (Injected, error) { return s.Control.AddRule(ctx, rule) })
}

// Expire ends open watches with a 410 Gone event: all, or those that match from, such as {"resource": "pods"}.
func (s *Server) Expire(from map[string]any) Injected {
	s.t.Helper()
	gone := map[string]any{"code": 410, "reason": "Expired", "message": "The resourceVersion for the provided watch is too old."}
	return s.Inject(Rule{From: from, Do: []any{map[string]any{"error": gone}, map[string]any{"end": "eof"}}})
}

// Wait waits for a record of the trace, for wait.Timeout or 30 s.
func (s *Server) Wait(wait Wait) WaitResult {
	s.t.Helper()
	return must(s, func(ctx context.Context) (WaitResult, error) { return s.Control.WaitFor(ctx, wait) })
}

// Reset removes all rules and faults, and restores the initial objects.
func (s *Server) Reset() {
	s.t.Helper()
	must(s, s.Control.Reset)
}

// Verdict returns the verdict on every client so far.
func (s *Server) Verdict() Verdict {
	s.t.Helper()
	return must(s, s.Control.Verdict)
}

// ExpectNoViolations fails the test if a client violated an invariant, or if none listed or watched.
func (s *Server) ExpectNoViolations() {
	s.t.Helper()
	verdict := s.Verdict()
	if verdict.Outcome == "nothing" {
		s.t.Error("no client listed or watched: nothing was judged")
	}
	s.report(verdict)
}

// AllowViolations keeps violations from failing the test at its end.
func (s *Server) AllowViolations() { s.allowed = true }

// Log returns the log of the server: requests, responses, violations.
func (s *Server) Log() string { return s.log.String() }

func (s *Server) checkAtEnd() {
	if s.t.Failed() {
		s.t.Logf("log of fake-apiserver:\n%s", s.Log())
		return
	}
	if !s.allowed {
		s.report(s.Verdict())
	}
}

func (s *Server) report(verdict Verdict) {
	s.t.Helper()
	for _, client := range verdict.Clients {
		for _, found := range client.Contradictions {
			s.t.Errorf("%s %s reading %s: %s\n    proof: %s", found.Check, found.Client, found.Reading, found.Sentence, found.Proof)
		}
	}
}

func must[T any](s *Server, call func(context.Context) (T, error)) T {
	s.t.Helper()
	result, err := call(context.Background())
	if err != nil {
		s.t.Fatalf("fake-apiserver: %v", err)
	}
	return result
}

// log collects standard error. The goroutine of exec.Cmd writes to it.
type log struct {
	mutex sync.Mutex
	text  strings.Builder
}

func (l *log) Write(text []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(text)
}

func (l *log) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}
