package bosh

import (
	"fmt"
	"slices"
	"strings"

	"cupola/server/bosh/manifest"
)

// Image is where the image of a job's release lies: in the registry and
// organization of its URL, tagged with stemcell and version. The release's own
// stemcell goes before that of the group.
func Image(m *manifest.Manifest, g *manifest.InstanceGroup, release string) (string, error) {
	r := m.Release(release)
	if r == nil {
		return "", fmt.Errorf("release '%s' not found", release)
	}
	s := r.Stemcell
	if s == nil {
		at := slices.IndexFunc(m.Stemcells, func(s manifest.Stemcell) bool { return s.Alias == g.Stemcell && s.Alias != "" })
		if at < 0 {
			return "", fmt.Errorf("stemcell could not be resolved for instance group %s", g.Name)
		}
		s = &m.Stemcells[at]
	}
	switch {
	case r.Version == "latest" || r.Version == "create":
		return "", fmt.Errorf("release version %q is not supported", r.Version)
	case r.URL == "" || r.Version == "" || s.OS == "" || s.Version == "":
		return "", fmt.Errorf("release '%s' has no image: it needs url, version, and a stemcell with os and version", release)
	}
	return fmt.Sprintf("%s/%s:%s-%s-%s", strings.TrimRight(r.URL, "/"), r.Name, s.OS, s.Version, r.Version), nil
}
