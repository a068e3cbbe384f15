package manifest

import (
	"fmt"
	"regexp"
	"strings"
)

// Image is where the image of a job is.
type Image struct {
	// Reference is what a registry knows it by. When Local is set, it is the
	// path of an OCI layout or of an archive instead.
	Reference   string
	Local       bool
	Credentials Credentials
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
	if s == nil || s.OS == "" || s.Version == "" {
		return Image{}, fmt.Errorf("stemcell could not be resolved for instance group %s", g.Name)
	}
	ref := strings.TrimRight(strings.TrimPrefix(r.URL, "docker://"), "/") + "/" + r.Name + ":" + s.OS + "-" + s.Version + "-" + r.Version
	if !imageReference.MatchString(ref) {
		return Image{}, fmt.Errorf("%q is not a valid image name", ref)
	}
	return Image{Reference: ref, Credentials: r.Credentials}, nil
}

// imageReference is the grammar of names in registries.
var imageReference = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

// floating are versions that BOSH looks up, and an image's tag cannot say.
var floating = []string{"latest", "create"}

// fit is an error when no image can come from the release.
func (r *Release) fit() error {
	switch {
	case r.Version == "":
		return fmt.Errorf("release %q has no version", r.Name)
	case r.Version == floating[0], r.Version == floating[1]:
		return fmt.Errorf("release version %q is not supported", r.Version)
	case r.URL == "":
		return fmt.Errorf("release %q has no url", r.Name)
	case strings.HasPrefix(r.URL, "http://"), strings.HasPrefix(r.URL, "https://"):
		return fmt.Errorf("%s is a release's archive, not where images are", cut(r.URL, 200))
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
