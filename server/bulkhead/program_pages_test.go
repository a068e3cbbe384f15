package bulkhead

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Only pages that are the file's are let go of.
func TestCleanMappings(t *testing.T) {
	const smaps = `00400000-00401000 r--p 00000000 fe:00 1073                               /bin/cupola
Rss:                   4 kB
Anonymous:             0 kB
VmFlags: rd mr mw me
00401000-01ea6000 r-xp 00001000 fe:00 1073                               /bin/cupola
Rss:               27284 kB
Anonymous:             0 kB
04493000-04497000 r--p 04093000 fe:00 1073                               /bin/cupola
Rss:                  16 kB
Anonymous:            16 kB
04497000-04594000 rw-p 04097000 fe:00 1073                               /bin/cupola
Anonymous:             0 kB
7f0000000000-7f0000001000 r--p 00000000 fe:00 1074                       /usr/bin/cupola
Anonymous:             0 kB
7f0000001000-7f0000002000 r--p 00000000 00:00 0
Anonymous:             0 kB
`
	want := []mapping{{0x400000, 0x401000}, {0x401000, 0x1ea6000}}
	if diff := cmp.Diff(want, cleanMappings(smaps, "/bin/cupola"), cmp.AllowUnexported(mapping{})); diff != "" {
		t.Error(diff)
	}
}

// The process holds fewer pages of its program, and works on.
func TestUnmapProgram(t *testing.T) {
	program, err := os.ReadFile("/proc/self/exe") // in the kernel's cache
	if err != nil || len(program) == 0 {
		t.Fatal(err)
	}
	before := fileKB(t)
	if err := unmapProgram(); err != nil {
		t.Fatal(err)
	}
	if after := fileKB(t); after >= before {
		t.Errorf("%d kB of files are mapped; %d before", after, before)
	}
}

// fileKB is what the process has mapped of files.
func fileKB(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "RssFile:")
	n, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
