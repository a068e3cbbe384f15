package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// upper is a type of a flag that reads itself.
type upper string

func (u *upper) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errors.New("expected a word")
	}
	*u = upper(strings.ToUpper(string(text)))
	return nil
}

// shared are flags that several commands have.
type shared struct {
	DataDir string `default:"/var" env:"CLITEST_DATA" help:"The data." placeholder:"DIR"`
}

type files struct {
	Cert string `help:"The certificate."`
}

func (f *files) Validate() error {
	if f.Cert == "bad" {
		return errors.New("--tls-cert: is bad")
	}
	return nil
}

type pull struct {
	shared
	TLS     files          `embed:"" prefix:"tls-"`
	Names   []string       `name:"only" help:"Names." placeholder:"NAME"`
	Raw     []string       `sep:"none"`
	Labels  map[string]int `mapsep:","`
	Hosts   map[string][]string
	Wait    time.Duration     `default:"5m"`
	Count   int               `short:"n"`
	Most    uint8             //
	Ratio   *float64          //
	Color   *bool             `negatable:""`
	Kind    string            `enum:"a,b" default:"a"`
	Recent  upper             `bare:"all" short:"r" placeholder:"WORD"`
	Here    bool              `xor:"where" short:"x"`
	There   bool              `xor:"where" short:"y"`
	Special map[string]string `flag:"-"`
	Image   string            `arg:""`
	More    []string          `arg:"" optional:""`
}

func (p *pull) Validate() error {
	if p.Count == 13 {
		return errors.New("--count: 13 brings bad luck")
	}
	return nil
}

type list struct {
	shared
	Long bool `aliases:"verbose,wide" help:"Long."`
}

type remove struct {
	Name string `arg:""`
	Key  string `required:"" placeholder:"FILE" type:"existingfile"`
}

type images struct {
	Pull   pull   `cmd:"" help:"Pull an image."`
	List   list   `cmd:"" default:"withargs" help:"List images." aliases:"ls"`
	Remove remove `cmd:"" help:"Remove an image." aliases:"rm,delete"`
}

type program struct {
	Config string `type:"path"`
	Debug  bool
	Images images `cmd:"" help:"Images."`
	Plain  list   `cmd:"" help:"Plain."`
	Secret list   `cmd:"" hidden:""`
}

