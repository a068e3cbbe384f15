package lrp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// FilesPath is where a container finds its Files.
const FilesPath = "/etc/cf-service-bindings"

// MaxFilesBytes bounds the contents of a container's Files: Diego's limit.
const MaxFilesBytes = 1 << 20

// File is a small file that the container's user alone can read.
type File struct {
	Path    string // relative, with slashes; no part begins with ".."
	Content []byte
	Program bool // it can be executed; in a Tree alone
	// Link is the target of a symbolic link, which has no content; in a Tree alone.
	Link string `json:",omitempty"`
}

// Tree is a directory of small files, programs too. It is read-only, and stays
// as it is.
type Tree struct {
	Path  string // in the container
	Files []File
}

// CheckFiles validates a container's files: it rejects paths that lead
// outside, conflicting paths, and files that are too large.
func CheckFiles(files []File) error {
	total, isFile, isDir := 0, map[string]bool{}, map[string]bool{}
	for _, f := range files {
		if !fs.ValidPath(f.Path) || f.Path == "." || strings.HasPrefix(f.Path, "..") || strings.Contains(f.Path, "/..") || strings.ContainsRune(f.Path, 0) {
			return fmt.Errorf("path %q of a volume mounted file is not allowed", f.Path)
		}
		if isFile[f.Path] || isDir[f.Path] {
			return fmt.Errorf("path %q of a volume mounted file is there twice", f.Path)
		}
		isFile[f.Path] = true
		for n, c := range f.Path {
			if dir := f.Path[:n]; c == '/' && isFile[dir] {
				return fmt.Errorf("path %q of a volume mounted file is there twice", dir)
			} else if c == '/' {
				isDir[dir] = true
			}
		}
		total += len(f.Content)
	}
	if total > MaxFilesBytes {
		return fmt.Errorf("volume mounted files exceed the maximum allowed bytesize of %d: %d", MaxFilesBytes, total)
	}
	return nil
}

// FilesDigest names the content of Files: the same for the same files, in
// whatever order; "" where there is no place for any.
func FilesDigest(files []File) string {
	if files == nil {
		return ""
	}
	sorted := slices.SortedFunc(slices.Values(files), func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	sum := sha256.New()
	for _, f := range sorted {
		fmt.Fprintf(sum, "%d %s %d ", len(f.Path), f.Path, len(f.Content))
		sum.Write(f.Content)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// AllFiles are those of the container and of all its processes, which lie
// together. They are nil where there is no place for any.
func (r *RunInfo) AllFiles() []File {
	all := r.Files
	actions := []Action{r.Setup, r.Action, r.Monitor}
	for _, s := range r.Sidecars {
		actions = append(actions, s.Action)
	}
	for _, a := range actions {
		for _, run := range a.Runs() {
			if run.Files != nil {
				all = slices.Concat([]File{}, all, run.Files)
			}
		}
	}
	return all
}
