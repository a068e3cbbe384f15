package director

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cupola/server/bosh/release"
	"cupola/store"
	"cupola/store/cf"
)

// Export says what an export-release exports: the jobs of a release of a deployment,
// with the packages that they need, compiled.
type Export struct {
	Release         string   `json:"release"`
	Version         string   `json:"version"`
	OS              string   `json:"os"` // of the stemcell
	StemcellVersion string   `json:"stemcell_version"`
	Jobs            []string `json:"jobs,omitempty"` // all without any
	SHA2            bool     `json:"sha2,omitempty"` // the result has a SHA-256, else a SHA-1
}

// ExportRequest asks for the compilation of what is exported.
type ExportRequest struct {
	Export
	Deployment string
	// Step takes the name of each compilation, until done is called.
	Step func(stage, subject string) (done func(error))
}

// Exported is a compiled release. Its tarball is made when it is downloaded, each time
// with the same bytes.
type Exported struct {
	Manifest release.Manifest
	SHA1     string // of the tarball, in hex
	SHA256   string
}

// check refuses an export of a release that the deployment does not have.
func (e *Export) check(tx *store.Tx, d *cf.BOSHDeployment) error {
	used, err := store.BOSHSpecs.ReleasesOf(tx, d.GUID)
	if err != nil {
		return err
	}
	if name := e.Release + "/" + e.Version; !slices.Contains(used, name) {
		return cf.Unprocessable("Release version '%s' not found in deployment '%s'; it has %s", name, d.Name, strings.Join(used, ", "))
	}
	if e.OS == "" || e.StemcellVersion == "" {
		return cf.Unprocessable("A stemcell must be given as OS/VERSION, like ubuntu-jammy/1.100")
	}
	return nil
}

// prepareExport does all of an export-release, and ends the task.
func (l *Loop) prepareExport(ctx context.Context, t *cf.BOSHTask, e Export) error {
	made, err := l.Export(ctx, ExportRequest{Export: e, Deployment: t.DeploymentName, Step: l.steps(ctx, t)})
	if err != nil {
		return err
	}
	digest := made.SHA1
	if e.SHA2 {
		digest = "sha256:" + made.SHA256
	}
	output, err := json.Marshal(map[string]string{"blobstore_id": fmt.Sprintf("%s%d", exportPrefix, t.Number), "sha1": digest})
	if err != nil {
		return err
	}
	return l.Store.Write(ctx, func(tx *store.Tx) error {
		row, err := unplanned(tx, t)
		if err != nil || row == nil {
			return err
		}
		if row.Plan, err = (taskPlan{Output: string(output) + "\n", Exported: made}).encode(); err != nil {
			return err
		}
		row.State, row.EndedAt = cf.BOSHDone, tx.Now
		row.Result = fmt.Sprintf("Exported release: %s/%s for %s/%s", e.Release, e.Version, e.OS, e.StemcellVersion)
		return endTask(tx, row)
	})
}

// exportPrefix begins the IDs of exported releases; the number of the task follows.
const exportPrefix = "export-"

// ExportTask returns the number of the task that has exported what an ID names.
func ExportTask(id string) (number string, ok bool) { return strings.CutPrefix(id, exportPrefix) }

// ExportedOf returns what a task has exported; nil if that is nothing.
func ExportedOf(t *cf.BOSHTask) (*Exported, error) {
	if len(t.Plan) == 0 || Kind(t.Kind) != ExportRelease {
		return nil, nil //nolint:nilnil // documented
	}
	p, err := decodePlan(t.Plan)
	return p.Exported, err
}
