package uploads

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxManifest bounds a buildpack's manifest.yml, as Cloud Controller does;
// bytes.
const maxManifest = 1 << 20

// Buildpack checks an uploaded buildpack and returns the stack that its
// manifest.yml names, or "".
func Buildpack(ctx context.Context, f *os.File) (stack string, err error) {
	p := &packer{ctx: ctx, upload: Upload{Zip: f, Limits: defaultLimits}, check: newChecker(defaultLimits)}
	if err := p.openZip(); err != nil {
		return "", err
	}
	if err := p.checkTree(); err != nil {
		return "", err
	}
	for _, e := range p.zip.File {
		if !e.Mode().IsRegular() {
			continue
		}
		if err := p.check.content(ctx, e, io.Discard); err != nil {
			return "", err
		}
	}
	if !p.holdsBuildpack() {
		return "", &refusal{"", "holds no buildpack: it lacks bin/compile, bin/supply and bin/finalize"}
	}
	return p.manifestStack()
}

// holdsBuildpack reports whether the zip has a buildpack's programs, at the root
// or in one directory, as in archives of git hosts.
func (p *packer) holdsBuildpack() bool {
	return slices.ContainsFunc(p.zip.File, func(f *zip.File) bool {
		name := path.Clean(f.Name)
		if dir, below, ok := strings.Cut(name, "/"); ok && dir != "bin" {
			name = below
		}
		return name == "bin/compile" || name == "bin/supply" || name == "bin/finalize"
	})
}

func (p *packer) manifestStack() (string, error) {
	i := slices.IndexFunc(p.zip.File, func(f *zip.File) bool { return f.Name == "manifest.yml" })
	if i < 0 {
		return "", nil
	}
	f := p.zip.File[i]
	if f.UncompressedSize64 > maxManifest {
		return "", &refusal{"", "buildpack manifest is too large"}
	}
	r, err := f.Open()
	if err != nil {
		return "", &refusal{f.Name, err.Error()}
	}
	defer r.Close()
	var text bytes.Buffer
	if _, err := io.Copy(&text, r); err != nil {
		return "", err
	}
	var manifest struct {
		Stack string `yaml:"stack"`
	}
	if yaml.Unmarshal(text.Bytes(), &manifest) != nil {
		return "", &refusal{"", "buildpack manifest is not valid"}
	}
	return manifest.Stack, nil
}
