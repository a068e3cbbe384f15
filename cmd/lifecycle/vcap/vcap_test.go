package vcap

import (
	"encoding/json"
	"testing"
)

func TestDatabaseURL(t *testing.T) {
	tests := []struct{ services, want string }{
		{"", ""},
		{"{", ""},
		{`[]`, ""},
		{`{"a":[{"credentials":{"uri":"redis://h"}}]}`, ""},
		{`{"a":[{"credentials":{"uri":"mysql://u:p@h/d?x=1"}}]}`, "mysql2://u:p@h/d?x=1"},
		{`{"a":[{"credentials":{"uri":"postgresql://h/d"}}]}`, "postgres://h/d"},
		{`{"a":[{"credentials":{"uri":"://"}},{"credentials":{"uri":"mysql2://h/d"}}]}`, "mysql2://h/d"},
		{`{"b":[{"credentials":{"uri":"postgres://b/d"}}],"a":[{"credentials":null},{"credentials":{"uri":"postgres://a/d"}}]}`, "postgres://a/d"},
		{`{"a":[{"credentials":"text"}]}`, ""},
	}
	for _, test := range tests {
		if got := DatabaseURL(test.services); got != test.want {
			t.Errorf("DatabaseURL(%s): got %q; want %q", test.services, got, test.want)
		}
	}
}

func TestCompleteApplication(t *testing.T) {
	in := Instance{GUID: `g"1`, Index: "2", Port: "8080"}
	tests := []struct {
		text string
		in   Instance
		want string
		ok   bool
	}{
		{`{"name":"a","limits":{"mem":12345678901234567890}}`, in, `{"host":"0.0.0.0","instance_id":"g\"1","instance_index":2,"limits":{"mem":12345678901234567890},"name":"a","port":8080}`, true},
		{`{}`, Instance{Index: "x", Port: ""}, `{"host":"0.0.0.0","instance_id":""}`, true},
		{`null`, in, `null`, false},
		{`[1]`, in, `[1]`, false},
		{``, in, ``, false},
	}
	for _, test := range tests {
		got, ok := CompleteApplication(test.text, test.in)
		if got != test.want || ok != test.ok {
			t.Errorf("CompleteApplication(%s): got %s, %v; want %s, %v", test.text, got, ok, test.want, test.ok)
		}
	}
}

func FuzzVcap(f *testing.F) {
	f.Add(`{"a":[{"credentials":{"uri":"mysql://u:p@h/d"}}]}`)
	f.Add(`{"name":"a"}`)
	f.Fuzz(func(t *testing.T, text string) {
		DatabaseURL(text)
		if got, ok := CompleteApplication(text, Instance{GUID: text, Index: "1", Port: "2"}); ok && !json.Valid([]byte(got)) {
			t.Errorf("CompleteApplication(%q) is no JSON: %s", text, got)
		}
	})
}
