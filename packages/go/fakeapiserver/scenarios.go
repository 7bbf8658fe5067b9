package fakeapiserver

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// Scenarios selects scenarios, and the failures that do not count.
type Scenarios struct {
	// IDs are files, folders or ids such as "gone/"; none selects all that are built in.
	IDs []string
	// Libraries whose known failures do not count, such as "client-go@0.37".
	Libraries []string
	// KnownFailures is a file of known failures.
	KnownFailures string
	// Arguments are further ones of `fake-apiserver run`.
	Arguments []string
}

// Played is the result of a scenario.
type Played struct {
	ID string
	// Verdict is passed, warned, failed, known, not_scored, skipped, not_judged, not_started or interrupted.
	Verdict string
	Message string
	// Known is the reason of a known failure.
	Known *struct{ By, Reason, Issue string }
}

// RunScenarios plays scenarios against a command that gets KUBECONFIG, as `fake-apiserver run` does. Each is a subtest: a known
// failure, a warning and what is not scored pass and log their reason, and a scenario that is not played is skipped.
func RunScenarios(t *testing.T, scenarios Scenarios, command ...string) {
	t.Helper()
	played, err := play(scenarios, command)
	for _, result := range played {
		t.Run(result.ID, func(t *testing.T) {
			switch result.Verdict {
			case "passed":
			case "known":
				t.Logf("known, by %s: %s (%s)", result.Known.By, result.Known.Reason, result.Known.Issue)
			case "warned", "not_scored":
				t.Logf("%s: %s", result.Verdict, result.Message)
			case "skipped":
				t.Skip(result.Message)
			default:
				t.Errorf("%s: %s", result.Verdict, result.Message)
			}
		})
	}
	// Failures are reported above; an invalid option or a stale entry is not about one of these scenarios.
	if err != nil && !t.Failed() {
		t.Error(err)
	}
}

// failure is the exit of `fake-apiserver run`, with what it printed about it.
type failure struct{ why, printed string }

func (f failure) Error() string { return "fake-apiserver run: " + f.why + "\n" + f.printed }

// play returns the results, also with an error.
func play(scenarios Scenarios, command []string) ([]Played, error) {
	binary, err := Binary()
	if err != nil {
		return nil, err
	}
	words := []string{"run", "--format", "json"}
	for _, library := range scenarios.Libraries {
		words = append(words, "--library", library)
	}
	if scenarios.KnownFailures != "" {
		words = append(words, "--known-failures", scenarios.KnownFailures)
	}
	words = append(words, scenarios.Arguments...)
	words = append(words, scenarios.IDs...)
	run := exec.Command(binary, append(append(words, "--"), command...)...)
	var printed bytes.Buffer
	run.Stderr = &printed
	output, err := run.Output()
	if err != nil {
		err = failure{err.Error(), strings.TrimSpace(printed.String())}
	}
	var played []Played
	for _, line := range bytes.Split(output, []byte("\n")) {
		var result struct {
			Played
			File   string
			Footer json.RawMessage
		}
		if json.Unmarshal(line, &result) != nil || result.Footer != nil {
			continue
		}
		if result.ID == "" {
			result.ID = result.File
		}
		played = append(played, result.Played)
	}
	return played, err
}
