package manifest

import "strings"

func (l *linter) releases() {
	seen := map[string]bool{}
	for i := range l.m.Releases {
		r := &l.m.Releases[i]
		l.name(r.At, "release", r.Name, seen)
		if err := r.fit(); err != nil && !l.onlyNames(r) && !variableText.MatchString(r.Version+r.URL) {
			f := Finding{Level: Error, Path: r.Path, Line: r.Line, What: err.Error(), Mend: r.fix(), soft: strings.HasPrefix(r.URL, "http")}
			l.found.add(f)
		}
		if host, _, _ := strings.Cut(r.URL, "/"); host == "hub.docker.com" {
			l.found.warnf(At{r.Path + "/url", r.Line}, "hub.docker.com is not a registry; use docker.io")
		}
		if s := r.Stemcell; s != nil {
			l.stemcell(*s)
		}
		if c := r.Credentials; (c.Username == "") != (c.Password == "") {
			l.found.errorf(At{r.Path + "/credentials", r.Line}, "username and password belong together; one is missing")
		}
	}
}

// fix says how to get an image from a release that none can come from.
func (r *Release) fix() string {
	switch {
	case r.Version == "":
		return "give version"
	case r.Version == floating[0], r.Version == floating[1]:
		return "give the version that the image was built from"
	case r.URL == "":
		return "give the registry and organization of its images, like docker.io/cfcontainerization"
	}
	return "give the registry and organization of its images, or file:// and the path of one"
}

// stemcell checks one that an image may be named for.
func (l *linter) stemcell(s Stemcell) {
	switch {
	case s.OS == "":
		l.found.errorf(s.At, "the stemcell has no os")
	case s.Version == "":
		l.found.errorf(s.At, "the stemcell has no version")
	case s.Version == floating[0]:
		l.found.errorf(s.At, "stemcell version %q is not supported; images are named for one", s.Version)
	}
}

// stemcells checks the stemcells that groups use, and reports unused ones.
func (l *linter) stemcells() {
	needed := map[string]bool{}
	for _, g := range l.m.InstanceGroups {
		if g.Stemcell != "" && l.needsStemcell(g) {
			needed[g.Stemcell] = true
		}
	}
	seen := map[string]bool{}
	for _, s := range l.m.Stemcells {
		l.name(s.At, "stemcell", s.Alias, seen)
		if needed[s.Alias] {
			l.stemcell(s)
		} else {
			l.found.warnf(s.At, "not used")
		}
	}
}

// needsStemcell reports whether a release of the group's jobs has no stemcell.
func (l *linter) needsStemcell(g *InstanceGroup) bool {
	for _, j := range g.Jobs {
		if r := l.m.Release(j.Release); r != nil && !j.onlyNames() && r.Stemcell == nil && !strings.HasPrefix(r.URL, "file://") {
			return true
		}
	}
	return false
}
