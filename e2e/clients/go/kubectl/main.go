// Command kubectl is Kubernetes' own kubectl without `convert`, the one subcommand that needs all of Kubernetes' types:
// this builds from a tenth of the source, and every line that talks to an apiserver is the original.
package main

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // the ways to log in, as the original has them
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	logs.GlogSetter(cmd.GetLogVerbosity(os.Args)) // nolint:errcheck
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
