package rootfs

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"testing"

	"cupola/rootfs/reference"
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
		m, err := parseManifest(text)
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
		if d, err := choose(m.Manifests); err == nil && len(m.Manifests) > 0 {
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
		c, err := parseConfig(text, layers)
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

// FuzzLibrary reads libraries that are anything.
func FuzzLibrary(f *testing.F) {
	for _, name := range []string{"/lib/x86_64-linux-gnu/libc.so.6", "/bin/true"} {
		if text, err := os.ReadFile(name); err == nil {
			f.Add(text[:min(len(text), 4096)])
		}
	}
	f.Add(libcFile(elf.EM_AARCH64, "GLIBC_2.17", "GLIBC_2.4"))
	f.Add([]byte("\x7fELF musl libc\x001.2.5\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := bytes.NewReader(text)
		abiNote(r)
		machineOf(r)
		if v := muslVersion(r); v != "" && !strings.HasPrefix(v, "musl") {
			t.Errorf("got %q of musl", v)
		}
		if v := symbolVersion(r); v != "" && !strings.HasPrefix(v, symbolsOf) {
			t.Errorf("got the version %q", v)
		}
	})
}
