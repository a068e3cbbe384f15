package deployment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/cmd/cupola/command"
	"cupola/server/bosh/tree"
)

// interpolation is what the bosh CLI made of a generated manifest, ops files and
// variables: a value, with --path a text, or an error.
type interpolation struct {
	Manifest       string
	Ops, Vars, Env []string
	File, Path     string
	Flags          []string
	Value          json.RawMessage
	Text, Err      string
}

// TestAsTheBoshCLI interpolates generated cases and compares with what `bosh
// interpolate` 7 answered: values with their types, and the texts of errors apart from
// line breaks. Numbers are compared by value, since the CLI writes 1e3 as 1000.
func TestAsTheBoshCLI(t *testing.T) {
	f, err := os.Open("testdata/interpolate.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := json.NewDecoder(f)
	t.Chdir(t.TempDir()) // errors name the files
	n := 0
	for ; ; n++ {
		var c interpolation
		if err := d.Decode(&c); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		t.Run(strconv.Itoa(n+1), c.check)
	}
	if n < 1000 {
		t.Errorf("only %d cases", n)
	}
}

func (c interpolation) check(t *testing.T) {
	out, err := c.run(t)
	got := ""
	if err != nil {
		got = err.Error()
	}
	if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(c.Err), " ") {
		t.Fatalf("got the error %q; want %q; of %+v", got, c.Err, c)
	}
	switch {
	case err != nil:
	case c.Value == nil:
		if out != c.Text {
			t.Errorf("got %q; want %q; of %+v", out, c.Text, c)
		}
	default:
		n, err := tree.LoadBOSH([]byte(out))
		if err != nil {
			t.Fatal(err)
		}
		want, err := tree.DecodeJSON(c.Value)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(byValue(want), byValue(tree.Value(n))); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c, diff)
		}
	}
}

// run runs cupola deployment interpolate.
func (c interpolation) run(t *testing.T) (string, error) {
	write := func(name, text string) string {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, v := range c.Env {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	cmd := interpolateCmd{Path: c.Path, VarErrs: slices.Contains(c.Flags, "--var-errs"), VarErrsUnused: slices.Contains(c.Flags, "--var-errs-unused")}
	cmd.Manifest, cmd.Var = write("m.yml", c.Manifest), c.Vars
	for i, text := range c.Ops {
		cmd.Ops = append(cmd.Ops, write(fmt.Sprintf("o%d.yml", i), text))
	}
	if c.File != "" {
		cmd.VarsFile = []string{write("v.yml", c.File)}
	}
	if len(c.Env) > 0 {
		cmd.VarsEnv = []string{"BV"}
	}
	var out bytes.Buffer
	err := cmd.Run(&command.Env{Ctx: t.Context(), Out: &out, Err: io.Discard})
	return out.String(), err
}

// byValue returns v with whole floats as integers.
func byValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			v[key] = byValue(item)
		}
	case []any:
		for i, item := range v {
			v[i] = byValue(item)
		}
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return int(v)
		}
	}
	return v
}
