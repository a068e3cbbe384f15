package desire

import (
	"encoding/json"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/lrp"
	"cupola/server/bindings"
	"cupola/store/cf"
)

func bound(guid, instance, credentials string, op cf.LastOperation) cf.AppService {
	return cf.AppService{
		Binding:  &cf.ServiceBinding{Resource: cf.Resource{GUID: guid}, InstanceGUID: instance, Credentials: json.RawMessage(credentials), LastOperation: op},
		Instance: &cf.ServiceInstance{Resource: cf.Resource{GUID: instance}, Name: instance, Tags: []string{"b", "c"}},
	}
}

func TestBindings(t *testing.T) {
	at := time.Now()
	made, failed := cf.Begin(cf.OpCreate, cf.OpSucceeded, at), cf.Begin(cf.OpCreate, cf.OpFailed, at)
	leaving := cf.Begin(cf.OpDelete, cf.OpInProgress, at)
	db := bound("3", "db", `{}`, made)
	db.Plan, db.Offering = &cf.ServicePlan{Name: "small"}, &cf.ServiceOffering{Name: "postgresql", Tags: []string{"a", "b"}}
	list := Bindings([]cf.AppService{bound("1", "db", `{}`, made), bound("2", "ups", `{}`, made), db, bound("4", "ups", `{}`, failed), bound("5", "gone", `{}`, leaving)})
	var got []string
	for _, b := range list {
		got = append(got, b.GUID+" "+b.Label+" "+b.Plan+" "+strings.Join(b.Tags, ","))
	}
	if diff := cmp.Diff([]string{"2   b,c", "3 postgresql small a,b,b,c"}, got); diff != "" {
		t.Errorf("bindings (-want +got):\n%s", diff)
	}
}

func variable(env []lrp.EnvVar, name string) (value string) {
	for _, v := range env {
		if v.Name == name {
			value = v.Value
		}
	}
	return value
}

func TestDatabaseURL(t *testing.T) {
	made := cf.Begin(cf.OpCreate, cf.OpSucceeded, time.Now())
	for uris, want := range map[string]string{
		"mysql://u:p@h/d":                      "mysql2://u:p@h/d",
		"http://h postgresql://u:p%2F@h/d?x=1": "postgres://u:p%2F@h/d?x=1",
		"redis://h":                            "",
		"postgres://one mysql://two":           "postgres://one",
		"not\u0000a:uri mysql2://h":            "mysql2://h",
	} {
		var all []cf.AppService
		for i, uri := range strings.Fields(uris) {
			text, _ := json.Marshal(map[string]any{"uri": uri})
			all = append(all, bound("b", string(rune('a'+i)), string(text), made))
		}
		all = append(all, bound("b", "number", `{"uri":1}`, made), bound("b", "none", ``, made))
		var v vars
		v.database(Bindings(all))
		if got := variable(v, "DATABASE_URL"); got != want {
			t.Errorf("%s: got %s; want %s", uris, got, want)
		}
	}
}

// TestServicesOfAStart holds that a process keeps the bindings that it was
// started with, byte for byte.
func TestServicesOfAStart(t *testing.T) {
	made := cf.Begin(cf.OpCreate, cf.OpSucceeded, time.Now())
	before := Bindings([]cf.AppService{bound("1", "ups", `{"z":"<&>","a":1.50,"n":12345678901234567890123}`, made)})
	owner := Owner{App: &cf.App{}, Space: &cf.Space{}, Org: &cf.Org{}}
	droplet := &cf.Droplet{Lifecycle: cf.Lifecycle{Type: cf.LifecycleBuildpack}}
	for _, c := range []struct {
		name     string
		services json.RawMessage
		want     string
	}{
		{"started with them", StartedWith(before), VCAPServices(before)},
		{"started with none", StartedWith(nil), "{}"},
		{"of an older cupola", nil, VCAPServices(Bindings([]cf.AppService{bound("2", "now", `{}`, made)}))},
	} {
		in := ProcessIn{Owner: owner, Process: &cf.Process{Services: c.services}, Droplet: droplet}
		in.Bindings = Bindings([]cf.AppService{bound("2", "now", `{}`, made)})
		if got := variable(in.env(8080), "VCAP_SERVICES"); got != c.want {
			t.Errorf("%s: got %s; want %s", c.name, got, c.want)
		}
	}
}

// TestFormOfAStart holds that a process keeps the form of its binding files from its start, while the bindings in it are those
// of now. Bindings that are no files in that form leave those of the start: the app has another form at its next start.
func TestFormOfAStart(t *testing.T) {
	made := cf.Begin(cf.OpCreate, cf.OpSucceeded, time.Now())
	list := func(credentials string) []bindings.Binding {
		return Bindings([]cf.AppService{bound("1", "ups", credentials, made)})
	}
	was := StartedWith(list(`{"user":"old"}`))
	const k8s, vcap = string(bindings.FormK8s), string(bindings.FormVCAP)
	for _, c := range []struct {
		name, app, started, now string
		services                json.RawMessage
		file, variable          string
	}{
		{"the app's other form", vcap, k8s, `{"user":"new"}`, was, "ups/user new", "SERVICE_BINDING_ROOT"},
		{"no form any more", "", k8s, `{"user":"new"}`, was, "ups/user new", "SERVICE_BINDING_ROOT"},
		{"no form before", k8s, "", `{"user":"new"}`, was, "", "VCAP_SERVICES"},
		{"what is no file in it", vcap, k8s, `{"User":"new"}`, was, "ups/user old", "SERVICE_BINDING_ROOT"},
		{"too large for the variable", k8s, "", `{"user":"` + strings.Repeat("x", 140_000) + `"}`, was, "", "VCAP_SERVICES"},
		{"of an older cupola", k8s, "", `{"user":"new"}`, nil, "ups/user new", "SERVICE_BINDING_ROOT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := processIn()
			in.App.BindingForm, in.Process.BindingForm, in.Process.Services, in.Bindings = c.app, c.started, c.services, list(c.now)
			got := Process(in).RunInfo
			file := ""
			for _, f := range got.Files {
				if path.Base(f.Path) == "user" {
					file = f.Path + " " + string(f.Content)
				}
			}
			if file != c.file || (got.Files == nil) != (c.file == "") {
				t.Errorf("got the file %q; want %q", file, c.file)
			}
			for _, name := range []string{"SERVICE_BINDING_ROOT", "VCAP_SERVICES_FILE_PATH", "VCAP_SERVICES"} {
				if has := variable(got.Env, name) != ""; has != (name == c.variable) {
					t.Errorf("variable %s: %v; want %s alone", name, has, c.variable)
				}
			}
		})
	}
}
