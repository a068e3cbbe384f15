package push

import (
	"strings"
	"testing"
)

func TestAsksFor(t *testing.T) {
	for question, want := range map[string]string{
		"protocol=http\nhost=localhost:8080\n\n":                "",
		"protocol=http\nhost=localhost:8080\nusername=me\n":     "",
		"protocol=http\nhost=localhost:8081\n\n":                "host localhost:8081",
		"protocol=https\nhost=localhost:8080\n\n":               "protocol https",
		"protocol=http\n\nhost=localhost:8080\n":                "no protocol and host",
		"":                                                      "no protocol and host",
		"protocol=http\nhost=localhost:8080\nhost=other:8080\n": "host other:8080",
	} {
		err := asksFor(strings.NewReader(question), "http://localhost:8080")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v; want %q", question, err, want)
		}
	}
}

func TestTargets(t *testing.T) {
	for output, want := range map[string]bool{
		"API endpoint:   http://localhost:8080\nAPI version:    3.224.0\n": true,
		"api endpoint:   http://localhost:8080/\n":                         true,
		"API endpoint:   http://localhost:80801\n":                         false,
		"No API endpoint set. Use 'cf login' or 'cf api'.\n":               false,
	} {
		if got := targets(output, "http://localhost:8080"); got != want {
			t.Errorf("%q: got %t", output, got)
		}
	}
}
