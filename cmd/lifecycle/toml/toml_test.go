package toml

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// The cases are examples of the TOML 1.0 specification, and of the files in
// buildpacks/spec.
func TestParse(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", `{}`},
		{"a = 1 # one\n\nb='x'\r\n", `{"a":1,"b":"x"}`},
		{`a.b."c.d" = true`, `{"a":{"b":{"c.d":true}}}`},
		{"[a]\nx = 1\n[a.b]\ny = 2\n[c]\n", `{"a":{"b":{"y":2},"x":1},"c":{}}`},
		{"[[a]]\nn = 1\n[[a.b]]\nm = 1\n[[a]]\nn = 2\n[a.c]\nk = 3", `{"a":[{"b":[{"m":1}],"n":1},{"c":{"k":3},"n":2}]}`},
		{"a = [1, 2, # two\n [\"x\", {y = 1, z.w = []}],\n]", `{"a":[1,2,["x",{"y":1,"z":{"w":[]}}]]}`},
		{`a = "\t\"\\A\U0001F600"`, `{"a":"\t\"\\A😀"}`},
		{"a = \"\"\"\nx\\\n   y\"\" z\"\"\"\"", `{"a":"xy\"\" z\""}`},
		{"a = '''\n\\x\n''''", `{"a":"\\x\n'"}`},
		{"a = +1_000\nb = 0xff\nc = 0o17\nd = 0b11\ne = -1.5e3", `{"a":1000,"b":255,"c":15,"d":3,"e":-1500}`},
		{"a = 1979-05-27 07:32:00Z\nb = 07:32:00", `{"a":"1979-05-27 07:32:00Z","b":"07:32:00"}`},
		{"api = \"0.10\"\n[buildpack]\nid = \"x/y\"\n[[order]]\n[[order.group]]\nid = \"a\"\noptional = true\n[[order.group]]\nid = \"b\"",
			`{"api":"0.10","buildpack":{"id":"x/y"},"order":[{"group":[{"id":"a","optional":true},{"id":"b"}]}]}`},
	}
	for _, test := range tests {
		got, err := parse([]byte(test.text))
		if err != nil {
			t.Errorf("Parse(%q): %v", test.text, err)
			continue
		}
		if b, _ := json.Marshal(got); string(b) != test.want {
			t.Errorf("Parse(%q): got %s; want %s", test.text, b, test.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"a":                               `line 1: "=" is missing after the key a`,
		"x = 1\na = ":                     "line 2: a value is missing",
		"a = 1\na = 2":                    "line 2: the key a is defined twice",
		"[a]\n[a]":                        "line 2: the table a is defined twice",
		"a = {b = 1}\n[a.c]":              "nothing can be added to a",
		"a = []\n[[a]]":                   "nothing can be added to a",
		"a = 1 b = 2":                     `"b = 2" follows a value`,
		"a = [1 2]":                       "an array does not end, or lacks a comma",
		"a = \"x":                         "a string does not end",
		`a = "\q"`:                        `invalid escape \q`,
		`a = "\ud800"`:                    "invalid escape",
		"a = 01":                          `invalid value "01"`,
		"a = tru":                         `invalid value "tru"`,
		"a = 1\n[a.b]":                    "a is not a table",
		"[[a]]\n[a]":                      "a is not a table",
		"a = 99999999999999999999":        "out of range",
		"a = " + strings.Repeat("[", 200): "nested more than",
		"\xff":                            "not valid UTF-8",
	} {
		_, err := parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q): got %v; want %q", text[:min(len(text), 30)], err, want)
		}
	}
}

func TestEncode(t *testing.T) {
	for _, text := range []string{
		"a = 1.0\nb = 1979-05-27T07:32:00Z\nc = [1e+30, -inf, true]\n",
		"a = 1\nb = [1, 2]\n\n[c]\nd = \"x\\\"\\u0001\"\n\n[c.\"e f\"]\ng = true\n",
		"\n[[p]]\ntype = \"web\"\n\n[p.m]\nx = [{y = 1}, 2]\n\n[[p]]\ntype = \"worker\"\n",
	} {
		table, err := parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := Encode(table); string(got) != text {
			t.Errorf("got %q; want %q", got, text)
		}
	}
}

// TestMarshal encodes a value by its json tags.
func TestMarshal(t *testing.T) {
	v := map[string]any{"n": 1, "list": []struct {
		Name string         `json:"name"`
		Meta map[string]any `json:"meta,omitempty"`
	}{{"x", map[string]any{"k": []string{"v"}}}, {"y", nil}}}
	got, err := marshal(v)
	if want := "n = 1\n\n[[list]]\nname = \"x\"\n\n[list.meta]\nk = [\"v\"]\n\n[[list]]\nname = \"y\"\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestUnmarshalNamesTheField(t *testing.T) {
	var v struct {
		API string `json:"api"`
	}
	if err := Unmarshal([]byte("api = 0.8"), &v); err == nil || !strings.Contains(err.Error(), "api is of the type number; want string") {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a = 1\n[b]\nc = [\"x\", {y = 1}]\n[[d]]\ne.f = '''x'''")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parse([]byte(text))
		if err != nil {
			return
		}
		b := Encode(got)
		again, err := parse(b)
		if err != nil {
			t.Fatalf("%q was written as %q: %v", text, b, err)
		}
		if !bytes.Equal(b, Encode(again)) { // a nan is not equal to itself
			t.Fatalf("%q: got %q; want %q", text, Encode(again), b)
		}
	})
}
