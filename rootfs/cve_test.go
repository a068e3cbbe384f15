package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"cupola/rootfs/image"
	"cupola/rootfs/oci"
	"cupola/rootfs/registry"
	"cupola/rootfs/registry/registrytest"
	"cupola/rootfs/root"
	"cupola/rootfs/tree"
)

// rawImage serves an image of one layer, whose config is any text.
func rawImage(config string, layer []byte) (digest string, serve func(http.ResponseWriter, *http.Request, http.Handler) bool) {
	descriptor := func(text []byte) string { return fmt.Sprintf(`{"digest":"%s","size":%d}`, oci.Digest(text), len(text)) }
	manifest := fmt.Sprintf(`{"config":%s,"layers":[%s]}`, descriptor([]byte(config)), descriptor(layer))
	texts := map[string]string{oci.Digest([]byte(config)): config, oci.Digest(layer): string(layer)}
	return oci.Digest([]byte(manifest)), func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if strings.Contains(r.URL.Path, "/manifests/") {
			w.Header().Set("Docker-Content-Digest", oci.Digest([]byte(manifest)))
			io.WriteString(w, manifest)
			return true
		}
		text, ok := texts[filepath.Base(r.URL.Path)]
		if ok {
			io.WriteString(w, text)
		}
		return ok
	}
}

// TestConfigAsksForMore holds that an image decides nothing but what its process is: neither what is mounted (volumes that
// climb out: CVE-2022-23648, volumes over /proc: CVE-2019-16884) nor what the container may do (CVE-2014-6408), and what the daemon runs least of
// all (labels that name a logger: CVE-2026-53488; what a checkpoint asks of devices: CVE-2026-53492).
func TestConfigAsksForMore(t *testing.T) {
	needRoot(t)
	reg := registrytest.New(t, registrytest.None)
	s := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}})
	layer := registrytest.Tar(t, "a=1")
	ran := filepath.Join(t.TempDir(), "ran")
	config := fmt.Sprintf(`{"os":"linux","architecture":%q,"rootfs":{"diff_ids":[%q]},"config":{"User":"app",
		"Labels":{"containerd.io/restart.status":"running","containerd.io/restart.loguri":"binary:///usr/bin/touch?%s","cdi.k8s.io/x":"vendor.com/device=all","org.criu.checkpoint.container.name":"x"},
		"Volumes":{"/proc":{},"/../../../../etc":{},"/":{}},"Privileged":true,"SecurityOpt":["seccomp=unconfined","apparmor=unconfined"],
		"Mounts":[{"source":"/","destination":"/host","type":"bind"}]},
		"host_config":{"Privileged":true,"Binds":["/:/host"],"CapAdd":["ALL"]},"HostConfig":{"Privileged":true},"container_config":{"User":"root"},
		"SecurityOptions":["label:disable"],"mount_label":"x","process_label":"x"}`, runtime.GOARCH, oci.Digest(layer), ran)
	digest, serve := rawImage(config, layer)
	reg.Spoil(serve)
	ref := reg.Ref("asks:1")
	img, err := s.Images.Pull(t.Context(), ref, image.PullOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(image.Config{User: "app"}, img.Config); diff != "" {
		t.Errorf("the config (-want +got):\n%s", diff)
	}
	root, err := s.Mount(t.Context(), root.Request{ID: "asks", Stack: ref.WithDigest(digest).String(), DiskBytes: 16 << 20})
	if err != nil || len(root.Binds) > 0 {
		t.Errorf("got binds %v, %v; want none", root.Binds, err)
	}
	if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v of %s; want nothing run", err, ran)
	}
	if err := s.Unmount(t.Context(), "asks"); err != nil {
		t.Error(err)
	}
}

// TestNoForeignProgram holds that no program of the machine, such as the xz that unpacked hostile archives as root in
// CVE-2014-9357, has a part in a pull, nor has anything in an image (the name service libraries of CVE-2019-14271), be it that an archive is copied
// into a container (CVE-2026-41567). A damaged xz ends, too (CVE-2021-20291).
func TestNoForeignProgram(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	ran := filepath.Join(dir, "ran")
	script := "#!/bin/sh\necho $0 >> " + ran + "\nexit 1\n"
	for _, name := range []string{"xz", "unxz", "gzip", "gunzip", "pigz", "unpigz", "zstd", "unzstd", "tar", "bzip2", "mount", "chmod"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	reg := registrytest.New(t, registrytest.None)
	s := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}})
	stacks := map[string]string{}
	for name, pack := range map[string]func(*testing.T, []byte) []byte{"gzip": gzipped, "zstd": zstded, "plain": func(_ *testing.T, b []byte) []byte { return b },
		"damaged-xz": func(*testing.T, []byte) []byte { return []byte("\xfd7zXZ\x00damaged") }} {
		plain := registrytest.Tar(t, "name="+name, "etc/nsswitch.conf=passwd: evil\n", "lib/libnss_evil.so.2="+script, "usr/bin/xz="+script, "bin/sh="+script)
		layer := pack(t, plain)
		config := fmt.Sprintf(`{"os":"linux","architecture":%q,"rootfs":{"diff_ids":[%q]},"config":{}}`, runtime.GOARCH, oci.Digest(plain))
		digest, serve := rawImage(config, layer)
		reg.Spoil(serve)
		stacks[name] = reg.Ref(name + ":1").WithDigest(digest).String()
		if _, err := s.Images.Pull(t.Context(), reg.Ref(name+":1"), image.PullOptions{}); (err == nil) != (name != "damaged-xz") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := s.Mount(t.Context(), root.Request{ID: "copy", Stack: stacks["plain"], DiskBytes: 16 << 20}); err != nil {
		t.Fatal(err)
	}
	archive, _ := writeTgz(t, file{"in", "x", 0o644})
	if err := s.Extract(t.Context(), "copy", archive, "/home/d", tree.Owner{}); err != nil {
		t.Error(err)
	}
	if err := s.Unmount(t.Context(), "copy"); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(ran); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %q run, %v; want nothing", text, err)
	}
}

