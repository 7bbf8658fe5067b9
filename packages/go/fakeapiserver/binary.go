package fakeapiserver

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const (
	program = "fake-apiserver"
	// maxArchive is the maximum size of an archive in bytes.
	maxArchive = 200 << 20
	// downloadWithin is the time limit of a download.
	downloadWithin = 5 * time.Minute
)

// archive is a file of the release.
type archive struct {
	// GOOS/GOARCH
	platform string
	name     string
	// SHA-256 in hexadecimal digits
	digest string
}

// Binary returns the path of the program: FAKE_APISERVER_BIN, the one on PATH, or that of this module's version, which is
// downloaded once and kept in the cache of the user (os.UserCacheDir). The digest of the download is part of this module, so that
// go.sum covers it.
//
// FAKE_APISERVER_DOWNLOAD is the URL of the folder to download from instead of the release on GitHub, https or file; "off" forbids
// it.
func Binary() (string, error) {
	if named := os.Getenv("FAKE_APISERVER_BIN"); named != "" {
		return named, nil
	}
	if found, err := exec.LookPath(program); err == nil {
		return found, nil
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	for _, archive := range archives {
		if archive.platform == platform {
			return archive.cached()
		}
	}
	return "", fmt.Errorf("%s is not on PATH, and this module has no download for %s: install a release, or set FAKE_APISERVER_BIN", program, platform)
}

// cached returns the program of the archive, after a download if it is not in the cache.
func (a archive) cached() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for the download of %s: %w", program, err)
	}
	kept := filepath.Join(cache, program, a.digest, program)
	if _, err := os.Stat(kept); err == nil {
		return kept, nil
	}
	from := os.Getenv("FAKE_APISERVER_DOWNLOAD")
	switch from {
	case "":
		from = release
	case "off":
		return "", fmt.Errorf("%s is not on PATH, and FAKE_APISERVER_DOWNLOAD is off: install a release, or set FAKE_APISERVER_BIN", program)
	}
	url := strings.TrimSuffix(from, "/") + "/" + a.name
	packed, err := download(url)
	if err != nil {
		return "", fmt.Errorf("cannot download %s: %w: install a release and set FAKE_APISERVER_BIN, or set FAKE_APISERVER_DOWNLOAD to the URL of a folder with %s", url, err, a.name)
	}
	if found := sha256.Sum256(packed); hex.EncodeToString(found[:]) != a.digest {
		return "", fmt.Errorf("%s has SHA-256 %x, and this module expects %s: it is not the file of the release", url, found, a.digest)
	}
	unpacked, err := unpack(packed)
	if err != nil {
		return "", fmt.Errorf("%s: %w", url, err)
	}
	if err := keep(unpacked, kept); err != nil {
		return "", fmt.Errorf("cannot keep %s: %w", program, err)
	}
	return kept, nil
}

func download(url string) ([]byte, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.RegisterProtocol("file", http.NewFileTransport(http.Dir("/")))
	client := &http.Client{Timeout: downloadWithin, Transport: transport}
	response, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	packed, err := io.ReadAll(io.LimitReader(response.Body, maxArchive+1))
	if err == nil && len(packed) > maxArchive {
		err = fmt.Errorf("more than %d bytes", maxArchive)
	}
	return packed, err
}

// unpack returns the program in an archive.
func unpack(packed []byte) ([]byte, error) {
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	files := tar.NewReader(plain)
	for {
		header, err := files.Next()
		if err == io.EOF {
			return nil, fmt.Errorf("no %s in the archive", program)
		}
		if err != nil {
			return nil, err
		}
		if header.Typeflag == tar.TypeReg && path.Base(header.Name) == program && header.Mode&0o100 != 0 {
			return io.ReadAll(files)
		}
	}
}

// keep writes the program under another name first: tests of several packages start at the same time.
func keep(unpacked []byte, kept string) error {
	folder := filepath.Dir(kept)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	unfinished, err := os.CreateTemp(folder, program+"-")
	if err != nil {
		return err
	}
	defer os.Remove(unfinished.Name())
	_, err = unfinished.Write(unpacked)
	if err == nil {
		err = unfinished.Chmod(0o755)
	}
	if closed := unfinished.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(unfinished.Name(), kept)
}
