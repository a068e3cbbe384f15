package lrp

import "testing"

func TestFilesDigest(t *testing.T) {
	a, b := File{"a", []byte("1")}, File{"b", []byte("2")}
	if FilesDigest(nil) != "" || FilesDigest([]File{}) == "" {
		t.Error("no place for files and none there are not the same")
	}
	if FilesDigest([]File{a, b}) != FilesDigest([]File{b, a}) {
		t.Error("the order counts")
	}
	for _, other := range [][]File{{a}, {a, b, b}, {{"a1", nil}, b}, {{"a", []byte("1 1 b 1 2")}}, {a, {"b", []byte("3")}}} {
		if FilesDigest(other) == FilesDigest([]File{a, b}) {
			t.Errorf("%q is like another", other)
		}
	}
}

func TestAllFiles(t *testing.T) {
	run := func(files ...File) Action { return Run{Path: "x", Files: files}.Action() }
	if got := (&RunInfo{Action: Run{Path: "x"}.Action()}).AllFiles(); got != nil {
		t.Errorf("got %v; want no place for files", got)
	}
	r := RunInfo{Files: []File{{"a", nil}}, Action: Parallel(run(File{"b", nil}), run(File{"c", nil})), Sidecars: []Sidecar{{Action: run(File{"d", nil})}}}
	if got := r.AllFiles(); len(got) != 4 || len(r.Files) != 1 {
		t.Errorf("got %v", got)
	}
}
