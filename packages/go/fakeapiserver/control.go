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

// Control is the control API of a running server. A wait that times out is a *ControlError with status 504.
type Control struct {
	// URL of the control API.
	URL string
	// Token is its bearer token.
	Token string
}

// ControlError is a request that the control API rejected.
type ControlError struct {
	Status int
	Reason string `json:"error"`
	Hint   string `json:"hint"`
}

func (r *ControlError) Error() string {
	if r.Hint == "" {
		return fmt.Sprintf("%d: %s", r.Status, r.Reason)
	}
	return fmt.Sprintf("%d: %s (%s)", r.Status, r.Reason, r.Hint)
}

// lines returns the lines of a response, each of them JSON.
func (c *Control) lines(ctx context.Context, path string) ([]json.RawMessage, error) {
	response, err := c.request(ctx, "GET", path, nil)
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

func send[T any](ctx context.Context, c *Control, method, path string, body any) (T, error) {
	var result T
	response, err := c.request(ctx, method, path, body)
	if err != nil {
		return result, err
	}
	defer response.Body.Close()
	return result, json.NewDecoder(response.Body).Decode(&result)
}

// The server is local: no proxy.
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
	rejected := &ControlError{Status: response.StatusCode}
	if err := json.NewDecoder(response.Body).Decode(rejected); err != nil {
		rejected.Reason = "no error message"
	}
	return nil, rejected
}