// TestNamesInArchives holds that an archive's own documents name nothing outside of it: CVE-2014-9358 had ids that were
// paths.
func TestNamesInArchives(t *testing.T) {
	t.Parallel()
	s := newStore(t, Config{})
	layout := func(digest string) string {
		dir := t.TempDir()
		index := fmt.Sprintf(`{"manifests":[{"digest":%q,"annotations":{"org.opencontainers.image.ref.name":"../../../x"}}]}`, digest)
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "index.json"), []byte(index), 0o600), os.MkdirAll(filepath.Join(dir, "blobs/sha256"), 0o755)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	linked := layout(someDigest)
	if err := os.Symlink("/etc/passwd", filepath.Join(linked, "blobs/sha256", strings.TrimPrefix(someDigest, "sha256:"))); err != nil {
		t.Fatal(err)
	}
	const diff = `"rootfs":{"diff_ids":["sha256:00"]}`
	for name, c := range map[string]struct{ path, want string }{
		"config":         {writeFile(t, "a.tar", registrytest.Tar(t, `manifest.json=[{"Config":"../../../../../../etc/passwd","Layers":[]}]`)), "no file"},
		"absolute":       {writeFile(t, "a.tar", registrytest.Tar(t, `manifest.json=[{"Config":"/etc/passwd","Layers":[]}]`)), "no file"},
		"layer":          {writeFile(t, "a.tar", registrytest.Tar(t, `manifest.json=[{"Config":"c","Layers":["../../../../../../etc/passwd"]}]`, "c={"+diff+"}")), "no file"},
		"link":           {writeFile(t, "a.tar", registrytest.Tar(t, `manifest.json=[{"Config":"c","Layers":["l"]}]`, "c={"+diff+"}", "l -> /etc/passwd")), "no file"},
		"layout":         {layout("sha256:../../../../etc/passwd"), "not a sha256 digest"},
		"link in layout": {linked, "escapes"},
	} {
		if _, err := s.Stacks.Import(t.Context(), "names", "", c.path, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v; want %q", name, err, c.want)
		}
	}
}

// TestSwappedLinks holds that a container that swaps directories for links to the host, over and over, leads no copy in or
// out of its root astray: CVE-2018-15664, CVE-2019-10152, CVE-2019-18466, CVE-2021-41089, CVE-2023-0778, CVE-2025-9566,
// CVE-2026-41568.
func TestSwappedLinks(t *testing.T) {
	needRoot(t)
	s := newStore(t, Config{IDs: testIDs})
	evil := filepath.Join(t.TempDir(), "evil")
	if err := errors.Join(os.Mkdir(evil, 0o755), os.WriteFile(filepath.Join(evil, "secret"), []byte("host"), 0o600)); err != nil {
		t.Fatal(err)
	}
	root, err := s.Mount(t.Context(), root.Request{ID: "swap", Stack: "minifs", DiskBytes: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	good, link := filepath.Join(root.Path, "home/d"), filepath.Join(root.Path, "home/l")
	if err := errors.Join(os.Mkdir(good, 0o777), os.WriteFile(filepath.Join(good, "secret"), []byte("own"), 0o600), os.Symlink(evil, link)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	swapped := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if err := unix.Renameat2(unix.AT_FDCWD, good, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE); err != nil {
				swapped <- err
				return
			}
		}
		swapped <- nil
	}()
	archive, _ := writeTgz(t, file{"in", "x", 0o644})
	for range 300 {
		// Each may fail while the link stands there: it leads to nothing in the root.
		_ = s.WriteFile("swap", "/home/d/in", []byte("x"), 0o644, 0, 0)
		_ = s.Extract(t.Context(), "swap", archive, "/home/d", tree.Owner{})
		if f, err := s.Open("swap", "/home/d/secret"); err == nil {
			text, _ := io.ReadAll(f)
			f.Close()
			if string(text) != "own" {
				t.Fatalf("got %q, the host's file", text)
			}
		}
	}
	stop()
	if err := <-swapped; err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(evil)
	if uid, _ := ownerOf(t, evil); err != nil || len(entries) != 1 || uid != 0 {
		t.Errorf("got %v, %v of %d; want the host's directory as it was", entries, err, uid)
	}
	// Nor does taking the root away follow links: CVE-2024-23652.
	if err := s.Unmount(t.Context(), "swap"); err != nil {
		t.Fatal(err)
	}
	s.Roots.Close()
	if text := string(read(t, filepath.Join(evil, "secret"))); text != "host" {
		t.Errorf("got %q; want the host's file", text)
	}
}

// TestImageWithLinksIsRemoved holds that deleting an image deletes no file that its links lead to: CVE-2024-23652.
func TestImageWithLinksIsRemoved(t *testing.T) {
	needRoot(t)
	reg := registrytest.New(t, registrytest.None)
	s := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}})
	keep := filepath.Join(t.TempDir(), "keep")
	if err := os.WriteFile(keep, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ref, digest := reg.Push("links", registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "dir -> "+filepath.Dir(keep), "file -> "+keep, "up -> ../../../../../../../..")))
	if _, err := s.Images.Pull(t.Context(), ref, image.PullOptions{}); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Images.Remove(t.Context(), digest); err != nil || len(r.Images) != 1 {
		t.Fatalf("got %+v, %v", r, err)
	}
	s.store.Trash.Wait()
	if _, err := os.Stat(keep); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{"chains", "oci"} {
		if left, err := os.ReadDir(s.store.Path(dir)); err != nil || len(left) > 0 {
			t.Errorf("got %v, %v in %s; want nothing", left, err, dir)
		}
	}
}

