package manifest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// joined puts the parts of an entry together again.
func joined(t *testing.T, app App) App {
	t.Helper()
	parts, err := app.Parts()
	if err != nil {
		t.Fatal(err)
	}
	var whole App
	for i, text := range parts {
		read, more, err := ParsePart(text)
		if err != nil {
			t.Fatalf("part %d cannot be read: %v\n%s", i, err, text)
		}
		part := *read
		if len(part.Routes) > partRoutes && !part.NoRoute || len(part.Services) > partServices {
			t.Fatalf("part %d has %d routes and %d services", i, len(part.Routes), len(part.Services))
		}
		if more != (i > 0) {
			t.Fatalf("part %d is another than the first: %t", i, more)
		}
		if i == 0 {
			whole = part
			continue
		}
		rest := part
		rest.Name, rest.Routes, rest.RoutesSet, rest.Services = "", nil, false, nil
		if !sameApp(rest, App{}) {
			t.Fatalf("part %d has more than routes and services: %+v", i, part)
		}
		whole.Routes, whole.Services = append(whole.Routes, part.Routes...), append(whole.Services, part.Services...)
	}
	return whole
}

func sameApp(a, b App) bool {
	a.raw, b.raw, a.node, b.node = nil, nil, nil, nil
	return reflect.DeepEqual(a, b)
}

func TestParts(t *testing.T) {
	var list strings.Builder
	for i := range 3*partRoutes + 1 {
		fmt.Fprintf(&list, "  - {route: r-%d.test, protocol: http2, options: {a: 1}}\n", i)
	}
	for _, text := range []string{
		"applications:\n- name: a\n",
		"applications:\n- name: a\n  env: {N: 7, BIG: 12345678901, F: 1.50, YES: true, T: \"1\", M: \"a: b\\n- c\"}\n  routes: []\n  services: [x]\n",
		"applications:\n- name: a\n  services: [a, b, c, {name: d, parameters: {deep: [1, {x: null}]}}, e, f, g]\n  routes:\n" + list.String(),
		"applications:\n- name: a\n  no-route: true\n  command: ./x\n  routes:\n" + list.String(),
	} {
		m, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := joined(t, m.Apps[0]); !sameApp(got, m.Apps[0]) {
			t.Errorf("got  %+v\nwant %+v", got, m.Apps[0])
		}
	}
}

// FuzzParts wants of every manifest that its parts say the same.
func FuzzParts(f *testing.F) {
	f.Add("applications:\n- name: a\n  env: {N: 0x10, O: 0o7, D: 2020-01-02, I: .inf, B: !!binary aGk=}\n")
	f.Add("applications:\n- name: 7\n  services: [1, a]\n  routes: [{route: a.b}]\n  metadata: {labels: {a: null}}\n")
	f.Add("applications:\n- {name: a, processes: [{type: w, memory: 1G}], sidecars: [{name: s, command: c, process_types: [w]}]}\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse([]byte(text))
		if err != nil {
			return
		}
		for _, app := range m.Apps {
			if got := joined(t, app); !sameApp(got, app) {
				t.Errorf("got  %+v\nwant %+v", got, app)
			}
		}
	})
}
