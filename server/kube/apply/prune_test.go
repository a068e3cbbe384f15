package apply

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"cupola/server/kube"
)

// shelf serves objects of a namespace as an API server does, as far as they are
// looked at and removed: nothing else happens to them. TestLive has a real one.
type shelf struct {
	t   *testing.T
	all []kube.Object
}

// newShelf returns the example's objects, applied by cupola.
func newShelf(t *testing.T) *shelf {
	s := &shelf{t: t}
	for _, o := range golden(t, "nats-secrets.golden.yml") {
		s.put(o, manager, "Apply")
	}
	return s
}

// put adds an object that somebody has made.
func (s *shelf) put(o kube.Object, by, how string) {
	m := o.Map("metadata")
	m["uid"], m["managedFields"] = o.Kind()+"/"+o.Name(), []any{map[string]any{"manager": by, "operation": how}}
	s.all = append(s.all, o)
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q}}]
contexts: [{name: test, context: {cluster: test, namespace: nats}}]
current-context: test
`

// open is the cluster that has the shelf's objects.
func (s *shelf) open() *Cluster {
	s.t.Helper()
	server := httptest.NewServer(s)
	s.t.Cleanup(server.Close)
	config := filepath.Join(s.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(config, fmt.Appendf(nil, kubeconfig, server.URL), 0o600); err != nil {
		s.t.Fatal(err)
	}
	c, err := Open(Config{Kubeconfig: config})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// ServeHTTP answers for …/namespaces/nats/RESOURCE and …/RESOURCE/NAME.
func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, rest, _ := strings.Cut(r.URL.Path, "/namespaces/nats/")
	resource, name := path.Split("/" + rest)
	if resource == "/" {
		s.list(w, name, r.URL.Query().Get("labelSelector"))
		return
	}
	at := slices.IndexFunc(s.all, func(o kube.Object) bool { return plural(o) == strings.Trim(resource, "/") && o.Name() == name })
	if at < 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		s.write(w, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
		return
	}
	o := s.all[at]
	if r.Method == http.MethodDelete {
		var asked metav1.DeleteOptions
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			s.t.Error(err)
		}
		if asked.PropagationPolicy == nil || *asked.PropagationPolicy != metav1.DeletePropagationForeground || asked.Preconditions == nil || string(*asked.Preconditions.UID) != o.Text("metadata", "uid") {
			s.t.Errorf("%s is removed with %+v", named(o), asked)
		}
		s.all = slices.Delete(s.all, at, at+1)
	}
	w.Header().Set("Content-Type", "application/json")
	s.write(w, o)
}

func (s *shelf) list(w http.ResponseWriter, resource, selector string) {
	by, err := labels.Parse(selector)
	if err != nil {
		s.t.Error(err)
	}
	found := []any{}
	for _, o := range s.all {
		set := labels.Set{}
		for key := range o.Map("metadata", "labels") {
			set[key] = o.Label(key)
		}
		if plural(o) == resource && by.Matches(set) {
			found = append(found, o)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	s.write(w, map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": found})
}

func (s *shelf) write(w http.ResponseWriter, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		s.t.Error(err)
	}
}

func plural(o kube.Object) string {
	if r, ok := resources[o.Kind()]; ok {
		return r.Resource
	}
	return revisions.Resource
}

// TestPrune takes a group from a deployment of which some is still used.
func TestPrune(t *testing.T) {
	s := newShelf(t)
	all := slices.DeleteFunc(slices.Clone(s.all), func(o kube.Object) bool {
		return strings.Contains(o.Name(), "web") || strings.Contains(o.Name(), "password") || o.Kind() == "PodDisruptionBudget"
	})
	password := s.all[slices.IndexFunc(s.all, func(o kube.Object) bool { return strings.Contains(o.Name(), "password") })]
	password.Map("metadata", "annotations")["quarks.cloudfoundry.org/variable-digest"] = "made"
	mark := password.Map("metadata", "labels")
	for _, o := range []string{
		"kind: PersistentVolumeClaim\nmetadata: {name: disk}\n",
		"kind: Pod\nmetadata: {name: other}\nspec: {volumes: [{secret: {secretName: nats-deployment.jobs.web-v1}}]}\n",
		"kind: ControllerRevision\nmetadata: {name: was}\ndata: {spec: {template: {spec: {volumes: [{secret: {secretName: nats-deployment.bpm.web-v1}}]}}}}\n",
		"kind: ControllerRevision\nmetadata: {name: older}\ndata: {spec: {template: {spec: {volumes: [{secret: {secretName: nats-deployment.ig-resolved.web-v1}}]}}}}\n",
	} {
		made := object(t, o)
		made.Map("metadata")["labels"] = mark
		s.put(made, manager, "Apply")
	}
	set := object(t, "kind: StatefulSet\nmetadata: {name: other}\nstatus: {currentRevision: was, updateRevision: is}\n")
	set.Map("metadata")["labels"] = mark
	s.put(set, "kubectl", "Apply")
	s.put(object(t, "kind: Service\nmetadata: {name: copy, labels: {app.kubernetes.io/managed-by: cupola, quarks.cloudfoundry.org/deployment-name: nats-deployment}}\n"), manager, "Update")

	c := s.open()
	stale, err := c.Stale(t.Context(), "nats-deployment", all)
	if err != nil {
		t.Fatal(err)
	}
	var removed []string
	if err := c.Prune(t.Context(), "nats-deployment", all, func(o kube.Object, change Change) { removed = append(removed, named(o)+" "+string(change)) }); err != nil {
		t.Fatal(err)
	}
	want := []string{"PodDisruptionBudget nats-deployment-nats removed", "StatefulSet nats-deployment-web-z0-v1 removed", "StatefulSet nats-deployment-web-z1-v1 removed",
		"Service nats-deployment-web removed", "Service nats-deployment-web-0 removed", "Service nats-deployment-web-1 removed",
		"Service nats-deployment-web-2 removed", "Secret nats-deployment.ig-resolved.web-v1 removed"}
	if diff := cmp.Diff(want, removed); diff != "" {
		t.Error(diff)
	}
	if len(stale) != len(want) {
		t.Errorf("stale were %d objects; want %d", len(stale), len(want))
	}
	if again, err := c.Stale(t.Context(), "nats-deployment", all); err != nil || len(again) > 0 {
		t.Errorf("stale the second time: %v, %v", again, err)
	}
}
