package osb

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// readCatalog reads a catalog with a client.
func readCatalog(t testing.TB, text string) (*Catalog, error) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(text)) }))
	defer s.Close()
	return New(Config{}).Catalog(context.Background(), Broker{URL: s.URL}, "")
}

// service is a catalog of one service with more fields, and its plans.
func service(more, plans string) string {
	return `{"services": [{"id": "s", "name": "svc", "description": "d", "bindable": true, ` + more + `"plans": [` + plans + `]}]}`
}

func onePlan(more string) string {
	return service("", `{"id": "p", "name": "pl", "description": "d"`+more+`}`)
}

func schemaOf(text string) string {
	return onePlan(`, "schemas": {"service_instance": {"create": {"parameters": ` + text + `}}}`)
}

const goodPlan = `{"id": "p", "name": "pl", "description": "d"}`

// TestFaultsOfCatalogs has Cloud Controller's words, lines and indents.
func TestFaultsOfCatalogs(t *testing.T) {
	const draft4 = `"$schema": "http://json-schema.org/draft-04/schema#"`
	const of = "Service svc\n  Plan pl\n    Schemas\n      Schema service_instance.create.parameters is not valid. "
	for catalog, want := range map[string]string{
		service("", goodPlan): "",
		`{"services": []}`:    "Service broker must provide at least one service\n",
		`{"services": [{}]}`: "Service \n  Service id is required\n  Service name is required\n  Service description is required\n" +
			"  Service \"bindable\" field is required\n  At least one plan is required\n",
		service(`"name": 5, "id": [1, "a"], "tags": "x", "plan_updateable": "yes", `, goodPlan): "Service \n  Service id must be a string, but has value [1, \"a\"]\n" +
			"  Service name must be a string, but has value 5\n  Service \"plan_updateable\" field must be a boolean, but has value \"yes\"\n" +
			"  Service tags must be an array of strings, but has value \"x\"\n",
		service(`"requires": ["syslog_drain", "the moon"], `, goodPlan): "Service svc\n  Service \"requires\" field contains unsupported value \"the moon\"\n",
		service(`"metadata": {"shareable": "x"}, `, goodPlan):           "Service svc\n  Service metadata shareable must be a boolean, but has value \"x\"\n",
		service(`"metadata": [], `, goodPlan):                           "Service svc\n  Service metadata must be a hash, but has value []\n",
		service(`"dashboard_client": {"id": "x"}, `, goodPlan):          "Service svc\n  Service dashboard client secret is required\n  Service dashboard client redirect_uri is required\n",
		service("", ``): "Service svc\n  At least one plan is required\n",
		strings.Replace(service("", ""), `[]}]}`, `{"a": 1}}]}`, 1):            "Service svc\n  Service plans list must be an array of hashes, but has value {\"a\"=>1}\n",
		service("", goodPlan+","+strings.Replace(goodPlan, `"p"`, `"q"`, 1)):   "Service svc\n  Plan names must be unique within a service. Service svc already has a plan named pl\n",
		service(`"description": "`+strings.Repeat("x", 10001)+`", `, goodPlan): "Service svc\n  Service description may not have more than 10000 characters\n",
		service(`"tags": ["`+strings.Repeat("x", 2049)+`"], `, goodPlan):       "Service svc\n  Tags for the service svc must be 2048 characters or less.\n",
		onePlan(`, "free": "no", "maximum_polling_duration": 1.5`):             "Service svc\n  Plan pl\n    Plan free must be a boolean, but has value \"no\"\n    Maximum polling duration must be an integer, but has value 1.5\n",
		onePlan(`, "maintenance_info": {"version": "1.0", "x": 1}`):            "Service svc\n  Plan pl\n    Maintenance info version must be a Semantic Version, but has value \"1.0\"\n    Maintenance info contains invalid key(s): x\n",
		onePlan(`, "schemas": {"service_binding": 1}`):                         "Service svc\n  Plan pl\n    Schemas\n      Schemas service_binding must be a hash, but has value 1\n",
		schemaOf(`{}`): of + "Schema must have $schema key but was not present\n",
		schemaOf(`{"$schema": "http://example.com/mine"}`):                                      of + "Custom meta schemas are not supported.\n",
		schemaOf(`{` + draft4 + `, "properties": true}`):                                        of + "Must conform to JSON Schema Draft 04 (experimental support for later versions): The property '#/properties' of type boolean did not match the following type: object\n",
		schemaOf(`{` + draft4 + `, "properties": {"a": {"$ref": "http://example.com/s"}}}`):     of + "No external references are allowed: Read of URI at http://example.com/s refused\n",
		schemaOf(`{` + draft4 + `, "title": "` + strings.Repeat("x", 65536) + `"}`):             of + "Must not be larger than 64KB\n",
		schemaOf(`{` + draft4 + `, "type": "object", "properties": {"a": {"type": "string"}}}`): "",
		`{"services": [{"id": "s", "name": "svc", "description": "d", "bindable": true, "plans": [` + goodPlan + `]}, {"id": "s", "name": "svc", "description": "d", "bindable": true, "plans": [` + goodPlan + `]}]}`: "Service ids must be unique\nService names must be unique within a broker\n" +
			"Plan ids must be unique. Unable to register plan with id 'p' (plan name 'pl', service name 'svc') because it uses the same id as another plan in the catalog (plan name 'pl', service name 'svc')\n",
	} {
		c, err := readCatalog(t, catalog)
		if err != nil {
			t.Errorf("%.200s: %v", catalog, err)
			continue
		}
		if want != "" {
			want = "\n" + want
		}
		if got := c.Faults(Known{}); got != want {
			t.Errorf("%.200s:\ngot  %q\nwant %q", catalog, got, want)
		}
	}
}

