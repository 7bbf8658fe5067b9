package fakeapiserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Control is the control API of a running server: one method per path of schema/control.v1.openapi.json.
type Control struct {
	// URL of the control API.
	URL string
	// Token is its bearer token.
	Token string
}

// Rule is a fault or another action: what to do, on which requests of which clients. See docs/control-api.md.
type Rule struct {
	// Name is shown in the trace.
	Name string `json:"name,omitempty"`
	// From has conditions on the client and the request, such as {"resource": "pods"}.
	From map[string]any `json:"from,omitempty"`
	// When is the request that the rule waits for, such as {"list": "next"}. Without it the rule is carried out at once, on
	// every open watch that From matches.
	When map[string]any `json:"when,omitempty"`
	// Times is the number of requests; 0 means once.
	Times int `json:"times,omitempty"`
	// For is a duration such as "30s", in place of Times.
	For string `json:"for,omitempty"`
	// Do is one action or a list of them, such as {"reply": {"status": 503}}.
	Do any `json:"do"`
}

// Wait is a condition on the trace. One of When, Sent and Closed is set.
type Wait struct {
	From    map[string]any `json:"from,omitempty"`
	When    map[string]any `json:"when,omitempty"`
	Sent    map[string]any `json:"sent,omitempty"`
	Closed  string         `json:"closed,omitempty"`
	Since   uint64         `json:"since"`
	Timeout string         `json:"timeout,omitempty"`
}

// Injected is an added rule, or one that was carried out at once.
type Injected struct {
	// Rule is the active rule, or nil if it was carried out at once.
	Rule *Standing `json:"rule"`
	// Streams are the open responses that it was carried out on.
	Streams []uint64 `json:"streams"`
	// NextRecord is the number of the next record of the trace: Since of a Wait that must miss nothing.
	NextRecord uint64 `json:"nextRecord"`
}

// Standing is an active rule.
type Standing struct {
	ID       uint64 `json:"id"`
	Name     string `json:"name"`
	WaitsFor string `json:"waitsFor"`
	Does     string `json:"does"`
	Met      uint64 `json:"met"`
}

// Found is the record that a Wait was for.
type Found struct {
	// Line is the record as the log of the server prints it.
	Line string `json:"line"`
	// Stream is the response it belongs to.
	Stream uint64 `json:"stream"`
	// NextRecord is the number of the record behind it.
	NextRecord uint64 `json:"nextRecord"`
}

// State is the state of the server.
type State struct {
	Version         string `json:"version"`
	Kubernetes      string `json:"kubernetes"`
	ResourceVersion string `json:"resourceVersion"`
	NextRecord      uint64 `json:"nextRecord"`
	Rules           int    `json:"rules"`
	OpenStreams     int    `json:"openStreams"`
}

// Stream is an open response.
type Stream struct {
	Stream    uint64 `json:"stream"`
	Verb      string `json:"verb"`
	Target    string `json:"target"`
	UserAgent string `json:"userAgent"`
}

// Verdict is what the requests of all clients prove so far.
type Verdict struct {
	// Outcome is "pass", "mismatch", or "nothing" if no client listed or watched.
	Outcome string          `json:"outcome"`
	Clients []ClientVerdict `json:"clients"`
}

// ClientVerdict is the verdict on one User-Agent.
type ClientVerdict struct {
	Client         string      `json:"client"`
	Requests       int         `json:"requests"`
	Contradictions []Violation `json:"contradictions"`
}

// Violation is a broken invariant, with the request that proves it.
type Violation struct {
	Client   string `json:"client"`
	Reading  string `json:"reading"`
	Check    string `json:"check"`
	Sentence string `json:"sentence"`
	Proof    string `json:"proof"`
}

// Refused is a request that the control API rejected.
type Refused struct {
	Status int
	Reason string `json:"error"`
	Hint   string `json:"hint"`
}

func (r *Refused) Error() string {
	if r.Hint == "" {
		return fmt.Sprintf("%d: %s", r.Status, r.Reason)
	}
	return fmt.Sprintf("%d: %s (%s)", r.Status, r.Reason, r.Hint)
}

// State returns version, resourceVersion and the number of the next record.
func (c *Control) State(ctx context.Context) (State, error) {
	return send[State](ctx, c, "GET", "/v1", nil)
}

// Streams returns the open responses.
func (c *Control) Streams(ctx context.Context) ([]Stream, error) {
	answer, err := send[struct{ Streams []Stream }](ctx, c, "GET", "/v1/streams", nil)
	return answer.Streams, err
}

// Rules returns the active rules.
func (c *Control) Rules(ctx context.Context) ([]Standing, error) {
	answer, err := send[struct{ Rules []Standing }](ctx, c, "GET", "/v1/rules", nil)
	return answer.Rules, err
}

// AddRule adds a rule.
func (c *Control) AddRule(ctx context.Context, rule Rule) (Injected, error) {
	return send[Injected](ctx, c, "POST", "/v1/rules", rule)
}

// RemoveRules removes all rules.
func (c *Control) RemoveRules(ctx context.Context) error {
	_, err := send[any](ctx, c, "DELETE", "/v1/rules", nil)
	return err
}

// RemoveRule removes a rule.
func (c *Control) RemoveRule(ctx context.Context, id uint64) error {
	_, err := send[any](ctx, c, "DELETE", fmt.Sprintf("/v1/rules/%d", id), nil)
	return err
}

// WaitFor waits for a record of the trace. A timeout is a *Refused with status 504.
func (c *Control) WaitFor(ctx context.Context, wait Wait) (Found, error) {
	return send[Found](ctx, c, "POST", "/v1/wait", wait)
}

// Trace returns the records of the trace from number since on, each as JSON.
func (c *Control) Trace(ctx context.Context, since uint64) ([]json.RawMessage, error) {
	response, err := c.request(ctx, "GET", fmt.Sprintf("/v1/trace?since=%d", since), nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var records []json.RawMessage
	lines := bufio.NewReader(response.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			records = append(records, bytes.TrimSpace(line))
		}
		if err == io.EOF {
			return records, nil
		}
		if err != nil {
			return records, err
		}
	}
}

// Verdict returns the verdict on every client so far.
func (c *Control) Verdict(ctx context.Context) (Verdict, error) {
	return send[Verdict](ctx, c, "GET", "/v1/verdict", nil)
}

// Reset removes all rules and faults, and restores the initial objects.
func (c *Control) Reset(ctx context.Context) error {
	_, err := send[any](ctx, c, "POST", "/v1/reset", nil)
	return err
}

func send[T any](ctx context.Context, c *Control, method, path string, body any) (T, error) {
	var answer T
	response, err := c.request(ctx, method, path, body)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	return answer, json.NewDecoder(response.Body).Decode(&answer)
}

// A server on this machine is never behind a proxy.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func (c *Control) request(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var text bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&text).Encode(body); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, c.URL+path, &text)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	response, err := client.Do(request)
	if err != nil || response.StatusCode < 300 {
		return response, err
	}
	defer response.Body.Close()
	refused := &Refused{Status: response.StatusCode}
	if err := json.NewDecoder(response.Body).Decode(refused); err != nil {
		refused.Reason = "rejected without an error message"
	}
	return nil, refused
}
