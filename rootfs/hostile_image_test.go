package rootfs

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"cupola/rootfs/image"
	"cupola/rootfs/oci"
	"cupola/rootfs/reference"
	"cupola/rootfs/registry"
	"cupola/rootfs/registry/registrytest"
	"cupola/rootfs/unpack"
)

// hostileLayers are layers that harmed others' engines, or might. want is what the refusal says; "" where the layer is
// taken without harm.
var hostileLayers = []struct {
	name, cve, want string
	entries         []*tarEntry
}{
	{"climbing name", "CVE-2014-9356", "climbs out", []*tarEntry{entryOf("../../evil", "x", tar.TypeReg)}},
	{"climbing name in the middle", "CVE-2014-9356", "climbs out", []*tarEntry{entryOf("a/../../../evil", "x", tar.TypeReg)}},
	{"absolute link, then through it", "CVE-2014-6407", "no such file", []*tarEntry{entryOf("l", "/EVIL", tar.TypeSymlink), entryOf("l/evil", "x", tar.TypeReg)}},
	{"climbing link, then through it", "CVE-2014-6407", "", []*tarEntry{entryOf("l", "../../../../../..", tar.TypeSymlink), entryOf("l/evil", "x", tar.TypeReg)}},
	{"hard link to a file of the host", "CVE-2014-6407", "no file", []*tarEntry{entryOf("l", "/etc/passwd", tar.TypeLink)}},
	{"climbing hard link", "CVE-2014-6407", "bad target", []*tarEntry{entryOf("l", "../../../etc/passwd", tar.TypeLink)}},
	{"file over a link to the host", "CVE-2025-47290", "", []*tarEntry{entryOf("l", "/EVIL/evil", tar.TypeSymlink), entryOf("l", "x", tar.TypeReg)}},
	{"directory over a link to the host", "CVE-2021-32760", "", []*tarEntry{entryOf("l", "/EVIL", tar.TypeSymlink), entryOf("l/", "", tar.TypeDir)}},
	{"root as a link", "CVE-2021-29136", "replaces the root", []*tarEntry{entryOf("./", "/EVIL", tar.TypeSymlink)}},
	{"root as a file", "", "replaces the root", []*tarEntry{entryOf(".", "x", tar.TypeReg)}},
	{"block device", "", `"disk" is a device`, []*tarEntry{deviceOf("disk", tar.TypeBlock, 8, 0)}},
	{"disk in /dev", "", `"dev/sda" is a device`, []*tarEntry{deviceOf("dev/sda", tar.TypeBlock, 8, 0)}},
	{"memory of the host", "", `"mem" is a device`, []*tarEntry{deviceOf("mem", tar.TypeChar, 1, 1)}},
	{"device below a name like /dev", "", `"devil/null" is a device`, []*tarEntry{deviceOf("devil/null", tar.TypeChar, 1, 3)}},
	{"overlay's whiteout as a device", "", `"white" is a device`, []*tarEntry{deviceOf("white", tar.TypeChar, 0, 0)}},
	{"root as a FIFO", "", "replaces the root", []*tarEntry{deviceOf(".", tar.TypeFifo, 0, 0)}},
	{"the usual devices", "", "", []*tarEntry{deviceOf("dev/null", tar.TypeChar, 1, 3), deviceOf("./dev/console", tar.TypeChar, 5, 1), deviceOf("/dev/net/tun", tar.TypeChar, 10, 200), deviceOf("dev/loop0", tar.TypeBlock, 7, 0)}},
	{"FIFO over a link to the host", "CVE-2025-47290", "", []*tarEntry{entryOf("l", "/EVIL/fifo", tar.TypeSymlink), deviceOf("l", tar.TypeFifo, 0, 0)}},
	{"whiteout of what is above", "", "whiteout of nothing", []*tarEntry{entryOf(".wh...", "", tar.TypeReg)}},
	{"whiteout through a link to the host", "CVE-2024-23652", "", []*tarEntry{entryOf("l", "/EVIL", tar.TypeSymlink), entryOf("l/.wh.keep", "", tar.TypeReg)}},
	{"opaque through a link to the host", "CVE-2024-23652", "", []*tarEntry{entryOf("l", "/EVIL", tar.TypeSymlink), entryOf("l/.wh..wh..opq", "", tar.TypeReg)}},
	{"whiteout of the root", "", "", []*tarEntry{entryOf(".wh..wh..opq", "", tar.TypeReg)}},
	// What is added to every root must not be written, nor read, through an image's links.
	{"accounts as links to the host", "CVE-2024-9676", "", []*tarEntry{entryOf("etc/passwd", "/EVIL/keep", tar.TypeSymlink), entryOf("etc/group", "../../../../../EVIL/keep", tar.TypeSymlink)}},
	{"accounts as FIFOs", "CVE-2024-9676", "", []*tarEntry{deviceOf("etc/passwd", tar.TypeFifo, 0, 0), deviceOf("etc/group", tar.TypeFifo, 0, 0), deviceOf("etc/os-release", tar.TypeFifo, 0, 0), deviceOf("bin/sh", tar.TypeFifo, 0, 0)}},
	{"directories as links to the host", "CVE-2020-10696", "no such file", []*tarEntry{entryOf("etc", "/EVIL", tar.TypeSymlink), entryOf("home", "/EVIL", tar.TypeSymlink)}},
	{"accounts' directory climbs to the host", "CVE-2024-5154", "no such file", []*tarEntry{entryOf("etc", "../../../../../../EVIL", tar.TypeSymlink)}},
	{"places as links to the host", "CVE-2020-10696", "symbolic links", []*tarEntry{entryOf("home/vcap", "/EVIL", tar.TypeSymlink), entryOf("tmp", "/EVIL", tar.TypeSymlink)}},
	{"files as links to the host", "CVE-2020-10696", "", []*tarEntry{entryOf("app", "/EVIL", tar.TypeSymlink), entryOf("etc/ssl/certs/ca-certificates.crt", "/EVIL/ca", tar.TypeSymlink), entryOf("etc/hosts", "/EVIL/hosts", tar.TypeSymlink)}},
	{"set-uid root", "CVE-2021-41091, CVE-2021-41103, CVE-2024-25621", "", []*tarEntry{modeOf("su", 0o4755)}},
	{"long name", "", "too long", []*tarEntry{entryOf(strings.Repeat("x", 300), "x", tar.TypeReg)}},
}

