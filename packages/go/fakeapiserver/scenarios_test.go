package fakeapiserver

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const scenario = "watch/clean-eof-resumes-from-the-last-event"

// TestMain lets this program be the command under test: it lists once and then fails.
func TestMain(m *testing.M) {
	if os.Getenv("FAKE_APISERVER_SCENARIO") == "" {
		os.Exit(m.Run())
	}
	kubeconfig, _ := os.ReadFile(os.Getenv("KUBECONFIG"))
	server := regexp.MustCompile(`https?://[^\s",]+`).FindString(string(kubeconfig))
	response, err := http.Get(server + "/api/v1/namespaces/default/configmaps")
	if err == nil {
		_, _ = io.Copy(io.Discard, response.Body)
	}
	os.Exit(1)
}

func TestAFailureCountsUnlessItIsKnown(t *testing.T) {
	once := Scenarios{IDs: []string{scenario}, Arguments: []string{"--restart", "never"}}
	played, err := play(once, []string{os.Args[0]})
	if err == nil || len(played) != 1 || played[0].Verdict != "failed" || played[0].ID != scenario {
		t.Fatal(played, err)
	}
	once.KnownFailures = filepath.Join(t.TempDir(), "known.yaml")
	entry := "- {scenario: " + scenario + ", outcome: crash, reason: it lists once, issue: none public}\n"
	if err := os.WriteFile(once.KnownFailures, []byte(entry), 0o644); err != nil {
		t.Fatal(err)
	}
	RunScenarios(t, once, os.Args[0])
	if played, err = play(once, []string{os.Args[0]}); err != nil || played[0].Known.Reason != "it lists once" {
		t.Fatal(played, err)
	}
}

func TestAnUnknownLibraryIsNamed(t *testing.T) {
	_, err := play(Scenarios{Libraries: []string{"nope"}}, []string{os.Args[0]})
	if err == nil || !strings.Contains(err.Error(), "'nope'") {
		t.Fatal(err)
	}
}
