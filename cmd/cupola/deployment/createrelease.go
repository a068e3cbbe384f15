package deployment

import (
	"cmp"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/server/bosh/create"
)

// fromDirectory creates a release from its directory and uploads it, unless a
// development version of it with equal jobs and packages is there.
func (c *uploadReleaseCmd) fromDirectory(e *command.Env) error {
	d, err := create.Open(c.Release)
	if err != nil {
		return err
	}
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	id := create.Identity{Name: cmp.Or(c.Name, d.Name), Version: c.ReVersion}
	id.CommitHash, id.Uncommitted = commitOf(c.Release)
	if id.Version == "" {
		var same bool
		if id.Version, same, err = devVersion(e, api, id.Name, d.Fingerprints()); err != nil {
			return err
		}
		if same && !c.Fix {
			_, err = fmt.Fprintf(e.Out, "The release %s/%s is there already, with the same jobs and packages.\n", id.Name, id.Version)
			return err
		}
	}
	tarball, w := io.Pipe()
	go func() { w.CloseWithError(d.Write(id, w)) }()
	defer tarball.Close()
	c.Name, c.ReVersion = id.Name, id.Version
	var kept releaseView
	if err := sendRelease(e, api, c.path(), tarball, &kept); err != nil {
		return err
	}
	return uploaded(e, &kept)
}

// devVersion is the development version of a release with these fingerprints, or the
// next free one.
func devVersion(e *command.Env, api *capi.Client, name string, fingerprints map[string]string) (version string, same bool, err error) {
	var all []releaseView
	if err := api.Call(e.Ctx, "GET", "/v1/releases", nil, &all); err != nil {
		return "", false, err
	}
	last := 0
	for _, r := range all {
		text, dev := strings.CutPrefix(r.Version, "0+dev.")
		n, err := strconv.Atoi(text)
		if r.Name != name || !dev || err != nil {
			continue
		}
		last = max(last, n)
		one := releaseOne{Release: r.Name + "/" + r.Version}
		path, err := one.path()
		if err == nil {
			err = api.Call(e.Ctx, "GET", path, nil, &r)
		}
		if err != nil {
			return "", false, err
		}
		if r.equals(fingerprints) {
			return r.Version, true, nil
		}
	}
	return "0+dev." + strconv.Itoa(last+1), false, nil
}

// equals reports whether a release has exactly these jobs and packages.
func (r *releaseView) equals(fingerprints map[string]string) bool {
	if len(r.Jobs)+len(r.Packages) != len(fingerprints) {
		return false
	}
	for _, j := range r.Jobs {
		if fingerprints["jobs/"+j.Name] != j.Fingerprint {
			return false
		}
	}
	for _, p := range r.Packages {
		if fingerprints["packages/"+p.Name] != p.Fingerprint {
			return false
		}
	}
	return true
}

// commitOf is the commit that a directory has checked out, and whether there are
// changes since.
func commitOf(dir string) (hash string, changed bool) {
	out, err := exec.Command("git", "-C", dir, "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "non-git", false
	}
	status, err := exec.Command("git", "-C", dir, "status", "--short").Output()
	return strings.TrimSpace(string(out)), err == nil && len(status) > 0
}
