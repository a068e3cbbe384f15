package shell

import (
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// marked prints a script with its marks legible.
func marked(t *testing.T, script string) string {
	t.Helper()
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		t.Fatal(err)
	}
	markReplacements(file)
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, file); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(becomeMark, "BECOME", execMark, "EXEC").Replace(strings.TrimSpace(b.String()))
}

func TestMarkReplacements(t *testing.T) {
	for script, want := range map[string]string{
		"./a b":                         "BECOME ./a b",
		"A=1 ./a >x":                    "A=1 BECOME ./a >x",
		"./a; ./b":                      "./a; BECOME ./b",
		"./a && ./b":                    "./a && BECOME ./b",
		"./a && ./b || ./c":             "./a && ./b || BECOME ./c",
		"{ ./a; ./b; }":                 "{ ./a; BECOME ./b; }",
		"exec ./a":                      "EXEC ./a",
		"exec 3>x":                      "exec 3>x",
		"exec -a n ./a":                 "exec -a n ./a",
		"if x; then exec ./a; fi":       "if x; then EXEC ./a; fi",
		"(exec ./a); ./b":               "(exec ./a); BECOME ./b",
		"f() { exec ./a; }; f":          "f() { exec ./a; }; BECOME f",
		"echo $(exec ./a)":              "BECOME echo $(exec ./a)",
		"./a | ./b":                     "./a | ./b",
		"! ./a":                         "! ./a",
		"(./a)":                         "(./a)",
		"./a & ./b":                     "./a & ./b",
		"trap x EXIT; ./b":              "trap x EXIT; ./b",
		"./a; for i in 1; do ./b; done": "./a; for i in 1; do ./b; done",
		"A=1":                           "A=1",
	} {
		if got := marked(t, script); got != want {
			t.Errorf("%s: got %s; want %s", script, got, want)
		}
	}
}

func FuzzMarkReplacements(f *testing.F) {
	f.Add("exec ./a && (b; exec c) | { d; }")
	f.Add("trap x EXIT; A=1 $x <<E\n$(exec y)\nE\n")
	f.Fuzz(func(t *testing.T, script string) {
		file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
		if err != nil {
			return
		}
		markReplacements(file)
	})
}
