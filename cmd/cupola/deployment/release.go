package deployment

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/server/bosh/release"
)

// releaseView is a release as the API shows it.
type releaseView struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	CommitHash  string   `json:"commit_hash"`
	Uncommitted bool     `json:"uncommitted_changes"`
	Deployments []string `json:"deployments,omitempty"`
	Jobs        []struct {
		Name        string   `json:"name"`
		Fingerprint string   `json:"fingerprint"`
		Packages    []string `json:"packages"`
	} `json:"jobs,omitempty"`
	Packages []struct {
		Name         string   `json:"name"`
		Fingerprint  string   `json:"fingerprint"`
		Dependencies []string `json:"dependencies"`
		Source       bool     `json:"source"`
		CompiledFor  []string `json:"compiled_for"`
		CompiledOn   []string `json:"compiled_on"`
	} `json:"packages,omitempty"`
}

func (r *releaseView) commit() string {
	if r.Uncommitted {
		return r.CommitHash + "+"
	}
	return r.CommitHash
}

type uploadReleaseCmd struct {
	capi.Flags
	Release   string `arg:"" help:"A release's tarball, its http or https URL, or its directory."`
	SHA1      string `name:"sha1" help:"Reject a tarball with another digest: a SHA-1, or sha256:HEX, or several separated by ';'." placeholder:"DIGEST"`
	Name      string `help:"Reject a tarball of a release with another name; the name of a release from a directory." placeholder:"NAME"`
	ReVersion string `name:"version" help:"Reject a tarball of another version; the version of a release from a directory, by default the next development version." placeholder:"VERSION"`
	Fix       bool   `help:"Replace the archives of a release that is already there."`
}

// Run uploads a release, or lets the daemon download it.
func (c *uploadReleaseCmd) Run(e *command.Env) error {
	if _, err := release.ParseDigests(c.SHA1); err != nil {
		return fmt.Errorf("--sha1: %w", err)
	}
	isURL := strings.HasPrefix(c.Release, "http://") || strings.HasPrefix(c.Release, "https://")
	var file *os.File
	if !isURL {
		info, err := os.Stat(c.Release)
		if err == nil && info.IsDir() {
			return c.fromDirectory(e)
		}
		if file, err = os.Open(c.Release); err != nil {
			return err
		}
		defer file.Close()
	}
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	var kept releaseView
	if isURL {
		err = api.Call(e.Ctx, "POST", c.path(), capi.Doc{"url": c.Release}, &kept)
	} else {
		err = sendRelease(e, api, c.path(), file, &kept)
	}
	if err != nil {
		return err
	}
	return uploaded(e, &kept)
}

func uploaded(e *command.Env, kept *releaseView) error {
	_, err := fmt.Fprintf(e.Out, "Uploaded the release %s/%s: %s, %s.\n", kept.Name, kept.Version, command.Counted(len(kept.Jobs), "job"), command.Counted(len(kept.Packages), "package"))
	return err
}

func (c *uploadReleaseCmd) path() string {
	q := url.Values{}
	for name, value := range map[string]string{"sha1": c.SHA1, "name": c.Name, "version": c.ReVersion} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if c.Fix {
		q.Set("fix", "true")
	}
	return "/v1/releases?" + q.Encode()
}

// sendRelease uploads a tarball.
func sendRelease(e *command.Env, api *capi.Client, path string, tarball io.Reader, out *releaseView) error {
	req, err := http.NewRequestWithContext(e.Ctx, http.MethodPost, api.URL(path), tarball)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-compressed")
	return api.Do(req, out)
}

type releasesCmd struct {
	capi.Flags
	JSON bool `help:"Print JSON." name:"json"`
}

// Run lists the releases.
func (c *releasesCmd) Run(e *command.Env) error {
	return printList(e, &c.Flags, "/v1/releases", c.JSON, "NAME\tVERSION\tCOMMIT", func(w io.Writer, r releaseView) {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.Name, r.Version, orDash(r.commit()))
	})
}

// releaseOne is the release that a command is about.
type releaseOne struct {
	capi.Flags
	Release string `arg:"" name:"name/version" help:"The release, like nats/56.19.0."`
}

func (c *releaseOne) path() (string, error) {
	name, version, ok := strings.Cut(c.Release, "/")
	if !ok || name == "" || version == "" {
		return "", fmt.Errorf("invalid release %q: give NAME/VERSION, as 'cupola deployment releases' lists them", c.Release)
	}
	return "/v1/releases/" + url.PathEscape(name) + "/" + url.PathEscape(version), nil
}

type deleteReleaseCmd struct{ releaseOne }

// Run deletes a release.
func (c *deleteReleaseCmd) Run(e *command.Env) error {
	path, err := c.path()
	if err != nil {
		return err
	}
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	if err := api.Call(e.Ctx, "DELETE", path, nil, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "Deleted the release %s.\n", c.Release)
	return err
}

type inspectReleaseCmd struct {
	releaseOne
	JSON bool `help:"Print JSON." name:"json"`
}

// Run shows the jobs and packages of a release.
func (c *inspectReleaseCmd) Run(e *command.Env) error {
	path, err := c.path()
	if err != nil {
		return err
	}
	var r releaseView
	if err := get(e, &c.Flags, path, &r); err != nil {
		return err
	}
	if c.JSON {
		return command.WriteJSON(e.Out, r)
	}
	w := tabwriter.NewWriter(e.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "JOB\tFINGERPRINT\tPACKAGES")
	for _, j := range r.Jobs {
		fmt.Fprintf(w, "%s\t%s\t%s\n", j.Name, j.Fingerprint, orDash(strings.Join(j.Packages, ", ")))
	}
	fmt.Fprintln(w, "\nPACKAGE\tFINGERPRINT\tDEPENDS ON\tSOURCE\tCOMPILED")
	for _, p := range r.Packages {
		source := "yes"
		if !p.Source {
			source = "no"
		}
		compiled := strings.Join(append(p.CompiledFor, p.CompiledOn...), ", ")
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", p.Name, p.Fingerprint, orDash(strings.Join(p.Dependencies, ", ")), source, orDash(compiled))
	}
	if len(r.Deployments) > 0 {
		fmt.Fprintf(w, "\nUsed by %s.\n", strings.Join(r.Deployments, ", "))
	}
	return w.Flush()
}
