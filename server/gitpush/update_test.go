package gitpush

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
)

const (
	none = "0000000000000000000000000000000000000000"
	one  = "1111111111111111111111111111111111111111"
)

// lines writes lines of a push, with a flush at the end.
func lines(t testing.TB, all ...string) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	e := pktline.NewEncoder(&b)
	if err := e.EncodeString(all...); err != nil {
		t.Fatal(err)
	}
	if err := e.Flush(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func TestReadOrder(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		want  string // the error; "" for none
	}{
		"a branch":       {[]string{none + " " + one + " refs/heads/main\x00 report-status side-band-64k agent=git/2"}, ""},
		"a shallow one":  {[]string{"shallow " + one, none + " " + one + " refs/heads/main\x00report-status"}, ""},
		"no hash":        {[]string{none + " x refs/heads/main\x00"}, "invalid line"},
		"no name":        {[]string{none + " " + one + "\x00"}, "invalid line"},
		"a certificate":  {[]string{"push-cert\x00report-status"}, "push without --signed"},
		"sha256":         {[]string{none + " " + one + " refs/heads/main\x00object-format=sha256"}, "only sha1 is supported"},
		"very many refs": {slices.Repeat([]string{none + " " + one + " refs/heads/main"}, 101), "more than 100 refs"},
	} {
		b := lines(t, c.lines...)
		b.WriteString("PACK")
		o, err := readOrder(b)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v; want %q", name, err, c.want)
			}
			continue
		}
		if err != nil || len(o.updates) != 1 || o.updates[0].name != "refs/heads/main" || !o.report || o.shallow != (name == "a shallow one") || !o.packs() {
			t.Errorf("%s: got %+v, %v", name, o, err)
		}
		if rest, _ := io.ReadAll(b); string(rest) != "PACK" {
			t.Errorf("%s: the pack is %q", name, rest)
		}
	}
	if o, err := readOrder(strings.NewReader("0000")); err != nil || len(o.updates) != 0 {
		t.Errorf("a question: got %v, %v", o, err)
	}
	if _, err := readOrder(strings.NewReader("")); err == nil {
		t.Error("nothing at all is accepted")
	}
}

func TestRefFaults(t *testing.T) {
	for name, ok := range map[string]bool{
		"refs/heads/main": true, "refs/tags/v1": true, "refs/heads/a/b": true,
		"refs/heads/../../../etc/passwd": false, "refs/heads/a.lock": false, "refs/heads/": false, "refs/heads/a b": false, "refs/heads/.a": false, "HEAD": false,
		"refs/notes/a": false, "refs/heads/-a": false, "refs/heads/a\x01": false, "main": false, "refs/heads/" + strings.Repeat("a", 300): false, "config": false,
	} {
		o := &order{}
		if err := o.line([]byte(none + " " + one + " " + name)); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if got := o.updates[0].fault(); (got == "") != ok {
			t.Errorf("%q: got %q", name, got)
		}
	}
}

// FuzzReadOrder feeds what clients send before a pack: each accepted name that has no
// fault must be one that a file of the repository can have.
func FuzzReadOrder(f *testing.F) {
	f.Add(lines(f, none+" "+one+" refs/heads/main\x00 report-status side-band-64k").Bytes())
	f.Add(lines(f, "shallow "+one, one+" "+none+" refs/tags/v1\x00").Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := readOrder(bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, u := range o.updates {
			if name := u.name.String(); u.fault() == "" && (strings.Contains(name, "..") || strings.Contains(name, "//") || !strings.HasPrefix(name, "refs/") || strings.ContainsAny(name, "\x00\n")) {
				t.Errorf("%q is accepted", name)
			}
		}
	})
}
