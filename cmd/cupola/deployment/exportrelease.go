package deployment

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

type exportReleaseCmd struct {
	boshOne
	Release  string   `arg:"" name:"name/version" help:"A release of the deployment, like nats/56.19.0."`
	Stemcell string   `arg:"" name:"os/version" help:"The stemcell that its packages are compiled for, like ubuntu-jammy/1.100."`
	Job      []string `help:"Export only these jobs, with the packages that they need; may be repeated." placeholder:"JOB"`
	Dir      string   `help:"The directory that the tarball is written to." default:"." placeholder:"DIR"`
}

// Run asks the daemon to compile a release of a deployment, and downloads its tarball.
func (c *exportReleaseCmd) Run(e *command.Env) error {
	name, version, ok := strings.Cut(c.Release, "/")
	if !ok || name == "" || version == "" {
		return fmt.Errorf("invalid release %q: give NAME/VERSION, as 'cupola deployment releases' lists them", c.Release)
	}
	stemcellOS, stemcell, ok := strings.Cut(c.Stemcell, "/")
	if !ok || stemcellOS == "" || stemcell == "" {
		return fmt.Errorf("invalid stemcell %q: give OS/VERSION, like ubuntu-jammy/1.100", c.Stemcell)
	}
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	t, err := requestTask(e, api, c.Deployment, capi.Doc{"kind": "export-release",
		"export": capi.Doc{"release": name, "version": version, "os": stemcellOS, "stemcell_version": stemcell, "jobs": c.Job}})
	if err != nil {
		return err
	}
	if err := followTask(e, api, t); err != nil {
		return err
	}
	path, err := below(c.Dir, strings.Join([]string{name, version, stemcellOS, stemcell}, "-")+".tgz")
	if err == nil {
		err = downloadFile(e, api, fmt.Sprintf("/v1/deployment_tasks/%d/release", t.ID), path)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "Exported %s for %s to %s.\n", c.Release, c.Stemcell, path)
	return err
}

// downloadFile writes an answer of the API to a file, which is there only when it is
// whole.
func downloadFile(e *command.Env, api *capi.Client, from, path string) (err error) {
	body, err := api.Download(e.Ctx, from)
	if err != nil {
		return err
	}
	defer body.Close()
	f, err := os.CreateTemp(filepath.Dir(path), ".cupola-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err := io.Copy(f, body); err != nil {
		return errors.Join(fmt.Errorf("download %s: %w", path, err), f.Close())
	}
	if err := errors.Join(f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
