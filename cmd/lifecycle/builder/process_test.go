package builder

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseProcfile(t *testing.T) {
	tests := []struct {
		text  string
		want  []process
		fails bool
	}{
		{text: ""},
		{text: "web: ./app -p $PORT\n", want: []process{{Type: "web", Command: "./app -p $PORT"}}},
		{text: "worker: w\nweb: 'a: b'\n", want: []process{{Type: "web", Command: "a: b"}, {Type: "worker", Command: "w"}}},
		{text: "web: 8080\n", want: []process{{Type: "web", Command: "8080"}}},
		{text: "web\n", fails: true},
		{text: "web: [a]\n", fails: true},
		{text: "web: a\nweb: b\n", fails: true},
		{text: "web: a: b\n", fails: true},
	}
	for _, test := range tests {
		got, err := parseProcfile([]byte(test.text))
		if (err != nil) != test.fails {
			t.Errorf("%q: got error %v; want one: %v", test.text, err, test.fails)
		}
		if diff := cmp.Diff(test.want, got); err == nil && diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.text, diff)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("web: a\n"))
	f.Add([]byte("processes:\n- {type: web, command: x, platforms: {cloudfoundry: {sidecar_for: [web]}}, limits: {memory: 1}}\n"))
	f.Add([]byte("default_process_types: {web: a}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var all []process
		for _, parse := range []func([]byte) ([]process, error){parseProcfile, parseLaunch, parseRelease} {
			more, err := parse(text)
			if err == nil {
				all = merge(all, more)
			}
		}
		seen := map[string]bool{}
		for _, p := range all {
			if seen[p.Type] {
				t.Errorf("type %q twice in what %q makes", p.Type, text)
			}
			seen[p.Type] = true
		}
		if _, err := json.Marshal(newResult(all)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}
