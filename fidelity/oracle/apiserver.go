package main

// kube-apiserver in this process, started as by its own command, but with
// other flags, and restartable.

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/pflag"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	basecompatibility "k8s.io/component-base/compatibility"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
)

const year = 365 * 24 * time.Hour

// peerFeature lets kube-apiservers discover each other, by default since 1.36.
// Its constant is in different packages in the supported versions.
const peerFeature = "UnknownVersionInteroperabilityProxy"

type apiServer struct {
	URL string

	settings settings
	store    *store
	creds    credentials
	args     []string
	client   *http.Client

	cancel context.CancelFunc
	done   chan error // result of the current run
	died   chan error // error of a run that ended without Stop
	logged bool
}

func newAPIServer(s settings, creds credentials, store *store) *apiServer {
	args := []string{
		"--etcd-servers=" + store.URL,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", s.apiPort),
		"--tls-cert-file=" + creds.certFile,
		"--tls-private-key-file=" + creds.keyFile,
		"--token-auth-file=" + creds.tokenFile,
		"--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + creds.serviceAccountKeyFile,
		"--service-account-signing-key-file=" + creds.serviceAccountKeyFile,
	}
	if s.quietStore {
		args = append(args, "--endpoint-reconciler-type=none")
		// The identity lease is written once, and not renewed every 10 s. Disabling
		// the feature would change the responses of discovery.
		controlplaneapiserver.IdentityLeaseDurationSeconds = int(year.Seconds())
		controlplaneapiserver.IdentityLeaseRenewIntervalPeriod = year
	}
	// The caller's flags are last, and override the others.
	args = append(args, s.apiserverArgs...)

	return &apiServer{
		URL:      fmt.Sprintf("https://127.0.0.1:%d", s.apiPort),
		settings: s,
		store:    store,
		creds:    creds,
		args:     args,
		client: &http.Client{
			Timeout: 10 * time.Second,
			Transport: &http.Transport{
				DisableKeepAlives: true,
				TLSClientConfig:   &tls.Config{RootCAs: creds.pool},
			},
		},
		died: make(chan error, 1),
	}
}

// Start returns when /readyz returns ok.
func (a *apiServer) Start() error {
	completed, err := a.options()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	a.cancel, a.done = cancel, done
	go func() {
		err := a.run(ctx, completed)
		if ctx.Err() == nil {
			if err == nil {
				err = errors.New("exited without an error")
			}
			a.died <- err
		}
		done <- err
	}()

	deadline := time.After(a.settings.readyTimeout)
	for {
		body, err := a.get("/readyz")
		if err == nil && body == "ok" {
			return a.settle()
		}
		select {
		case err := <-a.died:
			return err
		case <-deadline:
			return fmt.Errorf("not ready within %s: %v %s", a.settings.readyTimeout, err, body)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// settle waits for the last write of kube-apiserver itself.
func (a *apiServer) settle() error {
	peers := utilfeature.DefaultFeatureGate.Enabled(peerFeature)
	if !a.settings.quietStore || !peers {
		return nil
	}
	return a.store.RemovePeerLease(context.Background())
}

// run is app.Run, with one setting that has no flag.
func (a *apiServer) run(ctx context.Context, completed options.CompletedOptions) error {
	config, err := app.NewConfig(completed)
	if err != nil {
		return err
	}
	if a.settings.quietStore {
		// Otherwise this lease is written every 10 s.
		config.KubeAPIs.ControlPlane.Extra.PeerEndpointReconcileInterval = year
	}
	completedConfig, err := config.Complete()
	if err != nil {
		return err
	}
	chain, err := app.CreateServerChain(completedConfig)
	if err != nil {
		return err
	}
	prepared, err := chain.PrepareRun()
	if err != nil {
		return err
	}
	return prepared.Run(ctx)
}

func (a *apiServer) Stop() error {
	a.cancel()
	select {
	case err := <-a.done:
		return err
	case <-time.After(90 * time.Second):
		return errors.New("kube-apiserver did not stop within 90 s")
	}
}

// Restart stops kube-apiserver and starts it again on the same port and store:
// all watch caches are rebuilt at the current revision.
func (a *apiServer) Restart() error {
	if err := a.Stop(); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	if err := a.Start(); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	return nil
}

func (a *apiServer) Died() <-chan error { return a.died }

func (a *apiServer) Version() (string, error) {
	body, err := a.get("/version")
	if err != nil {
		return "", err
	}
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal([]byte(body), &version); err != nil {
		return "", err
	}
	return version.GitVersion, nil
}

// options is based on NewAPIServerCommand of k8s.io/kubernetes/cmd/kube-apiserver/app,
// which can be called only once, because it installs the signal handler.
func (a *apiServer) options() (options.CompletedOptions, error) {
	var none options.CompletedOptions
	run := options.NewServerRunOptions()
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range run.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(a.args); err != nil {
		return none, err
	}
	registry := run.GenericServerRunOptions.ComponentGlobalsRegistry
	if err := registry.Set(); err != nil {
		return none, err
	}
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	if !a.logged {
		gate := registry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
		if err := logsapi.ValidateAndApply(run.Logs, gate); err != nil {
			return none, err
		}
		a.logged = true
	}
	completed, err := run.Complete(context.Background())
	if err != nil {
		return none, err
	}
	return completed, utilerrors.NewAggregate(completed.Validate())
}

func (a *apiServer) get(path string) (string, error) {
	request, err := http.NewRequest(http.MethodGet, a.URL+path, nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+adminToken)
	response, err := a.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}
