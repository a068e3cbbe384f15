package link

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/server/bosh/manifest"
	"cupola/server/bosh/release"
)

// database is a deployment of a database, which offers two links, and of a job
// that consumes.
func database(consumes []release.Consumed, says map[string]manifest.Consume) Deployment {
	db := release.Job{
		Provides:   []release.Provided{{Name: "db", Type: "sql", Properties: []string{"port", "tls.ca", "user", "none"}}},
		Properties: map[string]release.Property{"port": {Default: 5432}, "tls.ca": {}, "user": {Default: "u"}, "none": {Default: 1}},
	}
	return Deployment{Name: "d", Groups: []Group{
		{
			Name: "store", Address: "d-store", Networks: []string{"default"},
			Instances: []Instance{{Address: "d-store-0", AZ: "z1", Bootstrap: true}, {Address: "d-store-1", Index: 1}},
			Jobs: []Job{
				{&manifest.Job{Name: "db", Properties: map[string]any{"user": "me", "none": nil, "tls": map[string]any{"ca": "CA"}}}, db},
				{&manifest.Job{Name: "db2", Provides: map[string]manifest.Provide{"db": {As: "second", Shared: true}}}, db},
				{&manifest.Job{Name: "hidden", Provides: map[string]manifest.Provide{"db": {None: true}}}, db},
				{&manifest.Job{Name: "custom", Custom: []manifest.CustomProvider{{Name: "mine", Type: "custom", Properties: []string{"a"}}}},
					release.Job{Properties: map[string]release.Property{"a": {Default: "b"}}}},
			},
		},
		{Name: "web", Jobs: []Job{{&manifest.Job{Name: "app", Consumes: says}, release.Job{Consumes: consumes}}}},
	}}
}

func of(l Links) map[string]Link { return l.Of[Consumer{"web", "app"}] }

