package bindings

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// managed is the binding that the vectors vary.
func managed(credentials string, vary ...func(*Binding)) Binding {
	b := Binding{Label: "postgresql", Plan: "small", Name: new("mydb"), GUID: "sb-guid", InstanceName: "inst-1", InstanceGUID: "si-guid",
		Tags: []string{"relational"}, Credentials: json.RawMessage(credentials)}
	for _, v := range vary {
		v(&b)
	}
	return b
}

func noTags(b *Binding) { b.Tags = nil }

func name(n *string) func(*Binding) { return func(b *Binding) { b.Name = n } }

func instance(n string) func(*Binding) { return func(b *Binding) { b.InstanceName = n } }

// texts are the files by the path below the one directory.
func texts(t *testing.T, form Form, b Binding) map[string]string {
	t.Helper()
	files, err := Files(form, []Binding{b})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range files {
		path, ok := strings.CutPrefix(f.Path, b.name()+"/")
		if !ok {
			t.Errorf("got %s; want it in the directory of the binding", f.Path)
		}
		got[path] = string(f.Content)
	}
	return got
}

// constant are the files that every binding of the vectors has.
func constant(more map[string]string, without ...string) map[string]string {
	all := map[string]string{"label": "postgresql", "plan": "small", "name": "mydb", "tags": `["relational"]`, "instance_guid": "si-guid",
		"instance_name": "inst-1", "binding_guid": "sb-guid", "binding_name": "mydb", "type": "postgresql", "provider": "postgresql"}
	maps.Copy(all, more)
	for _, k := range without {
		delete(all, k)
	}
	return all
}

type files = map[string]string

// vectors are what Cloud Controller's own class made of these bindings.
var vectors = []struct {
	name    string
	binding Binding
	want    files
}{
	{"1 scalars", managed(`{"uri":"postgres://u:p@h/d","port":5432,"ssl":true}`), constant(files{"uri": "postgres://u:p@h/d", "port": "5432", "ssl": "true"})},
	{"2 nothing", managed(`{"a":null,"b":[],"c":{},"d":"","e":false,"f":0}`, noTags), constant(files{"d": "", "e": "false", "f": "0"}, "tags")},
	{"3 nested", managed(`{"tls":{"z":1,"a":[1,2.5,null,{"k":"v"}],"m":{}},"list":["x"]}`),
		constant(files{"tls": `{"z":1,"a":[1,2.5,null,{"k":"v"}],"m":{}}`, "list": `["x"]`})},
	{"4 escapes", managed(`{"o":{"s":"gr\u00fc\/ <a&b> \u2028 \u0001"},"s":"<raw>\u2028"}`),
		constant(files{"o": "{\"s\":\"grü/ <a&b> \u2028 \\u0001\"}", "s": "<raw>\u2028"})},
	{"5 numbers", managed(`{"i":123456789012345678901234567890,"n":{"f":1.0,"e":1e20,"s":1e-7,"t":1.50,"neg":-0.0,"E":12E3}}`),
		constant(files{"i": "123456789012345678901234567890", "n": `{"f":1.0,"e":100000000000000000000.0,"s":0.0000001,"t":1.5,"neg":-0.0,"E":12000.0}`})},
	{"7 names", managed(`{"client_id":"x","a.b-c":"y","_":"u","-":"d"}`), constant(files{"client_id": "x", "a.b-c": "y", "_": "u", "-": "d"})},
	{"9 attributes win", managed(`{"type":"redis","provider":"acme","name":"n","label":"l","plan":"p","tags":["x"],"binding_guid":"g","instance_name":"i","credentials":"c","volume_mounts":"v","syslog_drain_url":"s"}`, noTags),
		constant(files{"tags": `["x"]`, "credentials": "c", "volume_mounts": "v", "syslog_drain_url": "s"})},
	{"10 no name", managed(`{}`, name(nil)), constant(files{"name": "inst-1"}, "binding_name")},
	{"10 empty name", managed(`{}`, name(new(""))), constant(files{"name": "inst-1", "binding_name": ""})},
	{"13 mounts", managed(`{}`, func(b *Binding) {
		b.DrainURL = "syslog-tls://h:1"
		b.VolumeMounts = json.RawMessage(`[{"mode":"rw","driver":"nfs","container_dir":"/data","device_type":"shared","device":{"x":1}}]`)
	}), constant(files{"syslog_drain_url": "syslog-tls://h:1", "volume_mounts": `[{"mode":"rw","container_dir":"/data","device_type":"shared"}]`})},
	{"14 user-provided", Binding{InstanceName: "ups", InstanceGUID: "si-guid", GUID: "sb-guid", Tags: []string{"t1"}, Credentials: json.RawMessage(`{"a":"b"}`)},
		files{"a": "b", "label": "user-provided", "type": "user-provided", "provider": "user-provided", "name": "ups", "tags": `["t1"]`,
			"instance_guid": "si-guid", "instance_name": "ups", "binding_guid": "sb-guid"}},
	{"15 tags", managed(`{}`, func(b *Binding) { b.Tags = []string{"a", "b", "b", "c"} }), constant(files{"tags": `["a","b","c"]`})},
}