// rawHeader is a tar header of any type, whose entry has so many bytes.
func rawHeader(kind byte, size int, magic string) []byte {
	b := make([]byte, 512)
	copy(b, "x")
	copy(b[100:], "0000644\x00")
	copy(b[124:], fmt.Sprintf("%011o\x00", size))
	copy(b[136:], "00000000000\x00")
	b[156] = kind
	copy(b[257:], magic)
	return b
}

// sum completes a header.
func sum(b []byte) []byte {
	copy(b[148:], "        ")
	total := 0
	for _, c := range b[:512] {
		total += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", total))
	return b
}

// TestHeaderBombs pulls layers whose headers alone are to fill the daemon's memory.
func TestHeaderBombs(t *testing.T) {
	needRoot(t)
	const ustar, gnu = "ustar\x0000", "ustar  \x00"
	record := func(text string) string { // of PAX, whose length counts its own digits
		n := len(text) + 2
		for len(fmt.Sprint(n))+len(text)+2 != n {
			n = len(fmt.Sprint(n)) + len(text) + 2
		}
		return fmt.Sprintf("%d %s\n", n, text)
	}
	extended := func(text string) []byte {
		padded := append([]byte(text), make([]byte, 511-(len(text)+511)%512)...)
		return append(sum(rawHeader('x', len(text), ustar)), padded...)
	}
	old := rawHeader('S', 0, gnu)
	old[482] = 1 // more of the map follows
	copy(old[483:], "00000000000\x00")
	old = sum(old)
	for range 200_000 { // 100 MB of a map of holes
		more := make([]byte, 512)
		copy(more, strings.Repeat("00000000000\x00", 42))
		more[504] = 1
		old = append(old, more...)
	}
	sparse := extended(record("GNU.sparse.major=1") + record("GNU.sparse.minor=0") + record("GNU.sparse.name=x") + record("GNU.sparse.realsize=0"))
	holes := 8 << 20
	sparse = append(append(sparse, sum(rawHeader('0', holes, ustar))...), "9999999\n"+strings.Repeat("0\n", holes/2)...)
	reg := registrytest.New(t, registrytest.None)
	for name, layer := range map[string][]byte{
		"CVE-2022-2879 PAX header":      append(extended(record("comment="+strings.Repeat("x", 8<<20))), registrytest.Tar(t, "a=1")...),
		"CVE-2026-32288 old GNU sparse": old,
		"CVE-2025-58183 PAX sparse":     sparse,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, Config{Registries: registry.Config{RootCAs: reg.CAs()}})
			packed := gzipped(t, layer)
			config := fmt.Sprintf(`{"os":"linux","architecture":%q,"rootfs":{"diff_ids":[%q]},"config":{}}`, runtime.GOARCH, oci.Digest(layer))
			_, serve := rawImage(config, packed)
			reg.Spoil(serve)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := s.Images.Pull(t.Context(), reg.Ref("bomb:1"), image.PullOptions{})
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Error("got no error; want the layer refused")
			}
			if taken := after.TotalAlloc - before.TotalAlloc; taken > 64<<20 {
				t.Errorf("took %d MiB for %v", taken>>20, err)
			}
			if chains, _ := os.ReadDir(s.store.Path("chains")); len(chains) > 0 {
				t.Errorf("got %v; want nothing kept", chains)
			}
			t.Log(err)
		})
	}
}