func TestResolve(t *testing.T) {
	first := map[string]any{"port": 5432, "user": "me", "none": nil, "tls": map[string]any{"ca": "CA"}}
	second := map[string]any{"port": 5432, "user": "u", "none": 1, "tls": map[string]any{"ca": nil}}
	sql := []release.Consumed{{Name: "db", Type: "sql"}}
	optional := []release.Consumed{{Name: "db", Type: "sql", Optional: true}}
	for _, test := range []struct {
		name     string
		consumes []release.Consumed
		says     manifest.Consume
		want     map[string]any // the properties of db; nil for no link
		err      string
	}{
		{"alias", sql, manifest.Consume{From: "second"}, second, ""},
		{"alias before name", sql, manifest.Consume{From: "db"}, first, ""},
		{"network", sql, manifest.Consume{From: "db", Network: "default"}, first, ""},
		{"other network", sql, manifest.Consume{From: "db", Network: "private"}, nil,
			`instance group "web": cannot resolve non-optional link for provider db in job app: nothing provides type "sql" as "db"; there is "db", "second"`},
		{"only one of the type", []release.Consumed{{Name: "db", Type: "custom"}}, manifest.Consume{}, map[string]any{"a": "b"}, ""},
		{"several of the type", sql, manifest.Consume{}, nil, `instance group "web": multiple providers of type 'sql' for link 'db' in job 'app': ` +
			`Link provider 'db' from job 'db' in instance group 'store' in deployment 'd'; Link provider 'db' with alias 'second' from job 'db2' in instance group 'store' in deployment 'd'`},
		{"none of the type", []release.Consumed{{Name: "db", Type: "x"}}, manifest.Consume{}, nil,
			`instance group "web": cannot resolve non-optional link for provider db in job app: nothing provides type "x"`},
		{"none of the type, optional", []release.Consumed{{Name: "db", Type: "x", Optional: true}}, manifest.Consume{}, nil, ""},
		{"nil", optional, manifest.Consume{None: true}, nil, ""},
		{"nil, not optional", sql, manifest.Consume{None: true}, nil, `instance group "web": cannot resolve non-optional link for provider db in job app: the manifest gives nil for it`},
		{"from what is not there, optional", optional, manifest.Consume{From: "third"}, nil,
			`instance group "web": cannot resolve non-optional link for provider db in job app: nothing provides type "sql" as "third"; there is "db", "second"`},
		{"from what is hidden", sql, manifest.Consume{From: "hidden"}, nil,
			`instance group "web": cannot resolve non-optional link for provider db in job app: nothing provides type "sql" as "hidden"; there is "db", "second"`},
		{"manual", sql, manifest.Consume{Manual: true, Address: "x", Properties: map[string]any{"a": 1}}, map[string]any{"a": 1}, ""},
		{"deployment", sql, manifest.Consume{From: "theirs", Deployment: "other"}, map[string]any{"their": "s"}, ""},
		{"deployment, by name", sql, manifest.Consume{Deployment: "other"}, map[string]any{"their": "s"}, ""},
		{"own deployment", sql, manifest.Consume{From: "second", Deployment: "d"}, second, ""},
		{"deployment that does not share", sql, manifest.Consume{From: "secret", Deployment: "other"}, nil,
			`instance group "web": cannot resolve non-optional link for provider db in job app: nothing provides type "sql" as "secret"; there is "db", "second"`},
		{"deployment that is not there", sql, manifest.Consume{From: "db", Deployment: "no"}, nil,
			`instance group "web": Link 'db' in job 'app' from instance group 'web' consumes from deployment 'no', but the deployment does not exist.`},
		{"not consumed", []release.Consumed{{Name: "other", Type: "custom"}}, manifest.Consume{}, nil, `instance group "web": Job 'app' does not define consumer 'db' in the release spec`},
	} {
		in := database(test.consumes, map[string]manifest.Consume{"db": test.says})
		in.Shared = func(name string) ([]Provider, bool) {
			return []Provider{
				{Name: "db", Alias: "theirs", Type: "sql", Shared: true, Link: Link{Properties: map[string]any{"their": "s"}}},
				{Name: "db", Alias: "secret", Type: "sql"},
			}, name == "other"
		}
		got, err := Resolve(in)
		if text := strings.TrimPrefix(strings.ReplaceAll(errText(err), "\n", "|"), "|"); text != test.err {
			t.Errorf("%s: got %s; want %s", test.name, text, test.err)
		}
		if used := test.says.Deployment == "other" && test.want != nil; used != (len(got.Foreign) == 1) {
			t.Errorf("%s: got the foreign links %v", test.name, got.Foreign)
		}
		l, ok := of(got)["db"]
		if ok != (test.want != nil) {
			t.Errorf("%s: got %v; want a link: %v", test.name, l, test.want != nil)
		} else if diff := cmp.Diff(test.want, map[string]any(l.Properties)); ok && diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestResolveGivesInstances(t *testing.T) {
	in := database([]release.Consumed{{Name: "db", Type: "sql"}}, map[string]manifest.Consume{"db": {From: "second"}})
	got, err := Resolve(in)
	if err != nil {
		t.Fatal(err)
	}
	want := []Instance{
		{Name: "store", ID: "store-0-db2", Address: "d-store-0", AZ: "z1", Bootstrap: true},
		{Name: "store", ID: "store-1-db2", Address: "d-store-1", Index: 1},
	}
	if l := of(got)["db"]; l.Address != "d-store" || !cmp.Equal(l.Instances, want) {
		t.Errorf("got %+v", l)
	}
	shared := 0
	for _, p := range got.Providers {
		if p.Shared {
			shared++
		}
	}
	if len(got.Providers) != 3 || shared != 1 {
		t.Errorf("got %v", got.Providers)
	}
}

func TestManualLinkWithoutAddress(t *testing.T) {
	in := database([]release.Consumed{{Name: "db", Type: "sql"}}, map[string]manifest.Consume{"db": {Manual: true, Instances: []manifest.LinkInstance{{Address: "10.0.0.9", Index: 3}}}})
	got, err := Resolve(in)
	want := Link{Address: "10.0.0.9", Properties: map[string]any{}, Instances: []Instance{{Address: "10.0.0.9", Index: 3}}}
	if diff := cmp.Diff(want, of(got)["db"]); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestResolveTellsAllAtOnce(t *testing.T) {
	in := database([]release.Consumed{{Name: "a", Type: "x"}, {Name: "b", Type: "y"}}, nil)
	in.Groups[0].Jobs[0].Provides = map[string]manifest.Provide{"wrong": {}}
	in.Groups[0].Jobs[3].Custom[0].Properties = []string{"a", "b"}
	_, err := Resolve(in)
	want := `instance group "store": Job 'db' does not provide link 'wrong' in the release spec
instance group "store": Link property b in template custom is not defined in release spec
instance group "web": cannot resolve non-optional link for provider a in job app: nothing provides type "x"
instance group "web": cannot resolve non-optional link for provider b in job app: nothing provides type "y"`
	if diff := cmp.Diff(want, errText(err)); diff != "" {
		t.Error(diff)
	}
}
