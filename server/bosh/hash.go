package bosh

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"cupola/server/bosh/manifest"
)

// sign gives the group and its instances their hashes. How many instances there
// are, how they are updated and how large a disk is changes no instance.
func (g *Group) sign() {
	jobs := make([]Job, len(g.Jobs))
	for n, j := range g.Jobs {
		j.Processes, j.Varies, j.Scaling, j.Image.Credentials, j.Addon = nil, false, nil, manifest.Credentials{}, ""
		jobs[n] = j
	}
	common := digest([]any{jobs, g.Lifecycle, g.PersistentDiskMB > 0, g.Tmpfs, placed(g.Settings)})
	all := make([]string, len(g.Instances))
	for n := range g.Instances {
		i := &g.Instances[n]
		i.Hash = digest([]any{common, i.Instance, i.Address, i.Jobs})
		all[n] = i.Hash
	}
	g.Hash = digest([]any{common, all})
}

// placed is what of the settings reaches the containers, wherever it stands.
func placed(s manifest.Settings) manifest.Settings {
	s.At, s.BackoffLimit, s.GraceSeconds = manifest.At{}, nil, nil
	return s
}

// digest names a value: equal ones have equal names.
func digest(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // it is made of what was read from YAML and JSON
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Where things stand in a manifest changes nothing of them.

func ports(q *manifest.Quarks) (all []manifest.Port) {
	for _, p := range q.Ports {
		p.At = manifest.At{}
		all = append(all, p)
	}
	return all
}

func probes(all map[string]*manifest.Probe) map[string]*manifest.Probe {
	if all == nil {
		return nil
	}
	m := map[string]*manifest.Probe{}
	for name, p := range all {
		m[name] = placeless(p)
	}
	return m
}

func placeless(p *manifest.Probe) *manifest.Probe {
	if p == nil {
		return nil
	}
	copied := *p
	copied.At = manifest.At{}
	return &copied
}
