// Command oracle starts a real kube-apiserver on loopback, to compare the fake
// with it.
//
// One process runs etcd (embedded) and kube-apiserver, and no other component
// of a cluster: no controllers, no scheduler, no kubelet. When it is ready, only
// the probes write to the store, so that two runs are comparable. The crate
// `fidelity` plays the probes.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	adminToken   = "oracle-admin-token"
	limitedToken = "oracle-limited-token"
)

// ready is the line printed on stdout. Programs that start the oracle parse it:
// fields may be added, and must not be renamed.
type ready struct {
	URL          string `json:"url"`
	Token        string `json:"token"`
	LimitedToken string `json:"limitedToken"`
	CAFile       string `json:"caFile"`
	Control      string `json:"control"`
	Etcd         string `json:"etcd"`
	Version      string `json:"version"`
	DataDir      string `json:"dataDir"`
}

type settings struct {
	dataDir        string
	apiPort        int
	etcdPort       int
	controlPort    int
	progressNotify time.Duration
	quietStore     bool
	untilStdinEOF  bool
	readyTimeout   time.Duration
	apiserverArgs  []string
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func parseSettings() settings {
	var s settings
	flag.StringVar(&s.dataDir, "data-dir", "", "folder for etcd's data, certificates and keys; empty: a temporary folder, removed at exit")
	flag.IntVar(&s.apiPort, "api-port", 0, "loopback port of kube-apiserver; 0: a free port")
	flag.IntVar(&s.etcdPort, "etcd-port", 0, "loopback port of etcd; 0: a free port")
	flag.IntVar(&s.controlPort, "control-port", 0, "loopback port of the control endpoint; 0: a free port")
	flag.DurationVar(&s.progressNotify, "etcd-progress-notify", 0, "etcd's watch progress notify interval; 0: etcd's default; kubeadm sets 5s")
	flag.BoolVar(&s.quietStore, "quiet-store", true, "disable writes of kube-apiserver itself (no endpoint reconciler, no renewal of the identity lease)")
	flag.BoolVar(&s.untilStdinEOF, "until-stdin-eof", false, "also stop at the end of stdin")
	flag.DurationVar(&s.readyTimeout, "ready-timeout", 2*time.Minute, "time limit for kube-apiserver to become ready")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: oracle [flags] [-- kube-apiserver flags]\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	s.apiserverArgs = flag.Args()
	return s
}

func run() error {
	s := parseSettings()

	if s.dataDir == "" {
		dir, err := os.MkdirTemp("", "oracle-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		s.dataDir = dir
	}
	dataDir, err := filepath.Abs(s.dataDir)
	if err != nil {
		return err
	}
	s.dataDir = dataDir
	if err := fillPorts(&s.apiPort, &s.etcdPort, &s.controlPort); err != nil {
		return err
	}

	creds, err := writeCredentials(filepath.Join(s.dataDir, "credentials"))
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}

	store, err := startStore(s)
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	defer store.Close()

	server := newAPIServer(s, creds, store)
	if err := server.Start(); err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}
	defer server.Stop()

	control := &http.Server{Handler: controlHandler(store, server)}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.controlPort)))
	if err != nil {
		return err
	}
	go func() { _ = control.Serve(listener) }()
	defer control.Close()

	version, err := server.Version()
	if err != nil {
		return err
	}
	line, err := json.Marshal(ready{
		URL:          server.URL,
		Token:        adminToken,
		LimitedToken: limitedToken,
		CAFile:       creds.caFile,
		Control:      "http://" + listener.Addr().String(),
		Etcd:         store.URL,
		Version:      version,
		DataDir:      s.dataDir,
	})
	if err != nil {
		return err
	}
	fmt.Println(string(line))

	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	if s.untilStdinEOF {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-server.Died():
		return fmt.Errorf("kube-apiserver ended by itself: %w", err)
	}
}

// fillPorts replaces zeros with free loopback ports. All are kept open until the
// last one is found, so that they are distinct.
func fillPorts(ports ...*int) error {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	for _, port := range ports {
		if *port != 0 {
			continue
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		held = append(held, l)
		*port = l.Addr().(*net.TCPAddr).Port
	}
	return nil
}

// controlHandler serves what a client of the API cannot ask for: compaction,
// etcd's revision, and a restart. One request at a time, since each of them
// changes what the others mean.
func controlHandler(store *store, server *apiServer) http.Handler {
	var one sync.Mutex
	answer := func(w http.ResponseWriter, value any, err error) {
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			value = map[string]string{"error": err.Error()}
		}
		_ = json.NewEncoder(w).Encode(value)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /revision", func(w http.ResponseWriter, r *http.Request) {
		revision, compacted, err := store.Revision(r.Context())
		answer(w, map[string]int64{"revision": revision, "compactRevision": compacted}, err)
	})
	mux.HandleFunc("POST /compact", func(w http.ResponseWriter, r *http.Request) {
		one.Lock()
		defer one.Unlock()
		var at int64
		if text := r.URL.Query().Get("revision"); text != "" {
			parsed, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				answer(w, nil, fmt.Errorf("revision: %w", err))
				return
			}
			at = parsed
		}
		compacted, err := store.Compact(r.Context(), at)
		if err == nil && r.URL.Query().Get("settle") != "false" {
			err = sleep(r.Context(), settleTime)
		}
		answer(w, map[string]int64{"compactRevision": compacted}, err)
	})
	mux.HandleFunc("POST /restart-apiserver", func(w http.ResponseWriter, r *http.Request) {
		one.Lock()
		defer one.Unlock()
		began := time.Now()
		err := server.Restart()
		answer(w, map[string]float64{"seconds": time.Since(began).Seconds()}, err)
	})
	return mux
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return errors.New("the request was cancelled before the watch cache handled the compaction")
	}
}
