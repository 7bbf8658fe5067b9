// Command fake-apiserver runs the program of this module's version, which is downloaded once:
//
//	go run github.com/fake-apiserver/fake-apiserver/packages/go/fakeapiserver/cmd/fake-apiserver@latest run gone/ -- ./my-controller
package main

import (
	"fmt"
	"os"
	"syscall"

	"github.com/fake-apiserver/fake-apiserver/packages/go/fakeapiserver"
)

func main() {
	binary, err := fakeapiserver.Binary()
	if err == nil {
		err = syscall.Exec(binary, append([]string{"fake-apiserver"}, os.Args[1:]...), os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(3)
}
