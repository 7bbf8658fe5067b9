package fakeapiserver

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// packed returns an archive with a program of these bytes, and its digest.
func packed(t *testing.T, content string) ([]byte, string) {
	t.Helper()
	var buffer bytes.Buffer
	compressed := gzip.NewWriter(&buffer)
	files := tar.NewWriter(compressed)
	// A completion script has the name of the program, too.
	for _, file := range []tar.Header{{Name: "a/completions/" + program, Mode: 0o644}, {Name: "a/" + program, Mode: 0o755}} {
		file.Size = int64(len(content))
		if err := files.WriteHeader(&file); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	files.Close()
	compressed.Close()
	digest := sha256.Sum256(buffer.Bytes())
	return buffer.Bytes(), hex.EncodeToString(digest[:])
}

func TestADownloadIsCheckedAndKept(t *testing.T) {
	body, digest := packed(t, "program")
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		requests++
		if request.URL.Path == "/v1/good.tar.gz" || request.URL.Path == "/v1/other.tar.gz" {
			_, _ = response.Write(body)
			return
		}
		http.NotFound(response, request)
	}))
	defer server.Close()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("FAKE_APISERVER_DOWNLOAD", server.URL+"/v1/")
	good := archive{"linux/amd64", "good.tar.gz", digest}
	for range 2 {
		path, err := good.cached()
		if err != nil {
			t.Fatal(err)
		}
		kept, err := os.ReadFile(path)
		if err != nil || string(kept) != "program" {
			t.Fatal(string(kept), err)
		}
		if info, _ := os.Stat(path); info.Mode()&0o111 == 0 {
			t.Fatal("not executable")
		}
	}
	if requests != 1 {
		t.Fatalf("%d downloads", requests)
	}
	for name, expected := range map[string]string{"other.tar.gz": "it is not the file of the release", "none.tar.gz": "404 Not Found: install a release and set FAKE_APISERVER_BIN"} {
		wrong := archive{"linux/amd64", name, strings.Repeat("0", 64)}
		if _, err := wrong.cached(); err == nil || !strings.Contains(err.Error(), expected) {
			t.Fatal(err)
		}
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "good.tar.gz"), body, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("FAKE_APISERVER_DOWNLOAD", "file://"+folder)
	if path, err := good.cached(); err != nil {
		t.Fatal(path, err)
	}
	t.Setenv("FAKE_APISERVER_DOWNLOAD", "off")
	if _, err := (archive{"linux/amd64", "off.tar.gz", "1"}).cached(); err == nil || !strings.Contains(err.Error(), "is off") {
		t.Fatal(err)
	}
}
