package boshapi

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"time"

	"cupola/server/bosh/director"
	"cupola/server/bosh/releases"
	"cupola/store"
	"cupola/store/cf"
)

// uploadRoute takes a release's tarball.
const uploadRoute = "POST /releases"

// listReleases lists the releases by name, each with its versions.
func listReleases(c *call) (*answer, error) {
	rows, err := store.BOSHReleases.Matching(c.tx, store.Query{Order: "name"})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(rows, func(a, b *cf.BOSHRelease) int {
		if a.Name != b.Name {
			return 0
		}
		return releases.CompareVersions(a.Version, b.Version)
	})
	all := []doc{}
	for _, r := range rows {
		users, err := store.BOSHSpecs.UsersOf(c.tx, r.Name, r.Version)
		if err != nil {
			return nil, err
		}
		version := doc{"version": r.Version, "commit_hash": r.CommitHash, "uncommitted_changes": r.Uncommitted, "currently_deployed": len(users) > 0, "job_names": jobNames(r)}
		if n := len(all) - 1; n >= 0 && all[n]["name"] == r.Name {
			all[n]["release_versions"] = append(all[n]["release_versions"].([]doc), version)
			continue
		}
		all = append(all, doc{"name": r.Name, "release_versions": []doc{version}})
	}
	return ok(all)
}

func jobNames(r *cf.BOSHRelease) []string {
	names := []string{}
	for _, j := range r.Jobs {
		names = append(names, j.Name)
	}
	return names
}

// showRelease shows the jobs and packages of one version, or what versions there are.
func showRelease(c *call) (*answer, error) {
	version := c.query("version")
	if version == "" {
		version = "latest"
	}
	r, err := releases.Find(c.tx, c.param("release"), version)
	if err != nil {
		return nil, err
	}
	if c.query("version") == "" {
		rows, err := store.BOSHReleases.By(c.tx, "names", r.Name)
		versions := []string{}
		for _, of := range rows {
			versions = append(versions, of.Version)
		}
		return &answer{body: doc{"versions": versions, "jobs": []doc{}, "packages": []doc{}}}, err
	}
	jobs, packages := []doc{}, []doc{}
	for _, j := range r.Jobs {
		jobs = append(jobs, doc{"name": j.Name, "fingerprint": j.Fingerprint, "blobstore_id": j.Digest, "sha1": j.Digest, "consumes": []doc{}, "provides": []doc{}})
	}
	for _, p := range r.Packages {
		view, err := viewPackage(c.tx, p)
		if err != nil {
			return nil, err
		}
		packages = append(packages, view)
	}
	return ok(doc{"jobs": jobs, "packages": packages})
}

// viewPackage is a package with what it is compiled for: stemcells, and stacks here.
func viewPackage(tx *store.Tx, p cf.BOSHReleasePackage) (doc, error) {
	compiled := []doc{}
	for _, of := range p.Compiled {
		compiled = append(compiled, doc{"stemcell": of.OS, "blobstore_id": of.Digest, "sha1": of.Digest})
	}
	here, err := store.BOSHCompiledPackages.By(tx, "fingerprints", p.Fingerprint)
	for _, of := range here {
		compiled = append(compiled, doc{"stemcell": of.Stack + "/" + stackVersion, "blobstore_id": of.Digest, "sha1": of.Digest})
	}
	return doc{"name": p.Name, "fingerprint": p.Fingerprint, "blobstore_id": p.Digest, "sha1": p.Digest, "compiled_packages": compiled}, err
}

// uploadRelease takes a release's tarball: the body, or what a URL in it leads to.
func uploadRelease(c *call) (*answer, error) {
	if err := c.in(false, func() error { return nil }); err != nil { // before anything is received
		return nil, err
	}
	r, err := c.receiveRelease()
	if err != nil {
		return nil, err
	}
	var a *answer
	err = c.in(true, func() error {
		kept, added, err := releases.Keep(c.tx, r, c.flag("fix"))
		if err == nil {
			err = director.RecordRelease(c.tx, c.user(), "create", kept)
		}
		if err != nil {
			return err
		}
		name := kept.Name + "/" + kept.Version
		result, stage := "Created release '"+name+"'", "Release has been created"
		if !added {
			result, stage = "Release '"+name+"' already exists", "Release already exists"
		}
		a, err = c.ended(director.Ended{Kind: director.CreateRelease, Result: result, Events: append(events("Extracting release", "Extracting release"), events(stage, name)...)})
		return err
	})
	return a, err
}