func newTest(t testing.TB, into *program) *Parser {
	t.Helper()
	p, err := New(into, Options{Name: "prog", Help: "A program.", File: "config", Read: func(r io.Reader) (map[string]Setting, error) {
		values, all := map[string]any{}, map[string]Setting{}
		err := yaml.NewDecoder(r).Decode(&values)
		for k, v := range values {
			all[k] = Setting{Value: v, Line: 7}
		}
		return all, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func pointer[T any](v T) *T { return &v }

func TestParse(t *testing.T) {
	for line, want := range map[string]program{
		"images pull i":                               {Images: images{Pull: pull{Image: "i"}}},
		"--debug images pull i a b":                   {Debug: true, Images: images{Pull: pull{Image: "i", More: []string{"a", "b"}}}},
		"images pull --debug i":                       {Debug: true, Images: images{Pull: pull{Image: "i"}}},
		"images pull i --only a,b --only c":           {Images: images{Pull: pull{Image: "i", Names: []string{"a", "b", "c"}}}},
		`images pull i --only a\,b`:                   {Images: images{Pull: pull{Image: "i", Names: []string{"a,b"}}}},
		"images pull i --raw a,b --raw=":              {Images: images{Pull: pull{Image: "i", Raw: []string{"a,b", ""}}}},
		"images pull i --labels a=1,b=2":              {Images: images{Pull: pull{Image: "i", Labels: map[string]int{"a": 1, "b": 2}}}},
		"images pull i --hosts a=x,y;b=z --hosts c=w": {Images: images{Pull: pull{Image: "i", Hosts: map[string][]string{"a": {"x", "y"}, "b": {"z"}, "c": {"w"}}}}},
		"images pull i --wait 3s -n 4 --most 5":       {Images: images{Pull: pull{Image: "i", Wait: 3 * time.Second, Count: 4, Most: 5}}},
		"images pull i --ratio 0.5 --no-color":        {Images: images{Pull: pull{Image: "i", Ratio: pointer(0.5), Color: pointer(false)}}},
		"images pull i --color":                       {Images: images{Pull: pull{Image: "i", Color: pointer(true)}}},
		"images pull i --color=false":                 {Images: images{Pull: pull{Image: "i", Color: pointer(false)}}},
		"images pull i -r --tls-cert c":               {Images: images{Pull: pull{Image: "i", Recent: "ALL", TLS: files{"c"}}}},
		"images pull i --recent=x -xn2":               {Images: images{Pull: pull{Image: "i", Recent: "X", Here: true, Count: 2}}},
		"images pull -- -i --debug":                   {Images: images{Pull: pull{Image: "-i", More: []string{"--debug"}}}},
		"images pull i --kind b --data-dir d":         {Images: images{Pull: pull{shared: shared{"d"}, Image: "i", Kind: "b"}}},
		"images --long":                               {Images: images{List: list{Long: true}}},
		"images ls --wide":                            {Images: images{List: list{Long: true}}},
		"images ls --long":                            {Images: images{List: list{Long: true}}},
		"images --data-dir d list":                    {Images: images{List: list{shared: shared{"d"}}}},
		"plain":                                       {},
	} {
		var got program
		c, err := newTest(t, &got).Parse(strings.Fields(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		// The defaults, of the command that was named.
		switch target := c.Target().(type) {
		case *pull:
			want.Images.Pull.Wait, want.Images.Pull.Kind = orElse(want.Images.Pull.Wait, 5*time.Minute), orElse(want.Images.Pull.Kind, "a")
			want.Images.Pull.DataDir = orElse(want.Images.Pull.DataDir, "/var")
		case *list:
			if target == &got.Plain {
				want.Plain.DataDir = "/var"
			} else {
				want.Images.List.DataDir = orElse(want.Images.List.DataDir, "/var")
			}
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(images{}, pull{}, list{}, program{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}

func orElse[T comparable](v, other T) T {
	var none T
	if v == none {
		return other
	}
	return v
}

func TestWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	for line, want := range map[string]string{
		"imags":                              `prog: unknown command "imags" (did you mean "images"?)`,
		"secre":                              `prog: unknown command "secre"`,
		"images pull":                        `prog images pull: missing: <image>`,
		"images pull i --tls-crt x":          `prog images pull: unknown flag --tls-crt (did you mean "--tls-cert"?)`,
		"images pull i -q":                   `prog images pull: unknown flag -q`,
		"images pull i --count":              `prog images pull: --count needs a value`,
		"images pull i --count many":         `prog images pull: --count: expected a whole number, got "many"`,
		"images pull i --most 256":           `prog images pull: --most: expected a whole number from 0 on, got "256"`,
		"images pull i --ratio x":            `prog images pull: --ratio: expected a number, got "x"`,
		"images pull i --wait 5":             `prog images pull: --wait: expected a time like 90s, 15m or 24h, got "5"`,
		"images pull i --color=maybe":        `prog images pull: --color: expected true or false, got "maybe"`,
		"images pull i --labels a":           `prog images pull: --labels: expected NAME=VALUE, got "a"`,
		"images pull i --labels a=b":         `prog images pull: --labels: a: expected a whole number, got "b"`,
		"images pull i --kind c":             `prog images pull: --kind: expected a or b, got "c"`,
		"images pull i --recent=":            `prog images pull: --recent: expected a word`,
		"images pull i --here --there":       `prog images pull: --here and --there can't be used together`,
		"images pull i --count 13":           `prog images pull: --count: 13 brings bad luck`,
		"images pull i --tls-cert bad":       `prog images pull: --tls-cert: is bad`,
		"images list x":                      `prog images list: unexpected argument "x"`,
		"images rm":                          `prog images remove: missing: --key=FILE <name>`,
		"images rm x --key " + dir:           `prog images remove: --key: ` + dir + ` is a directory, not a file`,
		"images rm x --key " + dir + "/none": `prog images remove: --key: ` + dir + `/none does not exist`,
	} {
		_, err := newTest(t, &program{}).Parse(strings.Fields(line))
		fault, ok := errors.AsType[*Error](err)
		if !ok {
			t.Errorf("%s: got %v; want %s", line, err, want)
			continue
		}
		if got := strings.Join(fault.Command.words(), " ") + ": " + fault.Error(); got != want {
			t.Errorf("%s:\n got %s\nwant %s", line, got, want)
		}
	}
}

// TestWhereValuesComeFrom holds the order: command line, file, environment, default.
func TestWhereValuesComeFrom(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yml")
	t.Setenv("CLITEST_DATA", "of-env")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parse := func(args ...string) (program, error) {
		var got program
		_, err := newTest(t, &got).Parse(append([]string{"--config", file, "images", "pull", "i"}, args...))
		return got, err
	}
	write("{debug: true, count: 3, only: [a, 'b,c'], labels: {x: 1}, hosts: {h: [i, j], k: l}, tls_cert: c}")
	got, err := parse()
	want := pull{shared: shared{"of-env"}, TLS: files{"c"}, Names: []string{"a", "b,c"}, Labels: map[string]int{"x": 1}, Hosts: map[string][]string{"h": {"i", "j"}, "k": {"l"}}, Wait: 5 * time.Minute, Count: 3, Kind: "a", Image: "i"}
	if diff := cmp.Diff(want, got.Images.Pull, cmp.AllowUnexported(pull{})); diff != "" || err != nil || !got.Debug {
		t.Errorf("got %v, debug %v (-want +got):\n%s", err, got.Debug, diff)
	}
	for text, want := range map[string]bool{"yes": true, "No": false, "1": true, "'false'": false} {
		write("debug: " + text)
		if got, err := parse(); err != nil || got.Debug != want {
			t.Errorf("debug: %s: got %v, %v; want %v", text, got.Debug, err, want)
		}
	}
	write("{data-dir: of-file, only: [a]}")
	if got, err := parse(); err != nil || got.Images.Pull.DataDir != "of-file" {
		t.Errorf("got %q, %v; want the file's", got.Images.Pull.DataDir, err)
	}
	if got, err := parse("--data-dir", "of-line", "--only", "b"); err != nil || got.Images.Pull.DataDir != "of-line" || len(got.Images.Pull.Names) != 1 {
		t.Errorf("got %+v, %v; want the command line's", got.Images.Pull, err)
	}
	for text, want := range map[string]string{
		"{dta-dir: x}":        `unknown key "dta-dir" in the configuration file: give flags of 'prog serve' (did you mean "data-dir"?)`,
		"{labels: {a: [1]}}":  "--labels: a: takes one value (in the configuration file)",
		"{count: [1]}":        "--count: takes one value (in the configuration file)",
		"{count: x}":          `--count: expected a whole number, got "x" (in the configuration file)`,
		"{here: 1, there: 1}": "can't be used together",
	} {
		write(text)
		if _, err := parse(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want %s", text, err, want)
		}
	}
}

// TestOrigins names the place of each value.
func TestOrigins(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yml")
	t.Setenv("CLITEST_DATA", "of-env")
	if err := os.WriteFile(file, []byte("count: 3"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := newTest(t, &program{}).Parse([]string{"--config", file, "images", "pull", "i", "--only", "b"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range c.AllFlags() {
		got[f.Name] = f.Origin()
	}
	for name, want := range map[string]string{"only": "flag", "config": "flag", "count": file + ":7", "data-dir": "environment CLITEST_DATA", "wait": "default", "labels": "default"} {
		if got[name] != want {
			t.Errorf("--%s: got %q; want %q", name, got[name], want)
		}
	}
}

func TestHelp(t *testing.T) {
	for line, want := range map[string]string{
		"": `Usage: prog <command> [flags]

A program.

Commands:
  images  Images.
  plain   Plain.

Flags:
  -h, --help           Show help.
      --config=CONFIG
      --debug

Run "prog <command> --help" for more about a command.
`,
		"images --help": `Usage: prog images [flags]

Images.

Commands:
  images pull    Pull an image.
  images list    List images.
  images remove  Remove an image.

Flags:
      --data-dir=DIR  The data (default /var)
                      ($CLITEST_DATA).
      --long          Long (also --verbose, --wide).

Flags of all commands:
  -h, --help           Show help.
      --config=CONFIG
      --debug

Run "prog images <command> --help" for more about a command.
`,
		"images rm -h": `Usage: prog images remove --key=FILE <name> [flags]

Remove an image.

Also called rm or delete.

Arguments:
  <name>

Flags:
      --key=FILE

Flags of all commands:
  -h, --help           Show help.
      --config=CONFIG
      --debug
`,
	} {
		_, err := newTest(t, &program{}).Parse(strings.Fields(line))
		fault, ok := errors.AsType[*Error](err)
		if !ok || !errors.Is(err, ErrHelp) {
			t.Errorf("%s: got %v; want help", line, err)
			continue
		}
		var b strings.Builder
		if err := fault.Command.WriteHelp(&b, 60); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
	}
}

func TestDashed(t *testing.T) {
	for name, want := range map[string]string{"SSHKeys": "ssh-keys", "HTTPS": "https", "DataDir": "data-dir", "InstanceTLSCAs": "instance-tlsc-as", "S3Key": "s-3-key", "TCP": "tcp", "May5": "may-5"} {
		if got := dashed(name); got != want {
			t.Errorf("%s: got %s; want %s", name, got, want)
		}
	}
}

// TestBadStructs are mistakes of the program, which it says at its start.
func TestBadStructs(t *testing.T) {
	for want, of := range map[string]any{
		"has both commands and arguments": &struct {
			List list   `cmd:""`
			Name string `arg:""`
		}{},
		"has the argument b after one that may take it": &struct {
			A []string `arg:""`
			B string   `arg:"" optional:""`
		}{},
		"has the argument d after one that may take it": &struct {
			C string `arg:"" optional:""`
			D string `arg:""`
		}{},
	} {
		if _, err := New(of, Options{}); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v; want %s", err, want)
		}
	}
}

// FuzzParse holds that a command line is understood or refused, whatever it is.
func FuzzParse(f *testing.F) {
	for _, line := range []string{"images pull i --only a,b", "images --long", "-h", "images rm x --key=/", "images pull -- -i", "-n=3", "images pull i -xy", "--no-color=x", "images pull i --labels a=1;b"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		var got program
		c, err := newTest(t, &got).Parse(strings.Split(line, " "))
		if _, ok := errors.AsType[*Error](err); (c == nil) == (err == nil) || err != nil && !ok {
			t.Errorf("got %v, %v", c, err)
		}
		if c != nil && reflect.ValueOf(c.Target()).IsNil() {
			t.Error("got a command without a target")
		}
	})
}
