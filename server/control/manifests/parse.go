package manifests

import (
	"errors"

	"cupola/server/manifest"
	"cupola/store/cf"
)

// Manifest is a manifest that is compared with a space, or applied to it.
type Manifest struct {
	parsed   *manifest.Manifest
	apps     []*cf.App // of its first entries, once they are created
	recorded int       // entries of which it is recorded that they are applied
}

// Parse reads a manifest. Its errors are Cloud Controller's.
func Parse(text []byte) (*Manifest, error) {
	if len(text) > manifest.MaxBytes {
		return nil, cf.Errorf(cf.BadRequest, "Bad request: Manifest size is too large. The maximum supported size is 1MB.")
	}
	m, err := manifest.Parse(text)
	var faults manifest.Invalid
	switch {
	case errors.As(err, &faults):
		return nil, invalid(faults)
	case errors.Is(err, manifest.ErrAliases), errors.Is(err, manifest.ErrLarge):
		return nil, cf.Errorf(cf.BadRequest, "%s", err)
	case err != nil:
		return nil, cf.Errorf(cf.MessageParseError, "%s", err)
	}
	return &Manifest{parsed: m}, nil
}

// invalid is the error of a manifest with faults.
func invalid(faults manifest.Invalid) error {
	var many cf.Errors
	for _, f := range faults {
		many = append(many, cf.Unprocessable("%s", f))
	}
	return many
}
