//go:build linux

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
)

// rawImage serves an image of one layer, whose config is any text.
func rawImage(config string, layer []byte) (digest string, serve func(http.ResponseWriter, *http.Request, http.Handler) bool) {
	descriptor := func(text []byte) string { return fmt.Sprintf(`{"digest":"%s","size":%d}`, digestText(text), len(text)) }
	manifest := fmt.Sprintf(`{"config":%s,"layers":[%s]}`, descriptor([]byte(config)), descriptor(layer))
	texts := map[string]string{digestText([]byte(config)): config, digestText(layer): string(layer)}
	return digestText([]byte(manifest)), func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if strings.Contains(r.URL.Path, "/manifests/") {
			w.Header().Set("Docker-Content-Digest", digestText([]byte(manifest)))
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
// climb out: CVE-2022-23648, volumes over /proc: CVE-2019-16884) nor what the container may do (CVE-2014-6408).
func TestConfigAsksForMore(t *testing.T) {
	needRoot(t)
	reg := newRegistry(t, loginNone)
	s := newStore(t, Config{Registries: reg.config()})
	layer := tarText(t, "a=1")
	config := fmt.Sprintf(`{"os":"linux","architecture":%q,"rootfs":{"diff_ids":[%q]},"config":{"User":"app",
		"Volumes":{"/proc":{},"/../../../../etc":{},"/":{}},"Privileged":true,"SecurityOpt":["seccomp=unconfined","apparmor=unconfined"],
		"Mounts":[{"source":"/","destination":"/host","type":"bind"}]},
		"host_config":{"Privileged":true,"Binds":["/:/host"],"CapAdd":["ALL"]},"HostConfig":{"Privileged":true},"container_config":{"User":"root"},
		"SecurityOptions":["label:disable"],"mount_label":"x","process_label":"x"}`, runtime.GOARCH, digestText(layer))
	digest, serve := rawImage(config, layer)
	reg.setSpoil(serve)
	ref := reg.ref("asks:1")
	img, err := s.Pull(t.Context(), ref, PullOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(ImageConfig{User: "app"}, img.Config); diff != "" {
		t.Errorf("the config (-want +got):\n%s", diff)
	}
	root, err := s.Mount(t.Context(), Request{ID: "asks", Stack: ref.WithDigest(digest).String(), DiskBytes: 16 << 20})
	if err != nil || len(root.Binds) > 0 {
		t.Errorf("got binds %v, %v; want none", root.Binds, err)
	}
	if err := s.Unmount(t.Context(), "asks"); err != nil {
		t.Error(err)
	}
}

// TestNoForeignProgram holds that no program of the machine, such as the xz that unpacked hostile archives as root in
// CVE-2014-9357, has a part in a pull, nor has anything in an image (the name service libraries of CVE-2019-14271).
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
	reg := newRegistry(t, loginNone)
	s := newStore(t, Config{Registries: reg.config()})
	for name, pack := range map[string]func(*testing.T, []byte) []byte{"gzip": gzipped, "zstd": zstded, "plain": func(_ *testing.T, b []byte) []byte { return b },
		"damaged-xz": func(*testing.T, []byte) []byte { return []byte("\xfd7zXZ\x00damaged") }} {
		plain := tarText(t, "name="+name, "etc/nsswitch.conf=passwd: evil\n", "lib/libnss_evil.so.2="+script, "usr/bin/xz="+script, "bin/sh="+script)
		layer := pack(t, plain)
		config := fmt.Sprintf(`{"os":"linux","architecture":%q,"rootfs":{"diff_ids":[%q]},"config":{}}`, runtime.GOARCH, digestText(plain))
		_, serve := rawImage(config, layer)
		reg.setSpoil(serve)
		if _, err := s.Pull(t.Context(), reg.ref(name+":1"), PullOptions{}); (err == nil) != (name != "damaged-xz") {
			t.Errorf("%s: got %v", name, err)
		}
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
		"config":         {writeFile(t, "a.tar", tarText(t, `manifest.json=[{"Config":"../../../../../../etc/passwd","Layers":[]}]`)), "no file"},
		"absolute":       {writeFile(t, "a.tar", tarText(t, `manifest.json=[{"Config":"/etc/passwd","Layers":[]}]`)), "no file"},
		"layer":          {writeFile(t, "a.tar", tarText(t, `manifest.json=[{"Config":"c","Layers":["../../../../../../etc/passwd"]}]`, "c={"+diff+"}")), "no file"},
		"link":           {writeFile(t, "a.tar", tarText(t, `manifest.json=[{"Config":"c","Layers":["l"]}]`, "c={"+diff+"}", "l -> /etc/passwd")), "no file"},
		"layout":         {layout("sha256:../../../../etc/passwd"), "no sha256"},
		"link in layout": {linked, "escapes"},
	} {
		if _, err := s.Import(t.Context(), "names", "", c.path, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v; want %q", name, err, c.want)
		}
	}
}

// TestSwappedLinks holds that a container that swaps directories for links to the host, over and over, leads no copy in or
// out of its root astray: CVE-2018-15664, CVE-2021-41089, CVE-2025-9566.
func TestSwappedLinks(t *testing.T) {
	needRoot(t)
	s := newStore(t, Config{IDMap: testIDs})
	evil := filepath.Join(t.TempDir(), "evil")
	if err := errors.Join(os.Mkdir(evil, 0o755), os.WriteFile(filepath.Join(evil, "secret"), []byte("host"), 0o600)); err != nil {
		t.Fatal(err)
	}
	root, err := s.Mount(t.Context(), Request{ID: "swap", Stack: "minifs", DiskBytes: 32 << 20})
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
		_ = s.Extract(t.Context(), "swap", archive, "/home/d", Owner{})
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
	s.spent.wait()
	if text := string(read(t, filepath.Join(evil, "secret"))); text != "host" {
		t.Errorf("got %q; want the host's file", text)
	}
}

// TestImageWithLinksIsRemoved holds that deleting an image deletes no file that its links lead to: CVE-2024-23652.
func TestImageWithLinksIsRemoved(t *testing.T) {
	needRoot(t)
	reg := newRegistry(t, loginNone)
	s := newStore(t, Config{Registries: reg.config()})
	keep := filepath.Join(t.TempDir(), "keep")
	if err := os.WriteFile(keep, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ref, digest := reg.push("links", imageOf(t, v1.Config{}, tarText(t, "dir -> "+filepath.Dir(keep), "file -> "+keep, "up -> ../../../../../../../..")))
	if _, err := s.Pull(t.Context(), ref, PullOptions{}); err != nil {
		t.Fatal(err)
	}
	if r, err := s.RemoveImage(t.Context(), digest); err != nil || len(r.Images) != 1 {
		t.Fatalf("got %+v, %v", r, err)
	}
	s.trash.wait()
	if _, err := os.Stat(keep); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{"chains", "oci"} {
		if left, err := os.ReadDir(s.path(dir)); err != nil || len(left) > 0 {
			t.Errorf("got %v, %v in %s; want nothing", left, err, dir)
		}
	}
}
