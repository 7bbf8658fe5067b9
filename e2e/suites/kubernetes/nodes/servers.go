package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/test/images/agnhost/crd-conversion-webhook/converter"
	"k8s.io/kubernetes/test/images/agnhost/webhook"
)

// commands are the commands of the image agnhost that run as processes of this machine: specs of webhooks need their
// answers. They are linked into this program, which starts itself with the arguments of the container.
var commands = []*cobra.Command{webhook.CmdWebhook, conversion()}

// conversion returns the command crd-conversion-webhook. That of agnhost reads the credentials of a pod, of which it makes no
// use.
func conversion() *cobra.Command {
	command := &cobra.Command{Use: "crd-conversion-webhook", Args: cobra.NoArgs}
	certificate := command.Flags().String("tls-cert-file", "", "certificate")
	key := command.Flags().String("tls-private-key-file", "", "private key")
	port := command.Flags().Int("port", 443, "port")
	command.RunE = func(*cobra.Command, []string) error {
		mux := http.NewServeMux()
		mux.HandleFunc("/crdconvert", converter.ServeExampleConvert)
		return http.ListenAndServeTLS(fmt.Sprintf(":%d", *port), *certificate, *key, mux)
	}
	return command
}

// isServer reports whether these are the arguments of one of the commands.
func isServer(arguments []string) bool {
	for _, command := range commands {
		if len(arguments) > 0 && arguments[0] == command.Name() {
			return true
		}
	}
	return false
}

// serve runs the command of a container until the program that started it ends.
func serve(arguments []string) error {
	go func() {
		// The parent holds the other end, and never writes.
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	// As in agnhost.go.
	logging := &flag.FlagSet{}
	klog.InitFlags(logging)
	root := &cobra.Command{Use: "agnhost"}
	root.AddCommand(commands...)
	root.PersistentFlags().AddGoFlagSet(logging)
	root.SetArgs(arguments)
	return root.Execute()
}

// servers are the containers that run. They have the address of this machine, so one at a time has a port: the next pod
// that wants it becomes ready when it is free.
type servers struct {
	address string
	mutex   sync.Mutex
	stops   map[types.UID]context.CancelFunc
	ports   map[string]chan struct{}
}

func newServers() (*servers, error) {
	address, err := ownAddress()
	if err != nil {
		return nil, err
	}
	return &servers{
		address: address, stops: map[types.UID]context.CancelFunc{}, ports: map[string]chan struct{}{},
	}, nil
}

// ownAddress returns an address of this machine that endpoints may have: neither loopback nor link-local.
func ownAddress() (string, error) {
	known, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for _, address := range known {
		network, ok := address.(*net.IPNet)
		if ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP.String(), nil
		}
	}
	return "", fmt.Errorf("no interface has an IPv4 address that endpoints may have")
}

// start starts the container of a pod and then reports it ready.
func (s *servers) start(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if _, started := s.stops[pod.UID]; started {
		return
	}
	ctx, stop := context.WithCancel(ctx)
	s.stops[pod.UID] = stop
	arguments := pod.Spec.Containers[0].Args
	port := flagValue(arguments, "--port", "443")
	if s.ports[port] == nil {
		s.ports[port] = make(chan struct{}, 1)
	}
	turn := s.ports[port]
	go func() {
		defer stop()
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return
		}
		address := net.JoinHostPort(s.address, port)
		if err := attend(ctx, client, pod, address, func() error {
			return report(ctx, client, pod, s.address)
		}); err != nil && ctx.Err() == nil {
			fmt.Fprintf(os.Stderr, "nodes: %s/%s: %v\n", pod.Namespace, pod.Name, err)
		}
	}()
}

// stop ends the container of a pod, if it runs.
func (s *servers) stop(pod types.UID) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if stop := s.stops[pod]; stop != nil {
		stop()
	}
}

// attend runs a container to its end, and calls ready when it listens.
func attend(
	ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, address string, ready func() error,
) error {
	folder, err := os.MkdirTemp("", "nodes-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	arguments, err := mounted(ctx, client, pod, folder)
	if err != nil {
		return err
	}
	server := exec.CommandContext(ctx, os.Args[0], arguments...)
	server.Stdout, server.Stderr = os.Stderr, os.Stderr
	if _, err := server.StdinPipe(); err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			break
		}
		select {
		case err := <-ended:
			return fmt.Errorf("ended before it listened: %v", err)
		case <-again.C:
		}
	}
	if err := ready(); err != nil && !gone(err) {
		fmt.Fprintf(os.Stderr, "nodes: %s/%s: %v\n", pod.Namespace, pod.Name, err)
	}
	return <-ended
}

// mounted writes the Secrets that the container mounts below folder, and returns its arguments with their places there.
func mounted(
	ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, folder string,
) ([]string, error) {
	container := pod.Spec.Containers[0]
	arguments := append([]string{}, container.Args...)
	for _, mount := range container.VolumeMounts {
		for _, volume := range pod.Spec.Volumes {
			if volume.Name != mount.Name || volume.Secret == nil {
				continue
			}
			secrets := client.CoreV1().Secrets(pod.Namespace)
			secret, err := secrets.Get(ctx, volume.Secret.SecretName, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			at := filepath.Join(folder, volume.Name)
			if err := os.Mkdir(at, 0o700); err != nil {
				return nil, err
			}
			for key, value := range secret.Data {
				if err := os.WriteFile(filepath.Join(at, key), value, 0o600); err != nil {
					return nil, err
				}
			}
			for i := range arguments {
				arguments[i] = strings.ReplaceAll(arguments[i], mount.MountPath, at)
			}
		}
	}
	return arguments, nil
}

// flagValue returns the value of a flag that is written as NAME=VALUE.
func flagValue(arguments []string, name, otherwise string) string {
	for _, argument := range arguments {
		if value, found := strings.CutPrefix(argument, name+"="); found {
			return value
		}
	}
	return otherwise
}
