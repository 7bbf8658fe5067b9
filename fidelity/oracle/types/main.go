// Command types prints the Go structs of the kinds that the fake serves, one line
// per struct and per field. They determine how a server encodes and validates a
// body (order of keys, omitempty, Go type names in errors), and the OpenAPI
// documents do not contain this.
//
// It is independent of the fake. crates/builtin-kinds/src/types.rs describes the
// format, and reads it:
//
//	go run ./types > ../../crates/builtin-kinds/data/types.txt
package main

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"sort"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/generated/openapi"
)

// groupVersions are the stable ones of a server with default settings.
var groupVersions = []schema.GroupVersion{
	{Group: "", Version: "v1"},
	{Group: "admissionregistration.k8s.io", Version: "v1"},
	{Group: "apiextensions.k8s.io", Version: "v1"},
	{Group: "apiregistration.k8s.io", Version: "v1"},
	{Group: "apps", Version: "v1"},
	{Group: "authentication.k8s.io", Version: "v1"},
	{Group: "authorization.k8s.io", Version: "v1"},
	{Group: "autoscaling", Version: "v1"},
	{Group: "autoscaling", Version: "v2"},
	{Group: "batch", Version: "v1"},
	{Group: "certificates.k8s.io", Version: "v1"},
	{Group: "coordination.k8s.io", Version: "v1"},
	{Group: "discovery.k8s.io", Version: "v1"},
	{Group: "events.k8s.io", Version: "v1"},
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1"},
	{Group: "networking.k8s.io", Version: "v1"},
	{Group: "node.k8s.io", Version: "v1"},
	{Group: "policy", Version: "v1"},
	{Group: "rbac.authorization.k8s.io", Version: "v1"},
	{Group: "resource.k8s.io", Version: "v1"},
	{Group: "scheduling.k8s.io", Version: "v1"},
	{Group: "storage.k8s.io", Version: "v1"},
	{Group: "storagemigration.k8s.io", Version: "v1"},
}

// opaque are the types with custom JSON encoding.
var opaque = map[string]string{
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":                                "time",
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":                           "microtime",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":                            "duration",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":                            "any",
	"k8s.io/apimachinery/pkg/api/resource.Quantity":                            "quantity",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString":                          "intorstring",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":                             "any",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON":            "any",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaProps": "any",
}

type printer struct {
	definitions map[string]common.OpenAPIDefinition
	structs     map[string]reflect.Type
	todo        []reflect.Type
}

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "types:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	for _, add := range []func(*runtime.Scheme) error{apiextensions.AddToScheme, apiregistration.AddToScheme} {
		if err := add(scheme.Scheme); err != nil {
			return err
		}
	}
	p := printer{
		definitions: openapi.GetOpenAPIDefinitions(func(name string) spec.Ref { return spec.MustCreateRef(name) }),
		structs:     map[string]reflect.Type{},
	}
	var kinds []string
	for _, gv := range groupVersions {
		for kind, t := range scheme.Scheme.KnownTypes(gv) {
			if !isObject(t) {
				continue
			}
			kinds = append(kinds, fmt.Sprintf("kind\t%s\t%s\t%s", gv, kind, p.name(t)))
		}
	}
	sort.Strings(kinds)
	for _, line := range kinds {
		fmt.Fprintln(out, line)
	}
	for len(p.todo) > 0 {
		t := p.todo[0]
		p.todo = p.todo[1:]
		p.shape(t)
		p.fields(io.Discard, t, p.schema(t), "")
	}
	var names []string
	for name := range p.structs {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		t := p.structs[name]
		fmt.Fprintf(out, "struct\t%s\n", name)
		p.fields(out, t, p.schema(t), "")
	}
	return nil
}

// isObject returns true for kinds that are stored: no lists, options or requests.
func isObject(t reflect.Type) bool {
	if _, ok := reflect.New(t).Interface().(runtime.Object); !ok {
		return false
	}
	if strings.Contains(t.PkgPath(), "apis/meta/v1") || strings.HasSuffix(t.Name(), "List") || strings.HasSuffix(t.Name(), "Options") {
		return false
	}
	meta, ok := t.FieldByName("ObjectMeta")
	return ok && meta.Anonymous
}

// name returns the last two elements of the package, and the name of the struct, and queues the struct for printing.
func (p *printer) name(t reflect.Type) string {
	path := strings.Split(t.PkgPath(), "/")
	name := strings.Join(path[len(path)-2:], "/") + "." + t.Name()
	if _, ok := p.structs[name]; !ok {
		p.structs[name] = t
		p.todo = append(p.todo, t)
	}
	return name
}

func (p *printer) schema(t reflect.Type) spec.Schema {
	model := t.PkgPath() + "." + t.Name()
	if named, ok := reflect.New(t).Interface().(interface{ OpenAPIModelName() string }); ok {
		model = named.OpenAPIModelName()
	}
	return p.definitions[model].Schema
}

// fields prints the fields of a struct and of embedded structs. Embedded structs are separate messages in protobuf: `within` is
// the path of their numbers.
func (p *printer) fields(out io.Writer, t reflect.Type, s spec.Schema, within string) {
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		tag, tagged := field.Tag.Lookup("json")
		name, options, _ := strings.Cut(tag, ",")
		if field.Anonymous && name == "" || strings.Contains(options, "inline") {
			inner := field.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			// Fields of an embedded struct without a number are not in protobuf: kind and apiVersion.
			inside := noMessage
			if number := number(field); number != "" {
				inside = within + number + "."
			}
			p.fields(out, inner, s, inside)
			continue
		}
		if !tagged || name == "-" || name == "" {
			continue
		}
		line := "\t" + name + "\t" + p.shape(field.Type)
		if strings.Contains(options, "omitempty") {
			line += "\tomitempty"
		}
		if strings.Contains(options, "omitzero") {
			line += "\tomitzero"
		}
		if value, ok := s.Properties[name].Default.(string); ok && value != "" {
			line += "\tdefault=" + value
		}
		if number := number(field); number != "" && within != noMessage {
			line += "\tpb=" + within + number
		}
		fmt.Fprintln(out, line)
	}
}

// noMessage is the path of fields that are not in protobuf.
const noMessage = "none"

// number returns the protobuf number of a field, or an empty string.
func number(field reflect.StructField) string {
	parts := strings.Split(field.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return ""
	}
	return parts[1]
}

// shape returns the notation of a type: a scalar, *T, []T, {}T for maps of strings, or the name of a struct; for named types,
// prefixed with the Go name and =.
func (p *printer) shape(t reflect.Type) string {
	if t.PkgPath() != "" {
		if word, ok := opaque[t.PkgPath()+"."+t.Name()]; ok {
			return word
		}
	}
	named := func(word string) string {
		if t.PkgPath() == "" {
			return word
		}
		return t.String() + "=" + word
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + p.shape(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return named("[]" + p.shape(t.Elem()))
	case reflect.Map:
		return named("{}" + p.shape(t.Elem()))
	case reflect.Struct:
		return p.name(t)
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64, reflect.Int, reflect.Float64:
		return named(t.Kind().String())
	default:
		panic(fmt.Sprintf("a %s has no shape: %s", t.Kind(), t))
	}
}
