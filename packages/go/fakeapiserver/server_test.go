package fakeapiserver_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/fake-apiserver/fake-apiserver/packages/go/fakeapiserver"
)

type object = map[string]any

func get(t *testing.T, url string) *http.Response {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

func TestARuleMatchesItsRequest(t *testing.T) {
	server := fakeapiserver.Start(t)
	added := server.Inject(fakeapiserver.Rule{Name: "flaky", When: object{"list": "next"}, Do: object{"reply": object{"status": 503}}})
	if added.Rule == nil || added.Rule.Name != "flaky" {
		t.Fatalf("not active: %+v", added)
	}
	if status := get(t, server.URL+"/api/v1/pods").StatusCode; status != 503 {
		t.Fatalf("status %d", status)
	}
	found := server.Wait(fakeapiserver.Wait{When: object{"list": 1}, Since: added.NextRecord})
	if !strings.Contains(found.Line, "LIST") {
		t.Fatal(found.Line)
	}
	server.ExpectNoViolations()
	kubeconfig, err := os.ReadFile(server.Kubeconfig)
	if err != nil || !strings.Contains(string(kubeconfig), server.URL) {
		t.Fatal(err, string(kubeconfig))
	}
}

func TestEveryPathOfTheControlAPI(t *testing.T) {
	ctx, server := context.Background(), fakeapiserver.Start(t, "--kubernetes-version", "1.34")
	state, err := server.Control.State(ctx)
	if err != nil || state.Kubernetes != "1.34" {
		t.Fatal(state, err)
	}
	delay := fakeapiserver.Rule{When: object{"list": "next"}, Do: object{"delay": "1s"}}
	first, second := server.Inject(delay), server.Inject(delay)
	if _, err := server.Control.RemoveRule(ctx, first.Rule.ID); err != nil {
		t.Fatal(err)
	}
	rules, err := server.Control.Rules(ctx)
	if err != nil || len(rules) != 1 || rules[0].ID != second.Rule.ID {
		t.Fatal(rules, err)
	}
	if _, err := server.Control.RemoveRules(ctx); err != nil {
		t.Fatal(err)
	}
	server.Inject(delay)
	server.Reset()
	if rules, _ = server.Control.Rules(ctx); len(rules) != 0 {
		t.Fatal(rules)
	}
	streams, err := server.Control.Streams(ctx)
	if err != nil || len(streams) != 0 {
		t.Fatal(streams, err)
	}
	get(t, server.URL+"/api/v1/pods")
	records, err := server.Control.Trace(ctx, state.NextRecord)
	if err != nil || len(records) == 0 {
		t.Fatal(records, err)
	}
	_, err = server.Control.AddRule(ctx, fakeapiserver.Rule{Do: object{"explode": true}})
	var rejected *fakeapiserver.ControlError
	if !errors.As(err, &rejected) || rejected.Status != 400 || !strings.Contains(rejected.Reason, "no key `explode`") {
		t.Fatal(err)
	}
}

// recorder is a testing.TB that records errors instead of failing the test.
type recorder struct {
	*testing.T
	errors   []string
	cleanups []func()
}

func (r *recorder) Errorf(format string, arguments ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, arguments...))
}
func (r *recorder) Error(arguments ...any) { r.errors = append(r.errors, fmt.Sprint(arguments...)) }
func (r *recorder) Cleanup(do func())      { r.cleanups = append([]func(){do}, r.cleanups...) }
func (r *recorder) Failed() bool           { return false }

func TestViolationsFailTheTestAtItsEnd(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		test := &recorder{T: t}
		server := fakeapiserver.Start(test)
		configMaps := server.URL + "/api/v1/configmaps"
		if _, err := io.Copy(io.Discard, get(t, configMaps).Body); err != nil {
			t.Fatal(err)
		}
		state, err := server.Control.State(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		watch := configMaps + "?watch=true&resourceVersion=" + state.ResourceVersion
		stream := get(t, watch)
		server.Expire(nil)
		if line, err := bufio.NewReader(stream.Body).ReadString('\n'); err != nil || !strings.Contains(line, "410") {
			t.Fatal(line, err)
		}
		// Resumes from the expired version.
		get(t, watch)
		if allowed {
			server.AllowViolations()
		}
		for _, cleanup := range test.cleanups {
			cleanup()
		}
		if found := strings.Join(test.errors, "\n"); strings.Contains(found, "INV-04") == allowed {
			t.Fatalf("allowed: %v, errors: %q", allowed, found)
		}
	}
}

func TestNoClientIsNoVerdict(t *testing.T) {
	test := &recorder{T: t}
	server := fakeapiserver.Start(test)
	server.ExpectNoViolations()
	for _, cleanup := range test.cleanups {
		cleanup()
	}
	if len(test.errors) != 1 || !strings.Contains(test.errors[0], "no client") {
		t.Fatal(test.errors)
	}
}