func deviceOf(name string, kind byte, major, minor int64) *tarEntry {
	return &tarEntry{h: &tar.Header{Name: name, Typeflag: kind, Mode: 0o666, Devmajor: major, Devminor: minor}}
}

func modeOf(name string, mode int64) *tarEntry {
	e := entryOf(name, "x", tar.TypeReg)
	e.h.Mode = mode
	return e
}

// TestHostileLayers pulls each layer alone and above another, and looks that nothing outside of the store's tree changed.
func TestHostileLayers(t *testing.T) {
	needRoot(t)
	reg := registrytest.New(t, registrytest.None)
	for i, c := range hostileLayers {
		for _, base := range [][]byte{nil, registrytest.Tar(t, "below=1")} {
			t.Run(fmt.Sprintf("%s %s above %d", c.cve, c.name, min(len(base), 1)), func(t *testing.T) {
				up := t.TempDir()
				evil := filepath.Join(up, "host")
				if err := errors.Join(os.Mkdir(evil, 0o755), os.WriteFile(filepath.Join(evil, "keep"), []byte("x"), 0o600)); err != nil {
					t.Fatal(err)
				}
				for _, e := range c.entries {
					e.h.Linkname = strings.Replace(e.h.Linkname, "/EVIL", evil, 1)
				}
				layers := [][]byte{tarOfHeaders(t, c.entries...)}
				if base != nil {
					layers = [][]byte{base, layers[0]}
				}
				s := newStore(t, Config{Dir: filepath.Join(up, "store"), Registries: registry.Config{RootCAs: reg.CAs()}, IDs: testIDs})
				ref, digest := reg.Push(fmt.Sprintf("hostile%d", i), registrytest.Image(t, v1.Config{}, layers...))
				_, err := s.Images.Pull(t.Context(), ref, image.PullOptions{})
				if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("%s: got %v; want %q", c.cve, err, c.want)
				}
				if err == nil {
					checkHarmless(t, s, ref.WithDigest(digest))
				}
				entries, err := os.ReadDir(evil)
				if st, serr := os.Stat(evil); err != nil || len(entries) != 1 || entries[0].Name() != "keep" || serr != nil || st.Mode().Perm() != 0o755 {
					t.Errorf("%s: got %v, %v, %v; want the host's directory as it was", c.cve, entries, err, serr)
				}
				if beside, err := os.ReadDir(up); err != nil || len(beside) != 2 {
					t.Errorf("%s: got %v, %v beside the store", c.cve, beside, err)
				}
			})
		}
	}
}

