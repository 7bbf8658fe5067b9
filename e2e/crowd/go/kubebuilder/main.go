// Program kubebuilder is an operator as `kubebuilder init`, `create api` and `create webhook` scaffold it: leader election,
// metrics, health probes, a finalizer, an owned object, an event and a validating webhook.
// https://book.kubebuilder.io/getting-started
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	finalizer       = "crowd.example.com/finalizer"
	keysAnnotation  = "crowd.example.com/keys"
	maxKeysAccepted = 100
)

var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")
)

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
}

func main() {
	var metricsAddr, probeAddr, webhookCertPath string
	var webhookPort int
	var enableLeaderElection bool
	flag.StringVar(&metricsAddr, "metrics-bind-address", "127.0.0.1:0", "The address the metrics endpoint binds to.")
	flag.StringVar(&probeAddr, "health-probe-bind-address", "127.0.0.1:0", "The address the probe endpoint binds to.")
	flag.BoolVar(&enableLeaderElection, "leader-elect", true, "Enable leader election for controller manager.")
	flag.StringVar(&webhookCertPath, "webhook-cert-path", "", "The directory that contains the webhook certificate.")
	flag.IntVar(&webhookPort, "webhook-port", 0, "The port of the webhook server; 0 selects a free one.")
	flag.Parse()
	ctrl.SetLogger(zap.New())

	if webhookCertPath == "" {
		dir, err := selfSignedCertificate()
		if err != nil {
			setupLog.Error(err, "unable to create a certificate")
			os.Exit(1)
		}
		defer os.RemoveAll(dir) //nolint:errcheck
		webhookCertPath = dir
	}
	if webhookPort == 0 {
		var err error
		if webhookPort, err = freePort(); err != nil {
			setupLog.Error(err, "unable to find a port")
			os.Exit(1)
		}
	}
	withoutHTTP2 := func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }

	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:  scheme,
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{metav1.NamespaceDefault: {}}},
		Metrics: metricsserver.Options{BindAddress: metricsAddr},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host:    "127.0.0.1",
			Port:    webhookPort,
			CertDir: webhookCertPath,
			TLSOpts: []func(*tls.Config){withoutHTTP2},
		}),
		HealthProbeBindAddress:  probeAddr,
		LeaderElection:          enableLeaderElection,
		LeaderElectionID:        "da1d9c86.crowd.example.com",
		LeaderElectionNamespace: metav1.NamespaceDefault,
	})
	if err != nil {
		setupLog.Error(err, "unable to start manager")
		os.Exit(1)
	}

	if err := (&ConfigMapReconciler{
		Client:   mgr.GetClient(),
		Scheme:   mgr.GetScheme(),
		Recorder: mgr.GetEventRecorder("configmap-controller"),
	}).SetupWithManager(mgr); err != nil {
		setupLog.Error(err, "unable to create controller", "controller", "ConfigMap")
		os.Exit(1)
	}
	if _, err := os.Stat(filepath.Join(webhookCertPath, "tls.crt")); err == nil && os.Getenv("ENABLE_WEBHOOKS") != "false" {
		if err := ctrl.NewWebhookManagedBy(mgr, &corev1.ConfigMap{}).WithValidator(&ConfigMapValidator{}).Complete(); err != nil {
			setupLog.Error(err, "unable to create webhook", "webhook", "ConfigMap")
			os.Exit(1)
		}
	}
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		setupLog.Error(err, "unable to set up health check")
		os.Exit(1)
	}
	if err := mgr.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		setupLog.Error(err, "unable to set up ready check")
		os.Exit(1)
	}

	setupLog.Info("starting manager")
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		setupLog.Error(err, "problem running manager")
		os.Exit(1)
	}
}

// ConfigMapReconciler keeps a Secret for each ConfigMap.
type ConfigMapReconciler struct {
	client.Client
	Scheme   *runtime.Scheme
	Recorder events.EventRecorder
}

// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile brings the Secret, the finalizer and the annotation of a ConfigMap up to date.
func (r *ConfigMapReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var configMap corev1.ConfigMap
	if err := r.Get(ctx, req.NamespacedName, &configMap); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}

	if !configMap.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(&configMap, finalizer) {
			r.Recorder.Eventf(&configMap, nil, corev1.EventTypeNormal, "Deleting", "Finalize", "ConfigMap %s is being deleted", req.Name)
			return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, &configMap))
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(&configMap, finalizer) {
		if err := r.Update(ctx, &configMap); err != nil {
			return ctrl.Result{}, err
		}
	}

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}}
	result, err := controllerutil.CreateOrUpdate(ctx, r.Client, secret, func() error {
		secret.Data = map[string][]byte{}
		for key, value := range configMap.Data {
			secret.Data[key] = []byte(value)
		}
		return controllerutil.SetControllerReference(&configMap, secret, r.Scheme)
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if result != controllerutil.OperationResultNone {
		r.Recorder.Eventf(&configMap, secret, corev1.EventTypeNormal, "Reconciled", "CreateOrUpdate", "Secret %s was %s", req.Name, result)
	}

	keys := strconv.Itoa(len(configMap.Data))
	if configMap.Annotations[keysAnnotation] == keys {
		return ctrl.Result{}, nil
	}
	metav1.SetMetaDataAnnotation(&configMap.ObjectMeta, keysAnnotation, keys)
	return ctrl.Result{}, r.Update(ctx, &configMap)
}

// SetupWithManager sets up the controller with the Manager.
func (r *ConfigMapReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&corev1.ConfigMap{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Secret{}).
		Named("configmap").
		Complete(r)
}

// ConfigMapValidator rejects ConfigMaps with too many keys.
type ConfigMapValidator struct{}

// +kubebuilder:webhook:path=/validate--v1-configmap,mutating=false,failurePolicy=fail,sideEffects=None,groups="",resources=configmaps,verbs=create;update,versions=v1,name=vconfigmap-v1.kb.io,admissionReviewVersions=v1

// ValidateCreate validates a new ConfigMap.
func (v *ConfigMapValidator) ValidateCreate(_ context.Context, configMap *corev1.ConfigMap) (admission.Warnings, error) {
	return nil, validate(configMap)
}

// ValidateUpdate validates a changed ConfigMap.
func (v *ConfigMapValidator) ValidateUpdate(_ context.Context, _, configMap *corev1.ConfigMap) (admission.Warnings, error) {
	return nil, validate(configMap)
}

// ValidateDelete allows all deletions.
func (v *ConfigMapValidator) ValidateDelete(context.Context, *corev1.ConfigMap) (admission.Warnings, error) {
	return nil, nil
}

func validate(configMap *corev1.ConfigMap) error {
	if len(configMap.Data) > maxKeysAccepted {
		return fmt.Errorf("%d keys, at most %d are accepted", len(configMap.Data), maxKeysAccepted)
	}
	return nil
}

// selfSignedCertificate stands for the one that cert-manager mounts. It returns the directory.
func selfSignedCertificate() (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return "", err
	}
	encodedKey, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "webhook-certs-")
	if err != nil {
		return "", err
	}
	for name, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: certificate},
		"tls.key": {Type: "PRIVATE KEY", Bytes: encodedKey},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			return "", err
		}
	}
	return dir, nil
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close() //nolint:errcheck
	return listener.Addr().(*net.TCPAddr).Port, nil
}
