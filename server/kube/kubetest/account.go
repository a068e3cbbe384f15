package kubetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"cupola/server/kube"
	"cupola/server/kube/access"
)

// accountUser is the user that the account of package access is.
const accountUser = "system:serviceaccount:" + namespace + ":" + access.Account

// auditPolicy has the API server log what a user asks for.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, users: ["%s"]}
- {level: None}
`

// Account makes the objects of package access in the test's namespace, and returns the kubeconfig of their account.
func (p *Plane) Account() (file string) {
	p.t.Helper()
	for _, o := range p.accessObjects() {
		if o.Kind() == "Namespace" {
			p.Label(o.Map("metadata", "labels"))
			continue
		}
		p.Create(o.Text("apiVersion"), o.Kind(), o)
	}
	return p.write("account.kubeconfig", fmt.Sprintf(kubeconfig, p.server, p.dir+"/ca.pem", p.limited, namespace))
}

// accessObjects are those of package access, for the test's namespace instead of their own.
func (p *Plane) accessObjects() []kube.Object {
	p.t.Helper()
	all, err := access.Objects()
	if err != nil {
		p.t.Fatal(err)
	}
	for _, o := range all {
		if o.Namespace() != "" {
			o.Map("metadata")["namespace"] = namespace
		}
		for _, s := range o.Items("subjects") {
			s["namespace"] = namespace
		}
	}
	return all
}

// asked is a line of the API server's audit log.
type asked struct {
	Stage          string
	Verb           string
	ObjectRef      struct{ Resource, Subresource string }
	ResponseStatus struct{ Code int }
	RequestURI     string
}

// what is what was asked for, as "verb resource".
func (a asked) what() string {
	if a.ObjectRef.Subresource != "" {
		return a.Verb + " " + a.ObjectRef.Resource + "/" + a.ObjectRef.Subresource
	}
	return a.Verb + " " + a.ObjectRef.Resource
}

// requests are those of the account until now.
func (p *Plane) requests() (all []asked) {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.dir, "audit*.log"))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			p.t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var a asked
			if json.Unmarshal(line, &a) == nil { // else it is being written
				all = append(all, a)
			}
		}
	}
	return all
}

// Asked counts the requests of the account until now, by "verb resource".
func (p *Plane) Asked() map[string]int {
	p.t.Helper()
	n := map[string]int{}
	for _, a := range p.requests() {
		if follows := a.Verb == "watch" || a.ObjectRef.Subresource == "log"; follows == (a.Stage == "ResponseStarted") {
			n[a.what()]++
		}
	}
	return n
}

// Unused are the account's rights that were not used, as "verb resource", sorted. Nothing was asked for without one.
func (p *Plane) Unused() []string {
	p.t.Helper()
	unused := map[string]bool{}
	for _, o := range p.accessObjects() {
		for _, rule := range o.Items("rules") {
			for _, resource := range rule["resources"].([]any) {
				for _, verb := range rule["verbs"].([]any) {
					unused[fmt.Sprint(verb, " ", resource)] = true
				}
			}
		}
	}
	for _, a := range p.requests() {
		if a.ResponseStatus.Code == 403 {
			p.t.Errorf("the account may not %s %s", a.Verb, a.RequestURI)
		}
		delete(unused, a.what())
	}
	return slices.Sorted(maps.Keys(unused))
}
