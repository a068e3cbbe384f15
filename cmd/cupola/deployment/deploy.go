package deployment

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/server/bosh"
	"cupola/server/bosh/config"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/redact"
	"cupola/server/bosh/tree"
)

type deployCmd struct {
	capi.Flags
	sourceFlags
	DryRun                   bool      `help:"Only report errors and what would change."`
	WithSecrets              bool      `help:"With --dry-run: show the values of credentials."`
	Lenient                  bool      `help:"Report faults that BOSH accepts as warnings."`
	Recreate                 bool      `help:"Recreate all instances, even unchanged ones."`
	RecreateVMsCreatedBefore time.Time `help:"Recreate instances whose containers are older than a time, like 2026-01-31T12:00:00Z." name:"recreate-vms-created-before" placeholder:"TIME"`
	RecreatePersistentDisks  bool      `help:"Replace persistent disks by copies of them, and orphan the old ones."`
	Fix                      bool      `help:"Recreate instances that have a process without a running container."`
	Force                    bool      `help:"Remove shared links although other deployments use them."`
	rolloutFlags
	Rotate []string `help:"Regenerate these variables." placeholder:"NAME"`
	To     string   `help:"Where to deploy: here, or to a Kubernetes cluster." enum:"here,kubernetes" default:"here"`
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
	api, text, err := c.checked(e, s)
	if err != nil {
		return err
	}
	if c.DryRun {
		_, err := showDiff(e, api, text, c.WithSecrets)
		return err
	}
	var t boshTask
	body := c.doc(capi.Doc{"manifest": string(text), "values": s.Values, "lenient": c.Lenient, "recreate": c.Recreate || !c.RecreateVMsCreatedBefore.IsZero(), "created_before": c.RecreateVMsCreatedBefore,
		"recreate_persistent_disks": c.RecreatePersistentDisks, "rotate": c.Rotate, "fix": c.Fix, "force": c.Force})
	if err := api.Call(e.Ctx, "POST", "/v1/deployments", body, &t); err != nil {
		return err
	}
	return followTask(e, api, t)
}

// checked lints the manifest, by itself before the daemon is asked for anything, and
// then with the daemon's configs. It returns the manifest with its ops applied.
func (c *deployCmd) checked(e *command.Env, s bosh.Source) (*capi.Client, []byte, error) {
	o := manifest.Options{Lenient: c.Lenient}
	text, found, err := deployable(s, nil, o)
	if err != nil {
		return nil, nil, err
	}
	if found.Count(manifest.Error) > 0 {
		return nil, nil, reported(e, c.Manifest, found)
	}
	api, err := c.Login(e.Ctx)
	if err != nil {
		return nil, nil, err
	}
	configs, err := storedConfigs(e, api)
	if err != nil {
		return nil, nil, err
	}
	if _, found, err = deployable(s, configs, o); err != nil {
		return nil, nil, err
	}
	return api, text, reported(e, c.Manifest, found)
}

// reported prints findings, if there are any, and fails if one is an error.
func reported(e *command.Env, name string, found manifest.Findings) error {
	if len(found) == 0 {
		return nil
	}
	if err := writeFindings(e, name, found); err != nil {
		return err
	}
	if found.Count(manifest.Error) > 0 {
		return command.ExitCode(1)
	}
	return nil
}

// deployable returns the manifest with its ops applied, and the linter's findings for it
// with its variables interpolated and what configs say of it.
func deployable(s bosh.Source, configs config.Set, o manifest.Options) ([]byte, manifest.Findings, error) {
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
	_, found, err := configs.Lint(full, s.Values, o)
	return text, found, err
}

type diffCmd struct {
	capi.Flags
	sourceFlags
	offlineFlags
	kubeFlags
	Against     string `help:"Compare with another manifest, or with what 'render' wrote to a file or directory, instead of with what is deployed. Needs no daemon." placeholder:"PATH"`
	WithSecrets bool   `help:"Show the values of credentials."`
}

// Run shows what a deploy would change in the manifest: it exits with 2 when
// there is something.
func (c *diffCmd) Run(e *command.Env) error {
	if c.Against != "" {
		changed, err := c.against(e)
		if err == nil && changed {
			return command.ExitCode(2)
		}
		return err
	}
	if c.isSet() {
		return errors.New("without a daemon there is nothing to compare with: give --against")
	}
	s, err := c.source(e.Ctx)
	if err != nil {
		return err
	}
	text, _, err := deployable(s, nil, manifest.Options{Lenient: true})
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

// showDiff prints the lines in which a manifest with the configs of now is another than
// what is deployed, without credentials unless these are asked for.
func showDiff(e *command.Env, api *capi.Client, text []byte, secrets bool) (changed bool, err error) {
	m, _ := manifest.Parse(text)
	was, err := deployedManifest(e, api, m.Name)
	if err != nil {
		return false, err
	}
	configs, err := storedConfigs(e, api)
	if err != nil {
		return false, err
	}
	is, err := shownWith(m.Name, string(text), configs)
	if err != nil {
		return false, err
	}
	lines, err := redact.Diff(was, is, secrets)
	if err != nil {
		return false, err
	}
	if len(lines) == 0 {
		_, err = fmt.Fprintln(e.Out, "Nothing in the manifest changes.")
		return false, err
	}
	for _, l := range lines {
		fmt.Fprintln(e.Out, l)
	}
	return true, nil
}

// deployedManifest is that of a deployment, with what the configs that it was deployed
// with say; "" where there is none.
func deployedManifest(e *command.Env, api *capi.Client, name string) (string, error) {
	var all []struct{ Name string }
	if err := api.Call(e.Ctx, "GET", "/v1/deployments", nil, &all); err != nil {
		return "", err
	}
	for _, d := range all {
		if d.Name == name {
			var one struct {
				Manifest string
				Configs  config.Set
			}
			if err := api.Call(e.Ctx, "GET", "/v1/deployments/"+url.PathEscape(name), nil, &one); err != nil {
				return "", err
			}
			return shownWith(name, one.Manifest, one.Configs)
		}
	}
	return "", nil
}
