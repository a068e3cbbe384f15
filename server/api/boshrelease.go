package api

import (
	"context"
	"io"
	"mime"
	"os"

	"cupola/server/bosh/director"
	"cupola/store"
	"cupola/store/cf"
)

// viewBOSHRelease is a release without its jobs and packages.
func viewBOSHRelease(_ *call, r *cf.BOSHRelease) doc {
	return with(resource(r.Resource), doc{"name": r.Name, "version": r.Version, "commit_hash": r.CommitHash, "uncommitted_changes": r.Uncommitted})
}

func viewBOSHReleaseParts(c *call, r *cf.BOSHRelease) (doc, error) {
	users, err := store.BOSHSpecs.UsersOf(c.Tx, r.Name, r.Version)
	if err != nil {
		return nil, err
	}
	if users == nil {
		users = []string{}
	}
	jobs, packages := []doc{}, []doc{}
	for _, j := range r.Jobs {
		jobs = append(jobs, doc{"name": j.Name, "fingerprint": j.Fingerprint, "packages": append([]string{}, j.Packages...)})
	}
	for _, p := range r.Packages {
		compiled := []string{}
		for _, of := range p.Compiled {
			compiled = append(compiled, of.OS)
		}
		here, err := store.BOSHCompiledPackages.By(c.Tx, "fingerprints", p.Fingerprint)
		if err != nil {
			return nil, err
		}
		stacks := []string{}
		for _, of := range here {
			stacks = append(stacks, of.Stack)
		}
		packages = append(packages, doc{"name": p.Name, "fingerprint": p.Fingerprint, "dependencies": append([]string{}, p.Dependencies...), "source": p.Digest != "",
			"compiled_for": compiled, "compiled_on": stacks})
	}
	return with(viewBOSHRelease(c, r), doc{"jobs": jobs, "packages": packages, "deployments": users}), nil
}

func listBOSHReleases(c *call) (*response, error) {
	rows, err := store.BOSHReleases.Matching(c.Tx, store.Query{Order: "name"})
	if err != nil {
		return nil, err
	}
	return ok(views(c, rows, viewBOSHRelease))
}

// findBOSHRelease finds the release of {name} and {version}, for admins.
func findBOSHRelease(c *call) (*cf.BOSHRelease, error) {
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	return c.s.Releases.Find(c.Tx, c.param("name"), c.param("version"))
}

func showBOSHRelease(c *call) (*response, error) {
	r, err := findBOSHRelease(c)
	if err != nil {
		return nil, err
	}
	view, err := viewBOSHReleaseParts(c, r)
	if err != nil {
		return nil, err
	}
	return ok(view)
}

func deleteBOSHRelease(c *call) (*response, error) {
	r, err := findBOSHRelease(c)
	if err != nil {
		return nil, err
	}
	if err := c.s.Releases.Delete(c.Tx, r); err != nil {
		return nil, err
	}
	if err := director.RecordRelease(c.Tx, c.identity.Username, "delete", r); err != nil {
		return nil, err
	}
	return noContent()
}

// Releases keeps BOSH releases.
type Releases interface {
	// Receive reads a tarball, or if that is nil the one at a URL. The other
	// arguments are what it must have; "" accepts any.
	Receive(ctx context.Context, tarball io.Reader, url, digest, name, version string) (*cf.BOSHRelease, error)
	// Keep adds a release, or what a further upload of one has.
	Keep(tx *store.Tx, r *cf.BOSHRelease, fix bool) (kept *cf.BOSHRelease, added bool, err error)
	Find(tx *store.Tx, name, version string) (*cf.BOSHRelease, error)
	Delete(tx *store.Tx, r *cf.BOSHRelease) error
	// Open makes the tarball of an exported release.
	Open(e *director.Exported) (*os.File, error)
}

// uploadBOSHRelease takes a release's tarball: the body, or what a URL in it leads
// to. Digest and identity come from the query.
func uploadBOSHRelease(c *call) (*response, error) {
	if err := c.tx(true, c.PermitAdmin); err != nil {
		return nil, err
	}
	r, err := receiveRelease(c)
	if err != nil {
		return nil, err
	}
	return inTx(func(c *call) (*response, error) { return keepRelease(c, r) })(c)
}

func receiveRelease(c *call) (*cf.BOSHRelease, error) {
	var req struct {
		URL string `json:"url"`
	}
	body := io.Reader(c.Request.Body)
	if kind, _, _ := mime.ParseMediaType(c.Request.Header.Get("Content-Type")); kind == "application/json" {
		if err := c.receive(); err != nil {
			return nil, err
		}
		if err := decode(c, &req); err != nil {
			return nil, err
		}
		body = nil
	}
	c.received = true
	if err := c.awaitUpload(); err != nil {
		return nil, err
	}
	query := c.Request.URL.Query()
	return c.s.Releases.Receive(c.Context(), body, req.URL, query.Get("sha1"), query.Get("name"), query.Get("version"))
}

func keepRelease(c *call, r *cf.BOSHRelease) (*response, error) {
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	kept, added, err := c.s.Releases.Keep(c.Tx, r, c.Request.URL.Query().Get("fix") == "true")
	if err != nil {
		return nil, err
	}
	if err := director.RecordRelease(c.Tx, c.identity.Username, "create", kept); err != nil {
		return nil, err
	}
	view, err := viewBOSHReleaseParts(c, kept)
	if err != nil {
		return nil, err
	}
	if added {
		return created(view)
	}
	return ok(view)
}

// downloadBOSHExport sends the tarball that the export-release {number} has made.
func downloadBOSHExport(c *call) (*response, error) {
	var e *director.Exported
	if err := c.tx(false, func() error {
		t, err := findBOSHTask(c)
		if err == nil {
			e, err = director.ExportedOf(t)
		}
		return err
	}); err != nil {
		return nil, err
	}
	if e == nil {
		return nil, cf.Errorf(cf.ResourceNotFound, "Task %s has exported no release", c.param("number"))
	}
	if err := c.awaitUpload(); err != nil {
		return nil, err
	}
	f, err := c.s.Releases.Open(e)
	if err != nil {
		return nil, err
	}
	return sendFile(f, "application/x-gzip", e.Manifest.Name+"-"+e.Manifest.Version+".tgz"), nil
}
