package cnb

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"cupola/rootfs/unpack"
	"cupola/runtime/pattern"
)

// maxDocument is the largest document of a layout, in bytes.
const maxDocument = 8 << 20

// reference names a blob of an OCI layout.
type reference struct {
	Digest   string `json:"digest"`
	Platform *struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
	} `json:"platform"`
}

// document is an index, or the manifest of an image.
type document struct {
	Manifests []reference `json:"manifests"`
	Config    reference   `json:"config"`
	Layers    []reference `json:"layers"`
}

// unpackLayout unpacks the layers of an OCI layout, which a .cnb file holds, next to it,
// and returns the package's own buildpack.
func unpackLayout(dir string) (main string, err error) {
	m, err := layoutImage(dir)
	if err != nil {
		return "", err
	}
	var config struct {
		Config struct{ Labels map[string]string }
	}
	if err := readBlob(dir, m.Config, &config); err != nil {
		return "", err
	}
	var e element
	if err := json.Unmarshal([]byte(config.Config.Labels[buildpackageLabel]), &e); err != nil || e.ID == "" {
		return "", fmt.Errorf("it has no label %s with the ID of a buildpack", buildpackageLabel)
	}
	root, err := os.Open(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	for _, l := range m.Layers {
		if err := unpackBlob(root, l); err != nil {
			return "", fmt.Errorf("layer %s: %w", l.Digest, err)
		}
	}
	return e.String(), nil
}

// layoutImage is the image for this machine. Indexes may be nested once.
func layoutImage(dir string) (m document, err error) {
	if err := readDocument(filepath.Join(dir, "index.json"), &m); err != nil {
		return m, err
	}
	for range 2 {
		if len(m.Manifests) == 0 {
			return m, nil
		}
		chosen, err := chooseImage(m.Manifests)
		if err != nil {
			return m, err
		}
		m = document{}
		if err := readBlob(dir, chosen, &m); err != nil {
			return m, err
		}
	}
	if len(m.Manifests) > 0 {
		return m, errors.New("its indexes are nested more than twice")
	}
	return m, nil
}

// chooseImage is the image for this machine, or the only one.
func chooseImage(all []reference) (reference, error) {
	for _, r := range all {
		if p := r.Platform; p != nil && p.Architecture == runtime.GOARCH && cmp.Or(p.OS, "linux") == "linux" {
			return r, nil
		}
	}
	if len(all) == 1 && all[0].Platform == nil {
		return all[0], nil
	}
	return reference{}, fmt.Errorf("there is no image for linux/%s", runtime.GOARCH)
}

var digestForm = pattern.Lazy(`^sha256:([0-9a-f]{64})$`)

// blobPath is where a layout has a blob.
func blobPath(dir string, r reference) (string, error) {
	m := digestForm().FindStringSubmatch(r.Digest)
	if m == nil {
		return "", fmt.Errorf("digest %q is not a sha256 digest", r.Digest)
	}
	return filepath.Join(dir, "blobs", "sha256", m[1]), nil
}

func readBlob(dir string, r reference, v any) error {
	path, err := blobPath(dir, r)
	if err != nil {
		return err
	}
	return readDocument(path, v)
}

func readDocument(path string, v any) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxDocument {
		return fmt.Errorf("%s is not a file of at most %d bytes", filepath.Base(path), maxDocument)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return nil
}

// unpackBlob unpacks a layer. Its names begin with "/", and it belongs to the user of apps.
func unpackBlob(root *os.File, r reference) error {
	path, err := blobPath(root.Name(), r)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	section, err := unpack.Section(f)
	if err != nil {
		return err
	}
	own := func(int, int) (int, int) { return os.Getuid(), os.Getgid() }
	_, err = unpack.Into(context.Background(), root, section, unpack.Options{Image: true, Owner: own})
	return err
}
