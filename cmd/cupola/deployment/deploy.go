package deployment

import (
	"fmt"
	"net/url"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/server/bosh"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/redact"
	"cupola/server/bosh/tree"
)

type deployCmd struct {
	capi.Flags
	sourceFlags
	DryRun      bool     `help:"Only report errors and what would change."`
	WithSecrets bool     `help:"With --dry-run: show the values of credentials."`
	Lenient     bool     `help:"Report faults that BOSH accepts as warnings."`
	Recreate    bool     `help:"Recreate all instances, even unchanged ones."`
	Rotate      []string `help:"Regenerate these variables." placeholder:"NAME"`
	To          string   `help:"Where to deploy: here, or to a Kubernetes cluster." enum:"here,kubernetes" default:"here"`
	clusterFlags
}

// Run deploys a manifest, and shows what is done until that has ended.
func (c *deployCmd) Run(e *command.Env) error {
	if c.To == "kubernetes" {
		return c.toKubernetes(e)
	}
	s, err := c.source(e.Ctx)
	if err != nil {
		return err
	}
	text, found, err := deployable(s, manifest.Options{Lenient: c.Lenient})
	if err != nil {
		return err
	}
	if len(found) > 0 {
		if err := writeFindings(e, c.Manifest, found); err != nil {
			return err
		}
	}
	if found.Count(manifest.Error) > 0 {
		return command.ExitCode(1)
	}
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	if c.DryRun {
		_, err := showDiff(e, api, text, c.WithSecrets)
		return err
	}
	var t boshTask
	body := capi.Doc{"manifest": string(text), "values": s.Values, "lenient": c.Lenient, "recreate": c.Recreate, "rotate": c.Rotate}
	if err := api.Call(e.Ctx, "POST", "/v1/deployments", body, &t); err != nil {
		return err
	}
	return followTask(e, api, t)
}

// deployable returns the manifest with its ops applied, and the linter's findings for it
// with its variables interpolated.
func deployable(s bosh.Source, o manifest.Options) ([]byte, manifest.Findings, error) {
	root, err := s.WithOps()
	if err != nil {
		return nil, nil, err
	}
	text, err := tree.Write(root)
	if err != nil {
		return nil, nil, err
	}
	full, _, err := s.Tree()
	if err != nil {
		return nil, nil, err
	}
	m, found := manifest.Decode(full)
	found = append(found.Graded(o), manifest.Lint(m, o)...)
	found.Sort()
	return text, found, nil
}

type diffCmd struct {
	capi.Flags
	sourceFlags
	WithSecrets bool `help:"Show the values of credentials."`
}

// Run shows what a deploy would change in the manifest: it exits with 2 when
// there is something.
func (c *diffCmd) Run(e *command.Env) error {
	s, err := c.source(e.Ctx)
	if err != nil {
		return err
	}
	text, _, err := deployable(s, manifest.Options{Lenient: true})
	if err != nil {
		return err
	}
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	changed, err := showDiff(e, api, text, c.WithSecrets)
	if err == nil && changed {
		return command.ExitCode(2)
	}
	return err
}

// showDiff prints the lines in which a manifest is another than the one that is
// deployed, without credentials unless these are asked for.
func showDiff(e *command.Env, api *capi.Client, text []byte, secrets bool) (changed bool, err error) {
	m, _ := manifest.Parse(text)
	was, err := deployedManifest(e, api, m.Name)
	if err != nil {
		return false, err
	}
	is := string(text)
	if !secrets {
		if was, err = redact.Manifest(was); err != nil {
			return false, err
		}
		if is, err = redact.Manifest(is); err != nil {
			return false, err
		}
	}
	lines := diffLines(was, is)
	if len(lines) == 0 {
		_, err = fmt.Fprintln(e.Out, "Nothing in the manifest changes.")
		return false, err
	}
	for _, l := range lines {
		fmt.Fprintln(e.Out, redact.Shown(l))
	}
	return true, nil
}

// deployedManifest is that of a deployment; "" where there is none.
func deployedManifest(e *command.Env, api *capi.Client, name string) (string, error) {
	var all []struct{ Name string }
	if err := api.Call(e.Ctx, "GET", "/v1/deployments", nil, &all); err != nil {
		return "", err
	}
	for _, d := range all {
		if d.Name == name {
			var one struct{ Manifest string }
			err := api.Call(e.Ctx, "GET", "/v1/deployments/"+url.PathEscape(name), nil, &one)
			return one.Manifest, err
		}
	}
	return "", nil
}