func TestK8sFiles(t *testing.T) {
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			if diff := cmp.Diff(v.want, texts(t, FormK8s, v.binding)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

// TestServiceBindingIOFiles is the same table: the dashes, and credentials without a value, are the difference.
func TestServiceBindingIOFiles(t *testing.T) {
	dashed := map[string]string{"instance_guid": "instance-guid", "instance_name": "instance-name", "binding_guid": "binding-guid", "binding_name": "binding-name"}
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			want := files{}
			for k, text := range v.want {
				if d, ok := dashed[k]; ok {
					k = d
				}
				want[k] = text
			}
			switch v.name[:2] {
			case "2 ": // libcnb's toSecret: whatever is no string is its JSON
				want["a"], want["b"], want["c"] = "null", "[]", "{}"
			case "9 ": // keys of credentials keep their names, and these are no attributes now
				want["binding_guid"], want["instance_name"] = "g", "i"
			case "13":
				want["syslog-drain-url"], want["volume-mounts"] = want["syslog_drain_url"], want["volume_mounts"]
				delete(want, "syslog_drain_url")
				delete(want, "volume_mounts")
			}
			if diff := cmp.Diff(want, texts(t, FormServiceBindingIO, v.binding)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFilesRefused(t *testing.T) {
	k := func(n int) string { return fmt.Sprintf(`{"k":%q}`, strings.Repeat("x", n)) }
	const tooBig = "Bindings exceed the maximum allowed bytesize of 1000000: "
	const invalidName = "Invalid binding name: '%s'. Name must match /^[a-z0-9\\-.]{1,253}$/"
	tests := []struct {
		name string
		all  []Binding
		want string
	}{
		{"6", []Binding{managed(`{"jdbcUrl":"x"}`)}, "Invalid file name: jdbcUrl"},
		{"8", []Binding{managed(`{"../x":"y"}`)}, "Invalid file name: ../x"},
		{"8 empty", []Binding{managed(`{"":"x"}`)}, "Invalid file name: "},
		{"11", []Binding{managed(`{}`, name(new("MyDB")))}, fmt.Sprintf(invalidName, "MyDB")},
		{"11 instance", []Binding{managed(`{}`, name(nil), instance("my_db"))}, fmt.Sprintf(invalidName, "my_db")},
		{"12", []Binding{managed(`{}`, name(new("dup"))), managed(`{}`, name(nil), instance("dup"))}, "Duplicate binding name: dup"},
		{"16", []Binding{managed(k(999_788))}, ""},
		{"16 one more", []Binding{managed(k(999_789))}, tooBig + "1000001"},
		{"17", []Binding{managed(fmt.Sprintf(`{"k":%q,"plan":%q}`, strings.Repeat("x", 998_700), strings.Repeat("p", 1200)))}, tooBig + "1000121"},
		{"20", []Binding{managed(`{}`, name(nil), instance(".."))}, fmt.Sprintf(invalidName, "..")},
		{"20 key", []Binding{managed(`{"..":"x"}`)}, "Invalid file name: .."},
		{"20 newline", []Binding{managed(`{"ok\n../x":"x"}`)}, "Invalid file name: ok\n../x"},
		{"a name of two lines", []Binding{managed(`{}`, name(new("a\nb")))}, fmt.Sprintf(invalidName, "a\nb")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Files(FormK8s, test.all)
			if got := fmt.Sprint(err); got != test.want && (err != nil || test.want != "") {
				t.Errorf("got %q; want %q", got, test.want)
			}
			if _, err = Files(FormServiceBindingIO, test.all); (err != nil) != (test.want != "") && !strings.HasPrefix(test.want, tooBig) {
				t.Errorf("the RFC's form: got %v; want as for the other", err)
			}
		})
	}
}

// TestCollisionIsExplained uses the RFC's example.
func TestCollisionIsExplained(t *testing.T) {
	_, err := Files(FormServiceBindingIO, []Binding{managed(`{}`, name(new("foobar"))), managed(`{}`, name(nil), instance("foobar"))})
	const want = "Duplicate binding name: foobar: it is the binding 'foobar' of service instance 'inst-1' and service instance 'foobar'. Bind one of them under another name"
	if err == nil || err.Error() != want {
		t.Errorf("got %v; want %s", err, want)
	}
}

func TestVCAPFile(t *testing.T) {
	all := []Binding{
		managed(`{"uri":"postgres://x","o":{"s":"<a&b> \u2028 \u00fc","f":1e3}}`),
		{Name: new("B2"), InstanceName: "ups", InstanceGUID: "si-guid", GUID: "sb-guid", Credentials: json.RawMessage(`{"A":null}`)},
	}
	const want = `{"postgresql":[{"label":"postgresql","provider":null,"plan":"small","name":"mydb","tags":["relational"],"instance_guid":"si-guid","instance_name":"inst-1","binding_guid":"sb-guid","binding_name":"mydb","credentials":{"uri":"postgres://x","o":{"s":"\u003ca\u0026b\u003e \u2028 ü","f":1000.0}},"syslog_drain_url":null,"volume_mounts":[]}],"user-provided":[{"label":"user-provided","name":"B2","tags":[],"instance_guid":"si-guid","instance_name":"ups","binding_guid":"sb-guid","binding_name":"B2","credentials":{"A":null},"syslog_drain_url":null,"volume_mounts":[]}]}`
	got, err := Files(FormVCAP, all)
	if err != nil || len(got) != 1 || got[0].Path != "vcap_services" {
		t.Fatalf("got %v, %v; want one file", got, err)
	}
	if diff := cmp.Diff(want, string(got[0].Content)); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
}

func TestNoBindings(t *testing.T) {
	got, err := Files(FormVCAP, nil)
	if err != nil || len(got) != 1 || string(got[0].Content) != "{}" {
		t.Errorf("got %v, %v; want a file with {}", got, err)
	}
	if got, err := Files(FormK8s, nil); err != nil || len(got) != 0 {
		t.Errorf("got %v, %v; want no files", got, err)
	}
}

func TestVCAPFileLimit(t *testing.T) {
	of := func(n int) error {
		_, err := Files(FormVCAP, []Binding{managed(fmt.Sprintf(`{"k":%q}`, strings.Repeat("x", n)))})
		return err
	}
	text, err := VCAPServices([]Binding{managed(`{"k":""}`)})
	if err != nil {
		t.Fatal(err)
	}
	fits := maxBytes - len(vcapFile) - len(text)
	if err := of(fits); err != nil {
		t.Errorf("got %v; want it taken", err)
	}
	if err := of(fits + 1); err == nil || err.Error() != "Bindings exceed the maximum allowed bytesize of 1000000: 1000001" {
		t.Errorf("got %v; want one byte too many", err)
	}
}

func TestCheckVariable(t *testing.T) {
	const fits = 131072 - len("VCAP_SERVICES=\x00")
	if err := checkVariable(make([]byte, fits)); err != nil {
		t.Errorf("got %v; want it taken", err)
	}
	if err := checkVariable(make([]byte, fits+1)); err == nil || !strings.Contains(err.Error(), "file-based-vcap-services") {
		t.Errorf("got %v; want advice", err)
	}
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]string{"0": "0", "-0": "0", "12": "12", "0.10": "0.1", "1E-3": "0.001", "123.456e1": "1234.56", "1e5000": "1e5000",
		"100.0": "100.0", "0e0": "0.0", "1.5e+2": "150.0"} {
		if got := number(text); got != want {
			t.Errorf("%s: got %s; want %s", text, got, want)
		}
	}
}

func TestDuplicateKeys(t *testing.T) {
	if got := texts(t, FormK8s, managed(`{"a":1,"b":2,"a":3}`))["a"]; got != "3" {
		t.Errorf("got %s; want the last", got)
	}
}

// FuzzFiles holds that what is written can be read, and that no file leaves the
// directory.
func FuzzFiles(f *testing.F) {
	for _, v := range vectors {
		f.Add(string(v.binding.Credentials), "mydb")
	}
	f.Add(`{"a":1e999999999}`, "..")
	f.Fuzz(func(t *testing.T, credentials, binding string) {
		b := managed(credentials, name(&binding))
		if text, err := VCAPServices([]Binding{b}); err == nil && !json.Valid(text) {
			t.Errorf("got %q; want JSON", text)
		}
		all, err := Files(FormServiceBindingIO, []Binding{b})
		if err != nil {
			return
		}
		for _, file := range all {
			if parts := strings.Split(file.Path, "/"); len(parts) != 2 || parts[0] == ".." || parts[1] == ".." {
				t.Errorf("got the path %q", file.Path)
			}
		}
	})
}
