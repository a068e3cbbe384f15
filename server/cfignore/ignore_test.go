package cfignore

import "testing"

func TestSkips(t *testing.T) {
	m := New("# a comment\n*.log\n\n/build/\n!keep.log\n")
	for path, want := range map[string]bool{
		".git": true, "sub/.git": true, "manifest.yml": true, ".cfignore": true, "a.log": true, "deep/down/a.log": true, "keep.log": false,
		"index.html": false, "# a comment": false, ".gitmodules": false,
	} {
		if got := m.Skips(path, false); got != want {
			t.Errorf("%s: got %t", path, got)
		}
	}
	if !m.Skips("build", true) || m.Skips("build", false) || m.Skips("sub/build", true) {
		t.Error("/build/ must match the directory at the top alone")
	}
	if New("").Skips("a.log", false) {
		t.Error("without a .cfignore, a.log is left out")
	}
}
