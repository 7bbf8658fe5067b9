// Command kube-controller-manager is the released kube-controller-manager, built from the pinned module.
package main

import (
	"os"
	_ "time/tzdata" // CronJobs name time zones; the machine may have none.

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	os.Exit(cli.Run(app.NewControllerManagerCommand()))
}
