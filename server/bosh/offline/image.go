package offline

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"cupola/rootfs/oci"
	"cupola/rootfs/reference"
	"cupola/rootfs/registry"
	"cupola/rootfs/unpack"
	"cupola/runtime/fault"
	"cupola/server/bosh/manifest"
)

// image reads the jobs of a release image, layer by layer, and nothing else of it.
func (l *Library) image(ctx context.Context, of manifest.Image) (*jobs, error) {
	l.say("Reading release image %s", of.Reference)
	dir, err := os.MkdirTemp(l.dir, "image-")
	if err != nil {
		return nil, err
	}
	apply := func(layer io.Reader) error { return applyLayer(ctx, dir, layer) }
	if of.Local {
		err = localLayers(ctx, of.Reference, apply)
	} else {
		err = l.registryLayers(ctx, of, apply)
	}
	if err == nil {
		err = os.MkdirAll(filepath.Join(dir, jobsDir), 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", of.Reference, err)
	}
	return l.opened(of.Reference, filepath.Join(dir, jobsDir), ".")
}

// localLayers gives the layers of an OCI layout, or of an archive of an image.
func localLayers(ctx context.Context, path string, apply func(io.Reader) error) error {
	a, err := openLocal(path)
	if err != nil {
		return err
	}
	defer a.Close()
	img, err := a.Image(ctx)
	if err != nil {
		return err
	}
	for _, layer := range img.Layers {
		f, err := a.Open(layer.File)
		if err == nil {
			err = apply(f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func openLocal(path string) (*oci.Archive, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return oci.OpenDir(path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	a, err := oci.OpenTar(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return a, nil
}

// registryLayers gives the layers of an image in a registry; one with another digest
// than it should have is an error.
func (l *Library) registryLayers(ctx context.Context, of manifest.Image, apply func(io.Reader) error) error {
	ref, err := reference.Parse(string(reference.SchemeDocker) + "://" + of.Reference)
	if err != nil {
		return err
	}
	at := registry.Place{Ref: ref, Trusted: true, Auth: registry.Auth{Username: of.Credentials.Username, Password: of.Credentials.Password}}
	var faults []error
	for _, connect := range registry.New(l.Registries).Sources(at) {
		from, err := connect(ctx)
		var m oci.Manifest
		if err == nil {
			m, err = document(ctx, from, ref.TagOrDigest())
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		return blobs(ctx, from, m, apply)
	}
	return errors.Join(faults...)
}

// document is the manifest of the image for this machine.
func document(ctx context.Context, from registry.Source, name string) (m oci.Manifest, err error) {
	for range oci.MaxNesting {
		text, err := from.Manifest(ctx, name)
		if err != nil {
			return m, err
		}
		if reference.IsDigest(name) && oci.Digest(text) != name {
			return m, fmt.Errorf("the registry answers with another manifest than %s", name)
		}
		if m, err = oci.ParseManifest(text); err != nil || len(m.Manifests) == 0 {
			return m, err
		}
		chosen, err := oci.Choose(m.Manifests)
		if err != nil {
			return m, err
		}
		name = chosen.Digest
	}
	return m, fmt.Errorf("indexes are nested deeper than %d", oci.MaxNesting)
}

func blobs(ctx context.Context, from registry.Source, m oci.Manifest, apply func(io.Reader) error) error {
	for _, layer := range m.Layers {
		body, _, err := from.Blob(ctx, layer.Digest, 0)
		if err != nil {
			return err
		}
		sum := sha256.New()
		read := io.TeeReader(body, sum)
		if err = apply(read); err == nil {
			_, err = io.Copy(io.Discard, read)
		}
		if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); err == nil && got != layer.Digest {
			err = fmt.Errorf("layer %s has the digest %s", layer.Digest, got)
		}
		if err = errors.Join(err, body.Close()); err != nil {
			return err
		}
	}
	return nil
}

// applyLayer applies to a directory what a layer says of jobs.
func applyLayer(ctx context.Context, dir string, layer io.Reader) error {
	plain, err := unpack.Decompress(layer)
	if err != nil {
		return err
	}
	defer plain.Close()
	r, w := io.Pipe()
	fault.Go("offline", func() { w.CloseWithError(onlyJobs(w, plain)) }) // ends with its reader at the latest
	defer r.Close()
	return unpackInto(ctx, dir, r, unpack.Options{Image: true, Limits: limits})
}

// onlyJobs copies those entries of a layer that are jobs, directories on the way to
// them, or marks that these are gone.
func onlyJobs(to io.Writer, layer io.Reader) error {
	in, out := tar.NewReader(layer), tar.NewWriter(to)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out.Close()
		}
		if err != nil {
			return err
		}
		if !ofJobs(h.Name, h.Typeflag) {
			continue
		}
		h.PAXRecords, h.Format = nil, tar.FormatUnknown // no attributes: their owner is the user
		if h.Typeflag == tar.TypeDir {
			h.Mode |= 0o700
		}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(out, in); err != nil {
			return err
		}
	}
}

// ofJobs reports whether an entry of a layer matters for jobs.
func ofJobs(name string, kind byte) bool {
	name = path.Clean("/" + name)[1:]
	if strings.HasPrefix(name, jobsDir+"/") && !strings.HasPrefix(path.Base(name), ".wh.") {
		return kind == tar.TypeReg || kind == tar.TypeDir || kind == tar.TypeSymlink || kind == tar.TypeLink
	}
	dir, base := path.Split(name)
	gone, isMark := strings.CutPrefix(base, ".wh.")
	if isMark {
		at := dir + gone + "/"
		if gone == ".wh..opq" {
			at = dir
		}
		return strings.HasPrefix(jobsDir+"/", at) || strings.HasPrefix(at, jobsDir+"/")
	}
	return kind == tar.TypeDir && strings.HasPrefix(jobsDir+"/", name+"/") // no link leads out
}
