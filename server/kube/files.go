package kube

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"cupola/server/bosh"
	"cupola/server/bosh/bpm"
)

// maxSecretBytes bounds the values of one Secret: Kubernetes takes 1 MiB.
const maxSecretBytes = 1000 << 10

// everyone is the index of a file that all instances have alike.
const everyone = -1

// files are the rendered files of a group, in Secrets.
type files struct {
	secrets []fileSecret
	// differ: instances have different files, or such that have an instance's
	// address, so they are copied before they are used.
	differ, own bool
}

type fileSecret struct {
	name  string
	files []file
}

// file is a rendered file, by its key in a Secret.
type file struct {
	key, job, path string
	index          int // of the instance, or everyone
	mode           fs.FileMode
	content        []byte
}

// at is where the file is in the volume of a pod: its job's directory, below
// one for its instance when they differ.
func (f file) at(differ bool, ordinal int) string {
	switch {
	case !differ:
		return path.Join(f.job, f.path)
	case f.index == everyone:
		return path.Join("all", f.job, f.path)
	}
	return path.Join(strconv.Itoa(ordinal), f.job, f.path)
}

// fileSecrets adds the Secrets with the rendered files.
func (g *group) fileSecrets() error {
	all := g.allFiles()
	g.files = files{}
	for part := 0; len(all) > 0; part++ {
		name := g.Name
		if part > 0 {
			name = fmt.Sprintf("%s-part%d", g.Name, part+1)
		}
		values, size := map[string][]byte{}, 0
		n := 0
		for ; n < len(all) && size+len(all[n].content) <= maxSecretBytes; n++ {
			values[all[n].key] = all[n].content
			size += len(all[n].content)
		}
		if n == 0 {
			return fmt.Errorf("job %q: %s has %d bytes; a Secret holds at most %d", all[0].job, all[0].path, len(all[0].content), maxSecretBytes)
		}
		secret := g.r.versioned(func(v int) string { return g.r.names.Jobs(name, v) }, "files of instance group "+name, values)
		g.files.secrets = append(g.files.secrets, fileSecret{secret, all[:n]})
		for _, f := range all[:n] {
			g.files.own = g.files.own || f.index != everyone
			g.files.differ = g.files.differ || f.index != everyone || bytes.Contains(f.content, []byte(bpm.AddressMark))
		}
		all = all[n:]
	}
	return nil
}

// allFiles are the files of all instances; those that all have alike once.
func (g *group) allFiles() (all []file) {
	keys := map[string]bool{}
	add := func(f file) {
		f.key = fileKey(f, keys)
		all = append(all, f)
	}
	for n, j := range g.Jobs {
		for at, f := range first(g.Instances, n) {
			one := file{job: j.Name, path: f.Path, mode: f.Mode, content: f.Content, index: everyone}
			if alike(g.Instances, n, at) {
				add(one)
				continue
			}
			for _, i := range g.Instances {
				one.index, one.content = i.Index, i.Jobs[n].Files[at].Content
				add(one)
			}
		}
	}
	return all
}

// first are the files that the first instance has of a job: all have as many,
// in the same order.
func first(instances []bosh.Instance, job int) []bosh.JobFile {
	if len(instances) == 0 {
		return nil
	}
	return instances[0].Jobs[job].Files
}

func alike(instances []bosh.Instance, job, at int) bool {
	for _, i := range instances[1:] {
		if !bytes.Equal(i.Jobs[job].Files[at].Content, instances[0].Jobs[job].Files[at].Content) {
			return false
		}
	}
	return true
}

// maxKey is Kubernetes' limit of keys in Secrets.
const maxKey = 253

// fileKey is a key that no other file has, of the characters that keys may have.
func fileKey(f file, taken map[string]bool) string {
	name := f.job + "." + strings.ReplaceAll(f.path, "/", ".")
	if f.index != everyone {
		name = strconv.Itoa(f.index) + "." + name
	}
	key := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	if len(key) > maxKey || taken[key] {
		sum := sha256.Sum256([]byte(fmt.Sprintf("%d/%s/%s", f.index, f.job, f.path)))
		key = key[:min(len(key), maxKey-17)] + "-" + hex.EncodeToString(sum[:8])
	}
	taken[key] = true
	return key
}

// projected is the volume with the files of some instances of one StatefulSet,
// by their ordinal.
func (g *group) projected(instances []bosh.Instance) doc {
	ordinals := map[int]int{}
	for _, i := range instances {
		ordinals[i.Index] = i.Ordinal
	}
	sources := []any{}
	for _, s := range g.files.secrets {
		items := []any{}
		for _, f := range s.files {
			if ordinal, has := ordinals[f.index]; has || f.index == everyone {
				items = append(items, doc{"key": f.key, "path": f.at(g.files.differ, ordinal), "mode": int(f.mode.Perm())})
			}
		}
		if len(items) > 0 { // none would be all
			sources = append(sources, doc{"secret": doc{"name": s.name, "items": items}})
		}
	}
	return doc{"name": renderedVolume, "projected": doc{"defaultMode": 0o440, "sources": sources}}
}