// checkHarmless holds that no file of a root is a device, and that none is outside of the container's owners.
func checkHarmless(t *testing.T, s *Store, ref reference.Reference) {
	t.Helper()
	inRoot(t, s, ref.String(), func(root string) {
		err := filepath.WalkDir(root, func(name string, e os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if e.Type()&(os.ModeDevice|os.ModeSocket) != 0 {
				t.Errorf("%s is %v", name, e.Type())
			}
			if uid, gid := ownerOf(t, name); uid < testIDs.Base || gid < testIDs.Base {
				t.Errorf("%s belongs to %d:%d", name, uid, gid)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	// A set-uid file is for the container alone: no other user of this machine can reach it (CVE-2021-41091, CVE-2021-41103, CVE-2024-25621).
	for _, dir := range []string{"chains", "oci", "images"} {
		if st, err := os.Stat(s.store.Path(dir)); err != nil || st.Mode().Perm() != 0o700 {
			t.Errorf("got %v, %v for %s; want it root's alone", st, err, dir)
		}
	}
}

// TestLimits pulls what is small to move and large to keep.
func TestLimits(t *testing.T) {
	needRoot(t)
	reg := registrytest.New(t, registrytest.None)
	var names []string
	for n := range 60 {
		names = append(names, fmt.Sprintf("f%d=", n))
	}
	for _, c := range []struct {
		name, want string
		limits     unpack.Limits
		layers     [][]byte
	}{
		{"entries", "more than 50 entries", unpack.Limits{Entries: 50}, [][]byte{registrytest.Tar(t, names...)}},
		{"entries of all layers", "more than", unpack.Limits{Entries: 100}, [][]byte{registrytest.Tar(t, names...), registrytest.Tar(t, append(names, "z=")...)}},
		{"bytes", "more than 1000000 bytes", unpack.Limits{Bytes: 1e6}, [][]byte{registrytest.Tar(t, "f="+strings.Repeat("0", 2e6))}},
		{"bytes of all layers", "more than", unpack.Limits{Bytes: 3e6}, [][]byte{registrytest.Tar(t, "f="+strings.Repeat("0", 2e6)), registrytest.Tar(t, "f="+strings.Repeat("1", 2e6))}},
		{"bomb, cve-2017-14992", "times its size", unpack.Limits{}, [][]byte{registrytest.Tar(t, "f="+strings.Repeat("0", 300<<20))}},
	} {
		s := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}, Limits: c.limits})
		ref, _ := reg.Push(strings.NewReplacer(" ", "-", ",", "").Replace(c.name), registrytest.Image(t, v1.Config{}, c.layers...))
		if _, err := s.Images.Pull(t.Context(), ref, image.PullOptions{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v; want %q", c.name, err, c.want)
		}
		if images, err := s.Images.List(); err != nil || len(images) > 0 {
			t.Errorf("%s: got %v, %v; want no image", c.name, images, err)
		}
		if left, err := os.ReadDir(s.store.Path("oci")); err != nil || len(left) > 0 {
			t.Errorf("%s: got %v, %v; want nothing left of an image that was refused", c.name, left, err)
		}
	}
}

// TestLies pulls images whose parts are not what they say.
func TestLies(t *testing.T) {
	needRoot(t)
	reg := registrytest.New(t, registrytest.None)
	layer := registrytest.Tar(t, "a=1")
	honest := registrytest.Image(t, v1.Config{}, layer)
	lie := func(change func(*v1.ConfigFile)) v1.Image {
		file, err := honest.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		file = file.DeepCopy()
		change(file)
		img, err := mutate.ConfigFile(honest, file)
		if err != nil {
			t.Fatal(err)
		}
		return img
	}
	wrong := v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("0a", 32)}
	blob := func(text string) func(http.ResponseWriter, *http.Request, http.Handler) bool {
		return func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") {
				return false
			}
			io.WriteString(w, text)
			return true
		}
	}
	document := func(text string) func(http.ResponseWriter, *http.Request, http.Handler) bool {
		return func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if !strings.Contains(r.URL.Path, "/manifests/") {
				return false
			}
			w.Header().Set("Docker-Content-Digest", oci.Digest([]byte(text)))
			io.WriteString(w, text)
			return true
		}
	}
	cases := []struct {
		name, cve, want string
		img             v1.Image
		spoil           func(http.ResponseWriter, *http.Request, http.Handler) bool
	}{
		{"wrong diffID", "CVE-2014-8178", "not to the " + wrong.String(), lie(func(c *v1.ConfigFile) { c.RootFS.DiffIDs[0] = wrong }), nil},
		{"no diffID", "", "0 diff ids", lie(func(c *v1.ConfigFile) { c.RootFS.DiffIDs = nil }), nil},
		{"climbing diffID", "CVE-2024-3727", "not a sha256 digest", lie(func(c *v1.ConfigFile) { c.RootFS.DiffIDs[0] = v1.Hash{Algorithm: "sha256", Hex: "../../x"} }), nil},
		{"long blob", "", "longer than", honest, blob(strings.Repeat("x", 1<<20))},
		{"manifest of another digest", "", "has the digest", honest, func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/manifests/") {
				return false
			}
			io.WriteString(w, `{"layers":[]}`)
			return true
		}},
		{"climbing layer digest", "CVE-2024-3727", "not a sha256 digest", honest, document(`{"config":{"digest":"` + someDigest + `","size":1},"layers":[{"digest":"sha256:../../../etc/passwd","size":1}]}`)},
		{"both index and image", "CVE-2021-41190", "both an index and an image", honest, document(`{"manifests":[{"digest":"` + someDigest + `"}],"layers":[{"digest":"` + someDigest + `"}]}`)},
		{"index that says image", "CVE-2021-41190", "both an index and an image", honest, document(`{"mediaType":"application/vnd.oci.image.manifest.v1+json","manifests":[{"digest":"` + someDigest + `"}]}`)},
		{"endless manifest", "CVE-2023-25153", "larger than", honest, document(strings.Repeat(" ", oci.MaxDocument+10))},
		{"huge config", "CVE-2023-25153", "config has", honest, document(`{"config":{"digest":"` + someDigest + `","size":1000000000},"layers":[{"digest":"` + someDigest + `","size":1}]}`)},
		{"null for a manifest", "CVE-2021-21285", "no layers", honest, document(`null`)},
		{"null for a layer", "CVE-2021-21285", "not a sha256 digest", honest, document(`{"config":{"digest":"` + someDigest + `","size":1},"layers":[null]}`)},
		{"null for an image of an index", "CVE-2021-21285", "no image for linux", honest, document(`{"manifests":[null,null]}`)},
		{"nothing but an empty object", "CVE-2021-21285", "no layers", honest, document(`{}`)},
		{"other types", "CVE-2021-21285", "does not parse", honest, document(`{"layers":{"a":1},"manifests":"x"}`)},
		{"index with a subject of no digest", "CVE-2026-95839", "not a sha256 digest", honest, document(`{"manifests":[{"digest":"x","annotations":{"io.containerd.manifest.subject":"x"}}]}`)},
		{"index of many subjects", "CVE-2026-95839", "no image for linux", honest, document(`{"manifests":[{"digest":"x","annotations":{"io.containerd.manifest.subject":"x"}},{"digest":"","annotations":{"io.containerd.manifest.subject":":"}}]}`)},
		{"indexes in indexes", "CVE-2026-53493", "nested too deep", honest, nestedIndexes()},
		{"encrypted layers", "CVE-2022-24778", "encrypted", honest, document(`{"config":{"digest":"` + someDigest + `","size":1},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip+encrypted","digest":"` + someDigest + `","size":1}]}`)},
		{"negative size", "", "of -1 bytes", honest, document(`{"config":{"digest":"` + someDigest + `","size":-1},"layers":[{"digest":"` + someDigest + `","size":1}]}`)},
		{"no image at all", "", "not a container image", honest, document(`{"mediaType":"application/vnd.cncf.helm","layers":[{"digest":"` + someDigest + `"}]}`)},
	}
	for i, c := range cases {
		t.Run(strings.TrimSpace(c.cve+" "+c.name), func(t *testing.T) {
			s := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}})
			reg.Spoil(nil)
			ref, _ := reg.Push(fmt.Sprintf("lie%d", i), c.img)
			reg.Spoil(c.spoil)
			if _, err := s.Images.Pull(t.Context(), ref, image.PullOptions{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want %q", err, c.want)
			}
			chains, _ := os.ReadDir(s.store.Path("chains"))
			records, _ := os.ReadDir(s.store.Path("images"))
			if len(chains)+len(records) > 0 {
				t.Errorf("got %v and %v; want nothing kept", chains, records)
			}
		})
	}
}

