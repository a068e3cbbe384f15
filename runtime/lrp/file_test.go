package lrp

import "testing"

func file(path, content string) File { return File{Path: path, Content: []byte(content)} }

func TestFilesDigest(t *testing.T) {
	a, b := file("a", "1"), file("b", "2")
	if FilesDigest(nil) != "" || FilesDigest([]File{}) == "" {
		t.Error("no place for files and none there are not the same")
	}
	if FilesDigest([]File{a, b}) != FilesDigest([]File{b, a}) {
		t.Error("the order counts")
	}
	for _, other := range [][]File{{a}, {a, b, b}, {file("a1", ""), b}, {file("a", "1 1 b 1 2")}, {a, file("b", "3")}} {
		if FilesDigest(other) == FilesDigest([]File{a, b}) {
			t.Errorf("%v is like another", other)
		}
	}
}

func TestAllFiles(t *testing.T) {
	run := func(files ...File) Action { return Run{Path: "x", Files: files}.Action() }
	if got := (&RunInfo{Action: Run{Path: "x"}.Action()}).AllFiles(); got != nil {
		t.Errorf("got %v; want no place for files", got)
	}
	r := RunInfo{Files: []File{file("a", "")}, Action: Parallel(run(file("b", "")), run(file("c", ""))), Sidecars: []Sidecar{{Action: run(file("d", ""))}}}
	if got := r.AllFiles(); len(got) != 4 || len(r.Files) != 1 {
		t.Errorf("got %v", got)
	}
}
