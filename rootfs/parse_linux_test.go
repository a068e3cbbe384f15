package rootfs

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMountPoint(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw": "/mnt2",
		`36 35 98:0 / /a\040b\011c\134d rw - ext3 /dev/root rw`:          "/a b\tc\\d",
		`36 35 98:0 / /odd\9 rw - ext3 /dev/root rw`:                     `/odd\9`,
		"36 35 98:0": "",
	} {
		if got, ok := mountPoint(line); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %t; want %q", line, got, ok, want)
		}
	}
}

func FuzzMountPoint(f *testing.F) {
	f.Add(`36 35 98:0 / /a\040b rw - ext3 /dev/root rw`)
	f.Fuzz(func(t *testing.T, line string) {
		if got, ok := mountPoint(line); len(got) > len(line) || !ok && got != "" {
			t.Errorf("got %q, %t from %q", got, ok, line)
		}
	})
}

// FuzzReadImage holds that no archive of an image makes the reader name a file it does not have, or fall over.
func FuzzReadImage(f *testing.F) {
	f.Add(tarText(f, `manifest.json=[{"Config":"c","Layers":["l.tar"]}]`, `c={"rootfs":{"diff_ids":["sha256:00"]}}`, "l.tar=x"))
	f.Add(tarText(f, `index.json={"manifests":[{"digest":"sha256:00"}]}`))
	f.Add(tarText(f, "index.json -> index.json"))
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
		b, err := openTarBundle(file)
		if err != nil {
			return
		}
		img, err := readImage(t.Context(), b)
		if err != nil {
			return
		}
		for _, l := range img.layers {
			if len(l.digests) == 0 {
				t.Errorf("layer %s has no digest", l.file)
			}
		}
	})
}
