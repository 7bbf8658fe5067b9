// Program kubectl runs `kubectl get configmaps --watch` again and again, as scripts do:
// https://kubernetes.io/docs/reference/kubectl/generated/kubectl_get/
package main

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/klog/v2"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if len(os.Args) > 1 {
		logs.GlogSetter(cmd.GetLogVerbosity(os.Args)) //nolint:errcheck
		if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
			util.CheckErr(err)
		}
		return
	}

	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	for delay := time.Second; ctx.Err() == nil; {
		kubectl := exec.CommandContext(ctx, os.Args[0], "get", "configmaps", "--namespace", "default", "--watch")
		kubectl.Cancel = func() error { return kubectl.Process.Signal(syscall.SIGTERM) }
		kubectl.Stdout, kubectl.Stderr = os.Stderr, os.Stderr
		if err := kubectl.Run(); err == nil {
			delay = time.Second
		} else if ctx.Err() == nil {
			klog.InfoS("kubectl failed", "err", err, "restartIn", delay)
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
			delay = min(2*delay, 30*time.Second)
		}
	}
}
