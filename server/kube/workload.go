package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"

	"cupola/server/bosh/manifest"
)

// statefulSets adds one for each AZ.
func (g *group) statefulSets() error {
	if len(g.Instances) == 0 {
		g.r.warn(g.path()+"/instances", "none, so there is no StatefulSet; what one before has left stays")
		return nil
	}
	if g.r.StsVersion > 1 && g.PersistentDiskMB > 0 {
		return errors.New("StatefulSets of another version have separate volumes: the persistent disk would be left behind")
	}
	if g.Update.MaxInFlightOf(len(g.Instances)) > 1 {
		g.r.warn(g.path()+"/update/max_in_flight", "most clusters update one pod at a time: what is more needs their feature MaxUnavailableStatefulSet")
	}
	canaries := g.Update.CanariesOf(len(g.Instances))
	for n, at := range g.places() {
		az := n
		if at.az == "" {
			az = -1
		}
		first := min(canaries, len(at.instances))
		canaries -= first
		s, err := g.statefulSet(g.r.names.StatefulSet(g.Name, az, g.r.StsVersion), at, first)
		if errors.Is(err, errNothing) {
			return g.r.refuse(g.path()+"/jobs", "%v", err)
		}
		if err != nil {
			return err
		}
		g.r.add(s)
	}
	return nil
}

func (g *group) statefulSet(name string, at place, canaries int) (Object, error) {
	template, err := g.template(at)
	if err != nil {
		return nil, err
	}
	selector := g.selector()
	maps.Copy(selector, g.placeLabels(at))
	delete(selector, azNameKey)
	spec := doc{
		"serviceName": g.Address, "replicas": len(at.instances), "podManagementPolicy": "Parallel", "selector": doc{"matchLabels": selector}, "template": template,
		"updateStrategy": g.strategy(len(at.instances), canaries), "volumeClaimTemplates": g.claims(),
		"persistentVolumeClaimRetentionPolicy": doc{"whenDeleted": "Retain", "whenScaled": "Retain"},
	}
	if w := g.Update.CanaryWatch; w != nil && w.Low > 0 {
		spec["minReadySeconds"] = int(math.Ceil(w.Low.Seconds()))
	}
	meta := g.meta(name)
	maps.Copy(meta["labels"].(doc), g.placeLabels(at))
	for key, w := range map[string]*manifest.Watch{canaryKey: g.Update.CanaryWatch, updateKey: g.Update.UpdateWatch} {
		if w != nil {
			meta["annotations"].(doc)[key] = strconv.FormatInt(w.High.Milliseconds(), 10)
		}
	}
	return Object{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": without(spec)}, nil
}

// strategy is how pods are updated: all of them, or those with the greatest
// ordinals alone.
func (g *group) strategy(replicas, canaries int) doc {
	if g.activePassive() {
		g.r.warn(g.path(), "passive instances are never ready, for which an update would wait: delete the pods of the StatefulSet to update them")
		return doc{"type": "OnDelete"}
	}
	partition := 0
	if g.r.Phase == Canary && g.Update.CanariesOf(len(g.Instances)) > 0 {
		partition = replicas - canaries
	}
	rolling := doc{"partition": partition}
	if n := g.Update.MaxInFlightOf(replicas); n > 1 {
		rolling["maxUnavailable"] = n
	}
	return doc{"type": "RollingUpdate", "rollingUpdate": rolling}
}

// never is a time that does not come: the 31st of February.
const never = "0 0 31 2 *"

// cronJob adds an errand: it runs when a user makes a Job from it.
func (g *group) cronJob() error {
	spec, err := g.jobSpec("Never", 0)
	if err != nil {
		return err
	}
	g.r.add(Object{"apiVersion": "batch/v1", "kind": "CronJob", "metadata": g.meta(g.r.names.CronJob(g.Name)), "spec": doc{
		"schedule": never, "suspend": true, "concurrencyPolicy": "Forbid",
		"jobTemplate": doc{"metadata": doc{"labels": g.labels()}, "spec": spec},
	}})
	return nil
}

// job adds an auto-errand: another one for whatever is changed of it, as what a
// Job runs is never changed.
func (g *group) job() error {
	tries := 6
	if n := g.Settings.BackoffLimit; n != nil {
		tries = *n
	}
	spec, err := g.jobSpec("OnFailure", tries)
	if err != nil {
		return err
	}
	template, err := json.Marshal(spec["template"])
	if err != nil {
		return fmt.Errorf("encode the pod's template: %w", err)
	}
	g.r.add(Object{"apiVersion": "batch/v1", "kind": "Job", "metadata": g.meta(g.r.names.Job(g.Name, template)), "spec": spec})
	return nil
}

// jobSpec is a run of an errand: all processes, once.
func (g *group) jobSpec(restart string, tries int) (doc, error) {
	at := g.places()[0]
	at.service = false
	template, err := g.template(at)
	if err != nil {
		return nil, err
	}
	spec := template["spec"].(doc)
	spec["restartPolicy"] = restart
	if g.PersistentDiskMB > 0 {
		g.r.add(Object{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": g.meta(g.claim()), "spec": claimSpec(g.PersistentDiskMB, g.PersistentDiskType)})
		spec["volumes"] = append(spec["volumes"].([]any), doc{"name": g.claim(), "persistentVolumeClaim": doc{"claimName": g.claim()}})
	}
	return doc{"backoffLimit": tries, "template": template}, nil
}

// services adds the group's Service and one for each instance. They are
// headless: a name resolves to pods, and all ports are reachable.
func (g *group) services() error {
	ports, err := g.servicePorts()
	if err != nil {
		return err
	}
	g.r.add(g.service(g.Address, g.selector(), ports))
	for _, i := range g.Instances {
		selector := g.selector()
		selector[podIndex] = strconv.Itoa(i.Ordinal)
		if i.AZ != "" {
			selector[azIndexKey] = strconv.Itoa(i.AZIndex)
		}
		g.r.add(g.service(i.Address, selector, ports))
	}
	return nil
}

func (g *group) service(name string, selector doc, ports []any) Object {
	return Object{"apiVersion": "v1", "kind": "Service", "metadata": g.meta(name), "spec": without(doc{"clusterIP": "None", "selector": selector, "ports": ports})}
}

// servicePorts are those of all jobs.
func (g *group) servicePorts() ([]any, error) {
	all := []any{}
	numbers, names := map[string]string{}, map[string]bool{}
	for i := range g.Jobs {
		j := &g.Jobs[i]
		for _, p := range j.Ports {
			number := fmt.Sprintf("%d/%s", p.Internal, protocol(p))
			if other, taken := numbers[number]; taken {
				return nil, fmt.Errorf("jobs %q and %q both listen at %s", other, j.Name, number)
			}
			name := manifest.Sanitize(p.Name)
			if names[name] {
				name = manifest.Sanitize(j.Name + "-" + p.Name)
			}
			numbers[number], names[name] = j.Name, true
			all = append(all, doc{"name": name, "port": p.Internal, "targetPort": p.Internal, "protocol": protocol(p)})
		}
	}
	return all, nil
}

// disruptionBudget keeps as many instances as the jobs need, when nodes are
// drained.
func (g *group) disruptionBudget() {
	need := 0
	for _, j := range g.Jobs {
		if j.Scaling != nil {
			need = max(need, j.Scaling.HA)
		}
	}
	if need = min(need, len(g.Instances)-1); need < 1 {
		return
	}
	g.r.add(Object{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": g.meta(g.Address), "spec": doc{
		"minAvailable": need, "selector": doc{"matchLabels": g.selector()},
	}})
}
