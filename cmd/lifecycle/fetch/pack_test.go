package main

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// packed writes packs by hand, so that they can be what no git would write.
type packed struct {
	t *testing.T
	bytes.Buffer
}

func newPack(t *testing.T, objects uint32) *packed {
	p := &packed{t: t}
	p.WriteString("PACK")
	p.Write(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 2), objects))
	return p
}

// object appends one of a kind: 3 is a blob, 6 a delta of what is so far back, 7
// one of what a hash names.
func (p *packed) object(kind byte, size uint64, reference, content []byte) (at int) {
	p.t.Helper()
	at = p.Len()
	b := kind<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		p.WriteByte(b | 0x80)
		b = byte(size & 0x7f)
	}
	p.WriteByte(b)
	p.Write(reference)
	z := zlib.NewWriter(p)
	if _, err := z.Write(content); err != nil {
		p.t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		p.t.Fatal(err)
	}
	return at
}

func (p *packed) blob(size int) int { return p.object(3, uint64(size), nil, make([]byte, size)) }

// delta makes something of a size of what is at an offset.
func (p *packed) delta(of int, from, size uint64) int {
	back := p.Len() - of
	reference := []byte{byte(back & 0x7f)}
	for back >>= 7; back > 0; back >>= 7 {
		back--
		reference = append([]byte{0x80 | byte(back&0x7f)}, reference...)
	}
	content := binary.AppendUvarint(binary.AppendUvarint(nil, from), size)
	return p.object(6, uint64(len(content)), reference, content)
}

func (p *packed) named(from, size uint64) int {
	content := binary.AppendUvarint(binary.AppendUvarint(nil, from), size)
	return p.object(7, uint64(len(content)), make([]byte, 20), content)
}

func TestPacksAreMeasured(t *testing.T) {
	limits := packLimits{objects: 10, chain: 1000, all: 5000}
	for name, c := range map[string]struct {
		objects uint32
		write   func(*packed)
		want    string
	}{
		"what fits":            {2, func(p *packed) { p.delta(p.blob(400), 400, 500) }, ""},
		"many objects":         {11, func(*packed) {}, "it has 11 objects; at most 10 are read"},
		"a large one":          {1, func(p *packed) { p.blob(1001) }, errObject.Error()},
		"a lie about its size": {1, func(p *packed) { p.object(3, 10, nil, make([]byte, 100_000)) }, "inflated"},
		"a delta of little":    {2, func(p *packed) { p.delta(p.blob(10), 10, 1<<40) }, errObject.Error()},
		"a chain": {4, func(p *packed) {
			at := p.blob(300)
			for range 3 {
				at = p.delta(at, 300, 300)
			}
		}, errObject.Error()},
		"deltas of what has a name": {4, func(p *packed) {
			for range 4 {
				p.named(300, 300)
			}
		}, errObject.Error()},
		"all together": {6, func(p *packed) {
			for range 6 {
				p.blob(900)
			}
		}, "it unpacks to more than 5000 bytes"},
		"a delta that is none": {2, func(p *packed) {
			p.blob(10)
			p.object(7, 1, make([]byte, 20), []byte{0x80})
		}, errObject.Error()},
		"fewer than it says": {2, func(p *packed) { p.blob(10) }, "EOF"},
	} {
		p := newPack(t, c.objects)
		c.write(p)
		err := limits.check(t.Context(), bytes.NewReader(p.Bytes()))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v; want %q", name, err, c.want)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	p := newPack(t, 1)
	p.blob(1)
	if err := limits.check(ended, bytes.NewReader(p.Bytes())); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; want that it ends", err)
	}
}

// gitIn serves an empty repository, and runs git in it.
func gitIn(t *testing.T) (url string, run func(input string, args ...string) string) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("needs git")
	}
	base, root := served(t)
	run = func(input string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), git, args...)
		cmd.Dir, cmd.Stdin = filepath.Join(root, "repo"), strings.NewReader(input)
		cmd.Env = append(cmd.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+root, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	if out, err := exec.CommandContext(t.Context(), git, "init", "-q", "-b", "main", filepath.Join(root, "repo")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return base + "/repo", run
}

// A few objects are a tree of ten thousand million files.
func TestATreeWithoutEnd(t *testing.T) {
	url, run := gitIn(t)
	entry := "100644 blob " + run("", "hash-object", "-w", "--stdin")
	for range 10 {
		var tree strings.Builder
		for n := range 10 {
			fmt.Fprintf(&tree, "%s\tf%d\n", entry, n)
		}
		entry = "040000 tree " + run(tree.String(), "mktree")
	}
	run("", "update-ref", "refs/heads/main", run("", "commit-tree", "-m", "1", strings.Fields(entry)[2]))
	f := newFetcher()
	f.entries = 1000
	if _, err := f.fetch(t.Context(), url, t.TempDir()); err == nil || !strings.Contains(err.Error(), "more than 1000 files and directories") {
		t.Errorf("got %v", err)
	}
}

// A tree that no git would write has a link and a directory of one name.
func TestALinkLeadsNoWriteOut(t *testing.T) {
	url, run := gitIn(t)
	victim := t.TempDir()
	file := run("", "hash-object", "-w", "--stdin")
	link := run(victim, "hash-object", "-w", "--stdin")
	inner := run("100644 blob "+file+"\tevil\n", "mktree")
	tree := run("120000 blob "+link+"\ta\n040000 tree "+inner+"\ta\n", "mktree")
	run("", "update-ref", "refs/heads/main", run("", "commit-tree", "-m", "1", tree))
	_, err := newFetcher().fetch(t.Context(), url, t.TempDir())
	if left, _ := os.ReadDir(victim); err == nil || len(left) > 0 {
		t.Errorf("got %v; %v was written", err, left)
	}
}
