// The first test of a project that has added the module and nothing else.
package first

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/fake-apiserver/fake-apiserver/packages/go/fakeapiserver"
)

func TestAClientListsAgainAfter410(t *testing.T) {
	server := fakeapiserver.Start(t)
	configMaps := server.URL + "/api/v1/configmaps"
	listed := func() string {
		response, err := http.Get(configMaps)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var list struct{ Metadata struct{ ResourceVersion string } }
		if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
			t.Fatal(err)
		}
		return list.Metadata.ResourceVersion
	}
	watch, err := http.Get(configMaps + "?watch=true&resourceVersion=" + listed())
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Body.Close()
	server.Expire(map[string]any{"resource": "configmaps"})
	if events, err := io.ReadAll(watch.Body); err != nil || !strings.Contains(string(events), "410") {
		t.Fatal(string(events), err)
	}
	listed()
	server.ExpectNoViolations()
}
