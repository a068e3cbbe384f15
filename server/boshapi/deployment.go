package boshapi

import (
	"net/http"
	"slices"
	"strings"

	"cupola/server/bosh/config"
	"cupola/server/bosh/director"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/redact"
	"cupola/store"
	"cupola/store/cf"
)

func listDeployments(c *call) (*answer, error) {
	rows, err := director.All(c.tx)
	if err != nil {
		return nil, err
	}
	all := []doc{}
	for _, d := range rows {
		view := doc{"name": d.Name, "teams": []string{}}
		all = append(all, view)
		if c.flag("exclude_configs") && c.flag("exclude_releases") && c.flag("exclude_stemcells") {
			continue
		}
		if view["releases"], view["stemcells"], err = madeOf(c.tx, d); err != nil {
			return nil, err
		}
		if view["cloud_config"], _, err = director.Freshness(c.tx, d); err != nil {
			return nil, err
		}
	}
	return ok(all)
}

// madeOf returns the releases and stemcells of a deployment. "latest" is the version
// that its instances have.
func madeOf(tx *store.Tx, d *cf.BOSHDeployment) (releases, stemcells []doc, err error) {
	releases, stemcells = []doc{}, []doc{}
	used, err := store.BOSHSpecs.ReleasesOf(tx, d.GUID)
	if err != nil {
		return nil, nil, err
	}
	m, _ := manifest.Parse(d.Manifest)
	for _, r := range m.Releases {
		version := r.Version
		for _, name := range used {
			if of, actual, _ := strings.Cut(name, "/"); of == r.Name && version == "latest" {
				version = actual
			}
		}
		releases = append(releases, doc{"name": r.Name, "version": version})
	}
	for _, s := range m.Stemcells {
		stemcells = append(stemcells, doc{"name": s.OS, "version": s.Version})
	}
	return releases, stemcells, nil
}

// showDeployment shows the manifest; to readers without credentials.
func showDeployment(c *call) (*answer, error) {
	d, err := c.deployment()
	if err != nil {
		return nil, err
	}
	text, err := c.shown(string(d.Manifest))
	return &answer{body: doc{"manifest": text}}, err
}

// shown is a manifest or config as the client may see it.
func (c *call) shown(text string) (string, error) {
	if c.admin || text == "" {
		return text, nil
	}
	hidden, err := redact.Manifest(text)
	if err != nil {
		return "", err
	}
	lines := strings.Split(hidden, "\n")
	for n := range lines {
		lines[n] = redact.Shown(lines[n])
	}
	return strings.Join(lines, "\n"), nil
}

// deploy asks for a deploy of the manifest that the body is.
func deploy(c *call) (*answer, error) {
	o, err := c.rollout()
	if err != nil {
		return nil, err
	}
	if o.Manifest, err = c.text(); err != nil {
		return nil, err
	}
	o.Recreate, o.RecreateDisks = c.flag("recreate"), c.flag("recreate_persistent_disks")
	if err := c.createdBefore(&o, o.Recreate, "recreate=true"); err != nil {
		return nil, err
	}
	configs, err := director.Configs(c.tx)
	if err != nil {
		return nil, err
	}
	name, found, err := o.Check(configs)
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, 440001, err.Error()}
	}
	if c.flag("dry_run") {
		return c.ended(director.Ended{Deployment: name, Kind: director.DryRun, Result: "/deployments/" + name, Events: events("Preparing deployment", findings(found)...)})
	}
	return c.ask(name, director.Deploy, o)
}

// findings are what a linter says, each on one line.
func findings(all manifest.Findings) (lines []string) {
	for _, f := range all {
		lines = append(lines, f.Level.String()+": "+f.String())
	}
	return append(lines, "Checked the manifest")
}

// rollout reads the parameters that say how instances are changed.
func (c *call) rollout() (o director.Order, err error) {
	o.Fix, o.Canaries, o.MaxInFlight = c.flag("fix"), c.query("canaries"), c.query("max_in_flight")
	switch skip := c.query("skip_drain"); skip {
	case "", "false":
	case "*", "true":
		o.SkipDrain = true
	default:
		return o, refuse("cupola cannot skip the drain scripts of some instance groups only (%s): give --skip-drain without a value", skip)
	}
	return o, nil
}

// ask asks for a task, to which the client is redirected.
func (c *call) ask(deployment string, kind director.Kind, o director.Order) (*answer, error) {
	t, err := director.Ask(c.tx, deployment, c.user(), kind, o)
	if err != nil {
		return nil, err
	}
	return toTask(t), nil
}

func deleteDeployment(c *call) (*answer, error) {
	d, err := c.deployment()
	if err != nil {
		return nil, err
	}
	return c.ask(d.Name, director.Delete, director.Order{Force: c.flag("force")})
}

// diffDeployment compares a manifest with that of the last deploy, each with the
// configs that apply to it.
func diffDeployment(c *call) (*answer, error) {
	text, err := c.text()
	if err != nil {
		return nil, err
	}
	now, err := director.Configs(c.tx)
	if err != nil {
		return nil, err
	}
	var was string
	d, err := c.deployment()
	switch {
	case err == nil:
		used, err := director.ConfigsOf(c.tx, d)
		if err != nil {
			return nil, err
		}
		if was, err = used.ShownText(string(d.Manifest)); err != nil {
			return nil, err
		}
	case !isNotFound(err):
		return nil, err
	}
	is, err := now.ShownText(text)
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, 440001, err.Error()}
	}
	lines, err := diffLines(was, is, c.query("redact") == "false")
	return &answer{body: doc{"context": doc{}, "diff": lines}}, err
}

// diffLines are the lines of a diff, each with what becomes of it: "added", "removed" or
// null.
func diffLines(was, is string, secrets bool) ([][2]any, error) {
	lines, err := redact.Diff(was, is, secrets)
	all := [][2]any{}
	for _, l := range lines {
		var what any
		switch l[0] {
		case '+':
			what = "added"
		case '-':
			what = "removed"
		}
		if l == "  …" {
			l = "  ..."
		}
		all = append(all, [2]any{l[2:], what})
	}
	return all, err
}

// listDeploymentConfigs lists the configs that deployments were made with.
func listDeploymentConfigs(c *call) (*answer, error) {
	names := c.Request.URL.Query()["deployment[]"]
	rows, err := store.BOSHDeployments.Matching(c.tx, store.Query{Order: "name", Where: map[string][]string{"names": names}})
	if err != nil {
		return nil, err
	}
	all := []doc{}
	for _, d := range rows {
		used, err := director.ConfigsOf(c.tx, d)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(used, func(a, b config.Config) int { return a.ID - b.ID })
		for n, of := range used {
			all = append(all, doc{"id": n + 1, "deployment": d.Name, "config": doc{"id": of.ID, "type": of.Type, "name": of.Name}})
		}
	}
	return ok(all)
}
