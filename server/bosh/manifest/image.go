package manifest

import (
	"fmt"
	"strings"

	"cupola/runtime/pattern"
)

// Image is where the image of a job is.
type Image struct {
	// Reference is what a registry knows it by. When Local is set, it is the
	// path of an OCI layout or of an archive instead.
	Reference   string
	Local       bool
	Credentials Credentials
	// Archive is set when the job is in an uploaded release instead; then all else
	// is empty.
	Archive Archive
}

// Archive is a release that was uploaded or can be downloaded. The zero value is
// none.
type Archive struct {
	Name    string
	Version string // or latest
	URL     string // "" if it must be there
	Digest  string // of what is at URL; "" for any
	OS      string // of the stemcell
}

// Image is that of a job of a group:
// url/name:stemcell.os-stemcell.version-version, by the release's own stemcell
// or that of the group.
func (m *Manifest) Image(g *InstanceGroup, j *Job) (Image, error) {
	r := m.Release(j.Release)
	if r == nil {
		return Image{}, fmt.Errorf("release '%s' not found", j.Release)
	}
	if err := r.fit(); err != nil {
		return Image{}, err
	}
	if path, ok := strings.CutPrefix(r.URL, "file://"); ok {
		return Image{Reference: path, Local: true}, nil
	}
	s := m.stemcellOf(g, r)
	if s == nil || s.OS == "" || s.Version == "" && !r.archived() {
		return Image{}, fmt.Errorf("stemcell could not be resolved for instance group %s", g.Name)
	}
	if r.archived() {
		return Image{Archive: Archive{Name: r.Name, Version: r.Version, URL: r.URL, Digest: r.SHA1, OS: s.OS}}, nil
	}
	ref := strings.TrimRight(strings.TrimPrefix(r.URL, "docker://"), "/") + "/" + r.Name + ":" + s.OS + "-" + s.Version + "-" + r.Version
	if !imageReference().MatchString(ref) {
		return Image{}, fmt.Errorf("%q is not a valid image name", ref)
	}
	return Image{Reference: ref, Credentials: r.Credentials}, nil
}

// imageReference is the grammar of names in registries.
var imageReference = pattern.Lazy(`^[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

// floating are versions that BOSH looks up, and an image's tag cannot say.
var floating = []string{"latest", "create"}

// archived reports whether the release is an archive: uploaded, or at a URL of
// http.
func (r *Release) archived() bool {
	return r.URL == "" || strings.HasPrefix(r.URL, "http://") || strings.HasPrefix(r.URL, "https://")
}

// fit is an error when no job can come from the release.
func (r *Release) fit() error {
	switch {
	case r.Version == "":
		return fmt.Errorf("release %q has no version", r.Name)
	case r.Version == floating[0] && r.URL == "":
		return nil
	case r.Version == floating[0], r.Version == floating[1]:
		return fmt.Errorf("release version %q is not supported", r.Version)
	}
	return nil
}

// stemcellOf is the release's own stemcell, or the one that the group's alias
// names, or nil.
func (m *Manifest) stemcellOf(g *InstanceGroup, r *Release) *Stemcell {
	if r.Stemcell != nil {
		return r.Stemcell
	}
	for i := range m.Stemcells {
		if s := &m.Stemcells[i]; s.Alias == g.Stemcell && g.Stemcell != "" {
			return s
		}
	}
	return nil
}
