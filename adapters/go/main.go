// Command adapter is client-go or controller-runtime behind the adapter protocol (docs/adapter-protocol.md). Its argument
// names the client:
//
//	client-go-informer          a SharedIndexInformer, with the settings that its ListWatch can be given
//	client-go-informer-default  the same with no setting but selectors, and the feature gate WatchListClient off, as up to 1.34
//	client-go-typed             an informer of a SharedInformerFactory, with the settings that its TweakListOptions can be given
//	client-go-metadata          the same of a factory of metadatainformer
//	client-go-reflector         a Reflector whose store prints what it receives
//	client-go-retry-watcher     a list, then a RetryWatcher, and both again when it gives up
//	controller-runtime          an informer of controller-runtime's cache
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
)

// library is one client of this module, with its properties for the protocol.
type library struct {
	module, recovers string
	caps             []string
	// resources are those that the library has models of; nil: any.
	resources []string
	// follow starts the client; the function it returns lists the client's cache.
	follow func(context.Context, start) (func() []any, error)
}

var (
	common = []string{"selectors", "field-selectors", "gzip", "http2", "pause"}
	// tuned are the settings that a caller sets through client-go's ListWatch or a factory's TweakListOptions.
	tuned = []string{"page-size", "resource-version", "streaming-list", "timeout", "bookmarks"}
	// models are kinds of the typed client that scenarios have.
	models = []string{"configmaps", "pods", "secrets", "services", "jobs.batch"}
)

var clients = map[string]library{
	"client-go-informer": {
		"k8s.io/client-go", "library", caps(tuned, "metadata-only", "errors", "cache"), nil, followInformer,
	},
	"client-go-informer-default": {
		"k8s.io/client-go", "library", caps(nil, "metadata-only", "errors", "cache"), nil, followInformer,
	},
	"client-go-typed":    {"k8s.io/client-go", "library", caps(tuned, "errors", "cache"), models, followTyped},
	"client-go-metadata": {"k8s.io/client-go", "library", caps(tuned, "metadata-only", "errors", "cache"), nil, followMetadata},
	"client-go-reflector": {
		"k8s.io/client-go", "library", caps(tuned, "metadata-only", "init-events", "ordered"), nil, followReflector,
	},
	"client-go-retry-watcher": {
		"k8s.io/client-go", "caller", caps(nil, "metadata-only", "page-size", "init-events", "ordered"), nil, followRetryWatcher,
	},
	"controller-runtime": {
		"sigs.k8s.io/controller-runtime", "library", caps(nil, "metadata-only", "bookmarks", "errors", "cache"), nil, followCache,
	},
}

func caps(more []string, own ...string) []string {
	return append(append(append([]string{}, common...), more...), own...)
}

// start is the command of that name.
type start struct {
	Contract string `json:"contract"`
	Resource struct {
		Group, Version, Plural, Kind string
	} `json:"resource"`
	Namespace string  `json:"namespace"`
	Options   options `json:"options"`
}

type options struct {
	LabelSelector   string  `json:"labelSelector"`
	FieldSelector   string  `json:"fieldSelector"`
	MetadataOnly    bool    `json:"metadataOnly"`
	PageSize        *int64  `json:"pageSize"`
	ResourceVersion *string `json:"resourceVersion"`
	InitialList     string  `json:"initialList"`
	TimeoutSeconds  *int64  `json:"timeoutSeconds"`
	AllowBookmarks  *bool   `json:"allowBookmarks"`
}

func main() {
	name := ""
	if len(os.Args) == 2 {
		name = os.Args[1]
	}
	chosen, ok := clients[name]
	if !ok {
		fmt.Fprintln(os.Stderr, "usage: adapter CLIENT")
		os.Exit(2)
	}
	if name == "client-go-informer-default" {
		_ = os.Setenv(watchListGate, "false")
	}
	hello := message{
		"protocol": 1, "contracts": []string{"informer"}, "caps": chosen.caps, "recovers": chosen.recovers,
		"client": message{"name": name, "lang": "go", "version": version(chosen.module), "url": "https://" + chosen.module},
	}
	if chosen.resources != nil {
		hello["resources"] = chosen.resources
	}
	emit("hello", hello)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	obey(ctx, chosen)
}

// obey carries out commands until `stop` or the end of input.
func obey(ctx context.Context, chosen library) {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 8<<20)
	var items func() []any
	for lines.Scan() {
		var command struct {
			Cmd    string `json:"cmd"`
			ID     int    `json:"id"`
			Events int    `json:"events"`
			Paused bool   `json:"paused"`
			start
		}
		if err := json.Unmarshal(lines.Bytes(), &command); err != nil {
			fmt.Fprintln(os.Stderr, "adapter:", err)
			continue
		}
		switch command.Cmd {
		case "start":
			if command.Contract != "informer" {
				emit("unsupported", message{"what": "contract", "why": "only informer"})
				continue
			}
			if command.Paused {
				grant(0)
			}
			if command.Options.InitialList == "list" {
				_ = os.Setenv(watchListGate, "false")
			}
			var err error
			if items, err = chosen.follow(ctx, command.start); err != nil {
				emitError(err)
				emit("end", nil)
			}
		case "dump":
			if items == nil {
				emit("unsupported", message{"what": "cmd", "why": "the client has no cache"})
				continue
			}
			found := []message{}
			for _, item := range items() {
				found = append(found, identity(item))
			}
			emit("dump", message{"id": command.ID, "items": found})
		case "pause":
			grant(0)
		case "resume":
			if command.Events == 0 {
				command.Events = -1
			}
			grant(command.Events)
		case "stop":
			return
		default:
			emit("unsupported", message{"what": "cmd", "why": "unknown command " + command.Cmd})
		}
	}
}

// version returns the version of a module in this program.
func version(module string) string {
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range build.Deps {
			if dependency.Path == module {
				return dependency.Version[1:]
			}
		}
	}
	return "unknown"
}
