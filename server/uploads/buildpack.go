package uploads

import (
	"archive/zip"
	"errors"
	"io"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"
)

// maxManifest bounds a buildpack's manifest.yml, as Cloud Controller does;
// bytes.
const maxManifest = 1 << 20

// What Cloud Controller says of a buildpack's zip (stack_name_extractor.rb).
const (
	notValid         = "buildpack zipfile is not valid"
	manifestNotValid = "buildpack manifest is not valid"
	manifestTooLarge = "buildpack manifest is too large"
)

// Buildpack returns the stack that the manifest.yml of an uploaded buildpack
// names, or "". Like Cloud Controller it accepts any zip: one that contains no
// buildpack, or that cannot be unpacked, fails the stagings that use it.
func Buildpack(f *os.File) (stack string, err error) {
	z, err := openZip(f)
	if IsInvalid(err) {
		return "", &refusal{"", notValid}
	}
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(z.File, func(f *zip.File) bool { return f.Name == "manifest.yml" })
	if i < 0 {
		return "", nil
	}
	text, err := readManifest(z.File[i])
	if err != nil {
		return "", err
	}
	var manifest struct {
		Stack string `yaml:"stack"`
	}
	if yaml.Unmarshal(text, &manifest) != nil {
		return "", &refusal{"", manifestNotValid}
	}
	return manifest.Stack, nil
}

func readManifest(f *zip.File) ([]byte, error) {
	if f.UncompressedSize64 > maxManifest {
		return nil, &refusal{"", manifestTooLarge}
	}
	r, err := f.Open()
	if err != nil {
		return nil, &refusal{"", notValid}
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, maxManifest+1))
	var failed *os.PathError // of the disk, not of the zip
	switch {
	case errors.As(err, &failed):
		return nil, err
	case err != nil:
		return nil, &refusal{"", notValid}
	case len(text) > maxManifest:
		return nil, &refusal{"", manifestTooLarge}
	}
	return text, nil
}
