package director

import (
	"errors"
	"slices"
	"strconv"

	"cupola/server/bosh/config"
	"cupola/server/bosh/manifest"
	"cupola/store"
	"cupola/store/cf"
)

// Configs are the configs that a deploy uses now: the last version of each.
func Configs(tx *store.Tx) (config.Set, error) {
	rows, err := store.BOSHConfigs.Latest(tx)
	return setOf(rows), err
}

// ConfigsOf are the versions that a deployment was last deployed with.
func ConfigsOf(tx *store.Tx, d *cf.BOSHDeployment) (config.Set, error) {
	if len(d.Configs) == 0 {
		return config.Set{}, nil
	}
	var numbers []string
	for _, n := range d.Configs {
		numbers = append(numbers, strconv.Itoa(n))
	}
	rows, err := store.BOSHConfigs.By(tx, "numbers", numbers...)
	return setOf(rows), err
}

func setOf(rows []*cf.BOSHConfig) (all config.Set) {
	for _, r := range rows {
		all = append(all, config.Config{ID: r.Number, Type: config.Type(r.Type), Name: r.Name, Content: string(r.Content)})
	}
	return all
}

// UpdateConfig keeps a version of a config, unless the last one is the same, and
// reports what is wrong with it. A config that would break all deploys is refused.
func UpdateConfig(tx *store.Tx, kind, name, content string) (*cf.BOSHConfig, manifest.Findings, error) {
	c := config.Config{Type: config.Type(kind), Name: name, Content: content}
	found, err := checkConfig(tx, c)
	if err != nil {
		return nil, found, cf.Unprocessable("%s", err)
	}
	rows, err := store.BOSHConfigs.Latest(tx)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range rows {
		if r.Type == string(c.Type) && r.Name == c.Name && string(r.Content) == c.Content {
			return r, found, nil
		}
	}
	r := &cf.BOSHConfig{Type: string(c.Type), Name: c.Name, Content: []byte(c.Content)}
	return r, found, store.BOSHConfigs.Insert(tx, r)
}

func checkConfig(tx *store.Tx, c config.Config) (manifest.Findings, error) {
	found, err := c.Check()
	if err != nil {
		return found, err
	}
	var faults []error
	for _, f := range found {
		if f.Level == manifest.Error {
			faults = append(faults, errors.New(f.String()))
		}
	}
	if faults != nil {
		return found, errors.Join(faults...)
	}
	all, err := Configs(tx)
	if err == nil {
		err = all.With(c).Check()
	}
	return found, err
}

// DeleteConfigs deletes all versions of a config, and reports whether there were any.
// Deployments keep what they were made with until their next deploy.
func DeleteConfigs(tx *store.Tx, kind, name string) (bool, error) {
	rows, err := store.BOSHConfigs.Where(tx, map[string][]string{"types": {kind}, "names": {name}})
	if err != nil {
		return false, err
	}
	deleted := false
	for _, r := range rows {
		if !r.Deleted {
			deleted = true
			err = errors.Join(err, DeleteConfig(tx, r))
		}
	}
	return deleted, err
}

// DeleteConfig deletes one version of a config.
func DeleteConfig(tx *store.Tx, r *cf.BOSHConfig) error {
	r.Deleted = true
	return store.BOSHConfigs.Update(tx, r)
}

// Freshness says how the cloud-configs and the runtime-configs of a deployment compare
// with those that its next deploy would use: none, latest or outdated.
func Freshness(tx *store.Tx, d *cf.BOSHDeployment) (cloud, runtime string, err error) {
	now, err := Configs(tx)
	if err != nil {
		return "", "", err
	}
	used, err := ConfigsOf(tx, d)
	return freshness(now.Of(config.Cloud), used.Of(config.Cloud), d), freshness(now.Of(config.Runtime), used.Of(config.Runtime), d), err
}

func freshness(now, used config.Set, d *cf.BOSHDeployment) string {
	is, was := ids(now), ids(used)
	switch {
	case len(was) == 0 && (len(is) == 0 || d.Version == 0):
		return "none"
	case slices.Equal(is, was):
		return "latest"
	}
	return "outdated"
}

func ids(s config.Set) (all []int) {
	for _, c := range s {
		all = append(all, c.ID)
	}
	slices.Sort(all)
	return all
}

// used are the numbers of the configs of a deploy.
func (d *deploy) used() (numbers []int) {
	for _, c := range d.configs {
		if c.Type == config.Cloud || c.Type == config.Runtime {
			numbers = append(numbers, c.ID)
		}
	}
	return numbers
}
