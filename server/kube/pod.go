package kube

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"cupola/server/bosh"
	"cupola/server/bosh/manifest"
)

// place is where pods of one kind are.
type place struct {
	az        string // "" for none
	azIndex   int    // from 1
	instances []bosh.Instance
	service   bool // it runs always, as a StatefulSet's
}

// places are one for each AZ, also without instances: then its StatefulSet scales to none,
// whatever it had before. There is one for a group without AZs.
func (g *group) places() []place {
	azs := g.AZs
	if len(azs) == 0 {
		azs = []string{""}
	}
	all := make([]place, len(azs))
	for n, az := range azs {
		all[n] = place{az: az, azIndex: n + 1, service: true}
	}
	for _, i := range g.Instances {
		at := &all[i.AZIndex-1]
		at.instances = append(at.instances, i)
	}
	return all
}

// placeEnv returns the variables that identify the instance, with
// cf-operator's names.
func (g *group) placeEnv(at place) []any {
	env := []any{doc{"name": "AZ_INDEX", "value": strconv.Itoa(at.azIndex)}}
	if at.az != "" {
		for _, name := range []string{"BOSH_AZ", "CF_OPERATOR_AZ", "KUBE_AZ"} {
			env = append(env, doc{"name": name, "value": escaped(at.az)})
		}
	}
	if at.service {
		env = append(env, doc{"name": "POD_ORDINAL", "valueFrom": doc{"fieldRef": doc{"fieldPath": "metadata.labels['" + podIndex + "']"}}})
	} else {
		env = append(env, doc{"name": "POD_ORDINAL", "value": "0"})
	}
	if g.Settings.ReplicasEnv == nil || *g.Settings.ReplicasEnv {
		env = append(env, doc{"name": "REPLICAS", "value": strconv.Itoa(len(at.instances))})
	}
	return env
}

// errNothing is of a group of which nothing runs.
var errNothing = errors.New("no job of the group has a process: a pod needs one")

// template is that of the pods of a place.
func (g *group) template(at place) (doc, error) {
	containers := g.containers(at)
	if len(containers) == 0 {
		return nil, errNothing
	}
	spec := doc{
		"initContainers": g.inits(at), "containers": containers, "volumes": g.volumes(at.instances), "securityContext": g.podSecurity(),
		"affinity": g.affinity(at), "imagePullSecrets": g.pullSecrets(), "serviceAccountName": g.Settings.ServiceAccount, "tolerations": g.Settings.Tolerations,
		"terminationGracePeriodSeconds": g.graceSeconds(),
	}
	if g.Settings.AutomountToken != nil {
		spec["automountServiceAccountToken"] = *g.Settings.AutomountToken
	}
	if g.any(func(p *bosh.Process) bool { return p.Unsafe.HostPIDNamespace }) {
		spec["hostPID"] = true
	}
	if dns, ok := g.Settings.DNS.(map[string]any); ok {
		spec["dnsConfig"] = dns
	}
	labels := g.labels()
	maps.Copy(labels, g.placeLabels(at))
	if err := unique(spec); err != nil {
		return nil, err
	}
	return doc{"metadata": doc{"labels": labels, "annotations": g.annotations()}, "spec": without(spec)}, nil
}

// unique refuses containers of one name.
func unique(spec doc) error {
	seen := map[string]bool{}
	for _, c := range slices.Concat(spec["initContainers"].([]any), spec["containers"].([]any)) {
		name := text(c.(doc), "name")
		if seen[name] {
			return fmt.Errorf("two containers would both be %s", name)
		}
		seen[name] = true
	}
	return nil
}

// placeLabels tell pods of one place from others.
func (g *group) placeLabels(at place) doc {
	l := doc{versionKey: strconv.Itoa(g.r.StsVersion)}
	if at.az != "" {
		l[azIndexKey], l[azNameKey] = strconv.Itoa(at.azIndex), manifest.Sanitize(at.az)
	}
	return l
}

func (g *group) podSecurity() doc {
	s := doc{"fsGroup": vcap, "seccompProfile": doc{"type": "RuntimeDefault"}}
	if g.unprivilegedPorts() {
		s["sysctls"] = []any{doc{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}}
	}
	return s
}

// pullSecrets are those of the releases, and the group's own.
func (g *group) pullSecrets() []any {
	all := []any{}
	seen := map[string]bool{}
	for _, j := range g.Jobs {
		if j.Image.Credentials != (manifest.Credentials{}) && !seen[j.Release] {
			seen[j.Release] = true
			all = append(all, doc{"name": g.r.names.Registry(j.Release)})
		}
	}
	return append(all, g.Settings.ImagePullSecrets...)
}

// affinity is the group's own; its pods are on nodes of their AZ besides.
func (g *group) affinity(at place) doc {
	if at.az == "" {
		return g.Settings.Affinity
	}
	zone := cmp.Or(g.r.Zones[at.az], at.az)
	in := doc{"key": g.r.ZoneLabel, "operator": "In", "values": []any{zone}}
	affinity := copied(g.Settings.Affinity)
	node := copied(child(affinity, "nodeAffinity"))
	const required = "requiredDuringSchedulingIgnoredDuringExecution"
	var terms []any
	own, _ := child(node, required)["nodeSelectorTerms"].([]any)
	for _, t := range own { // one of them has to match
		term, _ := t.(doc)
		term = copied(term)
		expressions, _ := term["matchExpressions"].([]any)
		term["matchExpressions"] = slices.Concat(expressions, []any{in})
		terms = append(terms, term)
	}
	if len(terms) == 0 {
		terms = []any{doc{"matchExpressions": []any{in}}}
	}
	node[required] = doc{"nodeSelectorTerms": terms}
	affinity["nodeAffinity"] = node
	return affinity
}

// copied is a map that can be changed.
func copied(m doc) doc {
	c := make(doc, len(m)+1)
	maps.Copy(c, m)
	return c
}