// nestedIndexes serves an index whose two children each are one likewise, and so on: 2^20 ways to one image.
func nestedIndexes() func(http.ResponseWriter, *http.Request, http.Handler) bool {
	const mediaType = "application/vnd.oci.image.index.v1+json"
	texts, digest := map[string]string{}, someDigest
	for range 20 {
		child := fmt.Sprintf(`{"digest":%q,"platform":{"os":"linux","architecture":%q}}`, digest, runtime.GOARCH)
		text := fmt.Sprintf(`{"mediaType":%q,"manifests":[%s,%s]}`, mediaType, child, child)
		digest = oci.Digest([]byte(text))
		texts[digest] = text
	}
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		text, ok := texts[filepath.Base(r.URL.Path)]
		if !ok {
			text = texts[digest]
		}
		w.Header().Set("Docker-Content-Digest", oci.Digest([]byte(text)))
		io.WriteString(w, text)
		return true
	}
}

// TestWrongBlob holds that a layer of another content with the right length is refused, and not kept for the next pull.
func TestWrongBlob(t *testing.T) {
	needRoot(t)
	reg := registrytest.New(t, registrytest.None)
	s := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}})
	img := registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "a="+registrytest.Noise(3, 1000)))
	ref, _ := reg.Push("wrong", img)
	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	reg.Spoil(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !strings.Contains(r.URL.Path, m.Layers[0].Digest.String()) {
			return false
		}
		_, _ = w.Write(make([]byte, m.Layers[0].Size))
		return true
	})
	if _, err := s.Images.Pull(t.Context(), ref, image.PullOptions{}); err == nil || !strings.Contains(err.Error(), "has the digest") {
		t.Fatalf("got %v; want the digest refused", err)
	}
	reg.Spoil(nil)
	if _, err := s.Images.Pull(t.Context(), ref, image.PullOptions{}); err != nil {
		t.Errorf("got %v once the registry is honest", err)
	}
}