func (c *call) receiveRelease() (*cf.BOSHRelease, error) {
	slot, err := c.uploads.Acquire(c.Request.Context(), c.asker())
	if err != nil {
		return nil, err
	}
	c.uploading = slot
	var req struct{ Location, SHA1 string }
	body := io.Reader(c.Request.Body)
	if kind, _, _ := mime.ParseMediaType(c.Request.Header.Get("Content-Type")); kind == "application/json" {
		if err := json.NewDecoder(io.LimitReader(body, maxBody)).Decode(&req); err != nil || req.Location == "" {
			return nil, &refusal{400, 40000, "The request must be JSON with a location: the URL of the release"}
		}
		body = nil
	}
	return c.Releases.Receive(c.Request.Context(), body, req.Location, req.SHA1, "", "")
}

// deleteRelease deletes one version, or all of a release.
func deleteRelease(c *call) (*answer, error) {
	name, version := c.param("release"), c.query("version")
	rows := []*cf.BOSHRelease{}
	if version != "" {
		r, err := releases.Find(c.tx, name, version)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	} else {
		var err error
		if rows, err = store.BOSHReleases.By(c.tx, "names", name); err != nil {
			return nil, err
		}
		if len(rows) == 0 {
			return nil, &refusal{404, 30005, "Release '" + name + "' doesn't exist"}
		}
	}
	return c.deleteReleases(director.DeleteRelease, rows, "/release/"+name)
}

func (c *call) deleteReleases(kind director.Kind, rows []*cf.BOSHRelease, result string) (*answer, error) {
	var names []string
	for _, r := range rows {
		if err := releases.Delete(c.tx, r); err != nil {
			return nil, err
		}
		if err := director.RecordRelease(c.tx, c.user(), "delete", r); err != nil {
			return nil, err
		}
		names = append(names, r.Name+"/"+r.Version)
	}
	return c.ended(director.Ended{Kind: kind, Result: result, Events: events("Deleting releases", names...)})
}

// exportRelease asks for the packages of a release, compiled for a stemcell.
func exportRelease(c *call) (*answer, error) {
	var req struct {
		Deployment      string `json:"deployment_name"`
		Release         string `json:"release_name"`
		Version         string `json:"release_version"`
		OS              string `json:"stemcell_os"`
		StemcellVersion string `json:"stemcell_version"`
		SHA2            bool   `json:"sha2"`
		Jobs            []struct{ Name string }
	}
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	d, err := c.deploymentNamed(req.Deployment)
	if err != nil {
		return nil, err
	}
	e := director.Export{Release: req.Release, Version: req.Version, OS: req.OS, StemcellVersion: req.StemcellVersion, SHA2: req.SHA2}
	for _, j := range req.Jobs {
		e.Jobs = append(e.Jobs, j.Name)
	}
	return c.ask(d.Name, director.ExportRelease, director.Order{Export: &e})
}

// download sends what {id} names: an exported release, or logs.
func download(c *call) (*answer, error) {
	open, err := c.resource()
	if err != nil {
		return nil, err
	}
	if open == nil {
		return nil, &refusal{http.StatusNotFound, 100002, "Resource '" + c.param("id") + "' not found"}
	}
	turn, err := c.uploads.Acquire(c.Request.Context(), c.asker())
	if err != nil {
		return nil, err
	}
	c.uploading = turn
	file, err := open()
	if err != nil {
		return nil, err
	}
	return &answer{raw: func(w http.ResponseWriter, r *http.Request) {
		defer file.Close()
		w.Header().Set("Content-Type", "application/x-gzip")
		http.ServeContent(w, r, "", time.Time{}, file)
	}}, nil
}

// resource finds what {id} names, and returns what makes its file; nil if there is none.
func (c *call) resource() (open func() (*os.File, error), err error) {
	number, exported := director.ExportTask(c.param("id"))
	err = c.in(false, func() error { // for readers alone
		if !exported {
			open, err = c.logs()
			return err
		}
		t, err := c.taskNumbered(number)
		if err != nil {
			return err
		}
		e, err := director.ExportedOf(t)
		if e != nil {
			open = func() (*os.File, error) { return c.Releases.Open(e) }
		}
		return err
	})
	return open, err
}
