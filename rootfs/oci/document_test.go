package oci

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"cupola/rootfs/reference"
	"cupola/rootfs/registry/registrytest"
)

// FuzzParseManifest holds that what is taken is either an index or an image, and names nothing but digests.
func FuzzParseManifest(f *testing.F) {
	for _, text := range []string{
		`{"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"digest":"` + someDigest + `","platform":{"os":"linux","architecture":"amd64"}}]}`,
		`{"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"digest":"` + someDigest + `"},"layers":[{"digest":"` + someDigest + `","size":1}]}`,
		`{"manifests":[{}],"layers":[{}]}`, `{"layers":[{"digest":"sha256:../x"}]}`, `null`, `[]`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ParseManifest(text)
		if err != nil {
			return
		}
		if len(m.Manifests) > 0 == (len(m.Layers) > 0) {
			t.Errorf("%s: it is both or neither", text)
		}
		for _, l := range m.Layers {
			if !reference.IsDigest(l.Digest) {
				t.Errorf("%s: took the digest %q", text, l.Digest)
			}
		}
		if d, err := Choose(m.Manifests); err == nil && len(m.Manifests) > 0 {
			if _, err := json.Marshal(d); err != nil {
				t.Error(err)
			}
		}
	})
}

// FuzzParseConfig holds that a config that is taken has a digest for each layer, and is for this machine.
func FuzzParseConfig(f *testing.F) {
	for _, text := range []string{
		`{"os":"linux","rootfs":{"diff_ids":["` + someDigest + `"]},"config":{"User":"a","Env":["A=b"],"Entrypoint":["/x"],"ExposedPorts":{"80/tcp":{}},"Labels":{"a":"b"}}}`,
		`{"rootfs":{"diff_ids":["sha256:../x"]}}`, `{"rootfs":{"diff_ids":[""]},"config":null}`, `null`, `{"architecture":"s390x","rootfs":{"diff_ids":["` + someDigest + `"]}}`,
	} {
		f.Add([]byte(text), 1)
	}
	f.Fuzz(func(t *testing.T, text []byte, layers int) {
		c, err := ParseConfig(text, layers)
		if err != nil {
			return
		}
		if len(c.RootFS.DiffIDs) != layers || c.Architecture != "" && c.Architecture != runtime.GOARCH {
			t.Errorf("%s: took %d diff ids of %d layers for %s", text, len(c.RootFS.DiffIDs), layers, c.Architecture)
		}
		for _, id := range c.RootFS.DiffIDs {
			if !reference.IsDigest(id) {
				t.Errorf("%s: took the diff id %q", text, id)
			}
		}
	})
}

var someDigest = "sha256:" + strings.Repeat("0a", 32)

// FuzzReadImage holds that no archive of an image makes the reader name a file it does not have, or fall over.
func FuzzReadImage(f *testing.F) {
	f.Add(registrytest.Tar(f, `manifest.json=[{"Config":"c","Layers":["l.tar"]}]`, `c={"rootfs":{"diff_ids":["sha256:00"]}}`, "l.tar=x"))
	f.Add(registrytest.Tar(f, `index.json={"manifests":[{"digest":"sha256:00"}]}`))
	f.Add(registrytest.Tar(f, "index.json -> index.json"))
	f.Fuzz(func(t *testing.T, archive []byte) {
		name := filepath.Join(t.TempDir(), "a.tar")
		if err := os.WriteFile(name, archive, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		b, err := OpenTar(file)
		if err != nil {
			return
		}
		img, err := b.Image(t.Context())
		if err != nil {
			return
		}
		for _, l := range img.Layers {
			if len(l.Digests) == 0 {
				t.Errorf("layer %s has no digest", l.File)
			}
		}
	})
}