// TestForeignLayer holds that a manifest's URLs are not followed, let alone with credentials: CVE-2020-15157.
func TestForeignLayer(t *testing.T) {
	needRoot(t)
	reg, other := registrytest.New(t, registrytest.Basic), registrytest.New(t, registrytest.None)
	cfg := registry.Config{RootCAs: reg.CAs()}
	cfg.RootCAs.AddCert(other.Certificate())
	s := newStore(t, Config{Registries: cfg})
	text := registrytest.Tar(t, "a=1")
	base := registrytest.Image(t, v1.Config{}, text)
	layers, err := base.Layers()
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.Append(registrytest.Image(t, v1.Config{}), mutate.Addendum{Layer: layers[0], URLs: []string{other.URL + "/steal"}, MediaType: types.DockerForeignLayer})
	if err != nil {
		t.Fatal(err)
	}
	ref, _ := reg.Push("foreign", registrytest.Platform(t, img, runtime.GOARCH, v1.Config{}))
	if _, err := s.Images.Pull(t.Context(), ref, userSecret); err == nil {
		t.Log("the registry had the layer itself")
	}
	if len(other.All()) > 0 {
		t.Errorf("got requests %q; want none beside the registry", other.All())
	}
}

// TestPlainTarNamedPK holds that a layer is a tar even when its first name begins like a zip.
func TestPlainTarNamedPK(t *testing.T) {
	needRoot(t)
	reg := registrytest.New(t, registrytest.None)
	s := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}})
	layer := static.NewLayer(registrytest.Tar(t, "PK\x03\x04=1"), types.OCIUncompressedLayer)
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	ref, _ := reg.Push("pk", registrytest.Platform(t, img, runtime.GOARCH, v1.Config{}))
	if _, err := s.Images.Pull(t.Context(), ref, image.PullOptions{}); err != nil {
		t.Error(err)
	}
}
