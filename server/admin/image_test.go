package admin

import (
	"encoding/binary"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cupola/server/admin/stack"
	"cupola/server/admin/steps"
	"cupola/server/images"
	"cupola/server/reconcile"
)

// futureLibc is a C library for this machine that wants Linux 99.1.0.
func futureLibc() []byte {
	order := binary.LittleEndian
	b := make([]byte, 64+56+32)
	copy(b, "\x7fELF\x02\x01\x01")
	order.PutUint16(b[18:], map[string]uint16{"amd64": 62, "arm64": 183}[runtime.GOARCH])
	order.PutUint64(b[32:], 64) // one program header
	order.PutUint16(b[54:], 56)
	order.PutUint16(b[56:], 1)
	prog := b[64:]
	order.PutUint32(prog, 4) // PT_NOTE
	order.PutUint64(prog[8:], 64+56)
	order.PutUint64(prog[32:], 32)
	note := b[64+56:]
	order.PutUint32(note, 4)
	order.PutUint32(note[4:], 16)
	order.PutUint32(note[8:], 1) // NT_GNU_ABI_TAG
	copy(note[12:], "GNU\x00")
	order.PutUint32(note[20:], 99)
	order.PutUint32(note[24:], 1)
	return b
}

// TestKernelWarnings pulls, pushes on, imports and inspects what this
// machine's kernel is too old for: each warns.
func TestKernelWarnings(t *testing.T) {
	if os.Getenv("CUPOLA_TEST_ROOT") != "1" {
		t.Skip("needs CUPOLA_TEST_ROOT=1 and root")
	}
	const want = "its programs want Linux 99.1.0 or newer"
	ref, _ := loopbackImageOf(t, "lib64/libc.so.6", futureLibc())
	host, _, _ := strings.Cut(ref, "/")
	d := startDaemon(t, host)
	pulls := images.Images{Roots: d.Roots}
	var said []string
	told := func(text string) bool { return strings.Contains(text, want) }
	if _, err := pulls.Pull(t.Context(), reconcile.ImagePull{Reference: "docker://" + ref, Say: func(line string) { said = append(said, line) }}); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(said, func(line string) bool { return strings.HasPrefix(line, "WARNING: "+want) }) {
		t.Errorf("got %q in the staging log; want a warning", said)
	}
	// The build that it was pulled for is about to name it.
	if _, err := d.removed(t, ref); err == nil || !strings.Contains(err.Error(), "pulled for an app just now") {
		t.Errorf("got %v; want the image to stay", err)
	}
	var seen []steps.Step
	report := func(s steps.Step) { seen = append(seen, s) }
	warned := func(s steps.Step) bool { return s.Step == "warning" && told(s.Detail) }
	if _, err := d.pulled(t, stack.PullRequest{Reference: ref, Name: "pulled"}, report); err != nil || !slices.ContainsFunc(seen, warned) {
		t.Errorf("got %v and %+v of a pull; want a warning", err, seen)
	}
	seen = nil
	if _, err := d.imported(t, stack.ImportRequest{Name: "imported", Path: rootTarOf(t, "lib64/libc.so.6", futureLibc())}, report); err != nil || !slices.ContainsFunc(seen, warned) {
		t.Errorf("got %v and %+v of an import; want a warning", err, seen)
	}
	for name, want := range map[string]bool{"pulled": true, "imported": true, "minifs": false, "none": false} {
		if got := pulls.Warning(name); told(got) != want {
			t.Errorf("%s: got %q to those who build on it; want a warning %t", name, got, want)
		}
	}
	for _, name := range []string{"pulled", "imported", ref} {
		if i, err := d.inspected(t, name); err != nil || !slices.ContainsFunc(i.Warnings, told) {
			t.Errorf("%s: got %+v, %v; want a warning", name, i, err)
		}
	}
}