// TestFaultsBesideWhatIsKnown checks a catalog against what the platform has.
func TestFaultsBesideWhatIsKnown(t *testing.T) {
	c, err := readCatalog(t, service("", goodPlan))
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		known Known
		want  string
	}{
		"the same": {Known{"b", []KnownService{{"s", "svc", true, []KnownID{{"p", "pl"}}}}}, ""},
		"unused":   {Known{"b", []KnownService{{"old", "svc", false, nil}}}, ""},
		"used":     {Known{"b", []KnownService{{"old", "svc", true, nil}}}, "\nService names must be unique within a broker. Services with names [\"svc\"] already exist\n"},
		"plan": {Known{"b", []KnownService{{"old", "other", false, []KnownID{{"p", "was"}}}}},
			"\nPlan ids must be unique. Unable to register plan with id 'p' (plan name 'pl', service name 'svc') because it uses the same id as an existing plan (plan name 'was', service name 'other', broker name 'b')\n"},
	} {
		if got := c.Faults(x.known); got != x.want {
			t.Errorf("%s: got %q; want %q", name, got, x.want)
		}
	}
}

// FuzzCatalog reads whatever a broker may answer.
func FuzzCatalog(f *testing.F) {
	for _, seed := range []string{service("", goodPlan), schemaOf(`{"$schema": "http://json-schema.org/draft-04/schema#", "items": [{"$ref": "#"}]}`), `{"services": [null]}`, `[`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		a := newAnswer(200, nil, body)
		c, err := a.catalog()
		if err == nil {
			_ = c.Faults(Known{Services: []KnownService{{ID: "s", Name: "svc", Used: true}}})
		}
	})
}

// FuzzAnswers reads whatever a broker may answer to other requests.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{`{"credentials": {"a": 1}, "volume_mounts": [{"device": {}}], "syslog_drain_url": "syslog://x"}`, `{"state": "failed", "description": 5}`, `{"error": {}}`, ``} {
		f.Add(200, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		a := newAnswer(status, nil, body)
		for _, err := range []error{a.mustBind([]string{"syslog_drain", "volume_mount", "route_forwarding"}), a.mustFit(instanceAnswer, false), a.mustFit(fetchedBinding, true), a.other(),
			a.unprocessable(a.bad(), AsyncRequired, Concurrency, VersionConflict, "RequiresApp")} {
			if err != nil && len(err.Error()) > maxDetail+200 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		}
		_ = a.bound()
		if _, err := a.state(Operation{}); err != nil && len(err.Error()) > maxDetail+200 {
			t.Error("long")
		}
	})
}
