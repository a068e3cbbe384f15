package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"cupola/server/kube"
	"cupola/server/kube/apply"
)

// clusterFlags say which cluster a deployment is brought into, and how.
type clusterFlags struct {
	kubeFlags
	Kubeconfig     string        `help:"The kubeconfig file; by default KUBECONFIG or ~/.kube/config." placeholder:"FILE"`
	Context        string        `help:"Context in the kubeconfig; by default the current one." placeholder:"NAME"`
	Phase          string        `help:"How far an update goes: only to its canaries, to all instances at once, or to canaries first and then to all." enum:"canary,full,both" default:"both"`
	ForceConflicts bool          `help:"Take over fields that other managers own."`
	Prune          bool          `help:"Delete objects of earlier deploys that are no longer in the manifest; volumes and generated variables stay."`
	Timeout        time.Duration `help:"Maximum time for each phase to become ready." default:"15m"`
}

func (f *clusterFlags) open(e *env) (*apply.Cluster, error) {
	return apply.Open(apply.Config{Kubeconfig: f.Kubeconfig, Context: f.Context, Namespace: f.Namespace, Force: f.ForceConflicts, Warn: func(text string) {
		fmt.Fprintf(e.err, "warning %s\n", strings.Map(printed, text))
	}})
}

// toKubernetes renders the manifest as the cluster needs it: with the variables
// and the versions that are there. It applies that, and waits.
func (c *boshDeployCmd) toKubernetes(e *env) error {
	if c.Prune && c.Phase == string(kube.Canary) {
		return errors.New("--prune with --phase canary would delete objects that other instances still use: give --phase both or full")
	}
	cluster, err := c.open(e)
	if err != nil {
		return err
	}
	api, err := c.login(e.ctx)
	if err != nil {
		return err
	}
	r := &renderer{env: e, api: api, source: &c.sourceFlags, lenient: c.Lenient, rotate: c.Rotate}
	if err := r.read(); err != nil {
		return err
	}
	o := c.options()
	o.WithSecrets, o.Phase = true, kube.Full
	if c.Phase != string(kube.Full) {
		o.Phase = kube.Canary
	}
	variables, err := cluster.Variables(e.ctx, r.name)
	if err != nil {
		return err
	}
	if o.Known, err = cluster.Known(e.ctx, r.name); err != nil {
		return err
	}
	objects, err := r.render(e.ctx, o, variables)
	if err != nil {
		return err
	}
	if c.DryRun {
		if err := kube.Write(e.out, kube.Hidden(objects)); err != nil || !c.Prune {
			return err
		}
		stale, err := cluster.Stale(e.ctx, r.name, objects)
		for _, o := range stale {
			fmt.Fprintf(e.err, "%s %s: would be removed\n", o.Kind(), o.Name())
		}
		return err
	}
	if err := c.bring(e, cluster, objects); err != nil || !c.Prune {
		return err
	}
	return c.prune(e, cluster, r.name, objects)
}

// bring applies objects and waits for them, phase by phase.
func (c *boshDeployCmd) bring(e *env, cluster *apply.Cluster, objects []kube.Object) error {
	both := c.Phase == "both"
	for i, o := range objects {
		full, canaries := kube.FullOf(o)
		if !both || !canaries {
			continue
		}
		settled, err := cluster.Settled(e.ctx, full)
		if err != nil {
			return err
		}
		if settled { // there is no update to try on canaries
			objects[i] = full
		}
	}
	if err := c.phase(e, cluster, objects); err != nil {
		return err
	}
	if rest := kube.Finished(objects); both && len(rest) > 0 {
		return c.phase(e, cluster, rest)
	}
	return nil
}

func (c *boshDeployCmd) phase(e *env, cluster *apply.Cluster, objects []kube.Object) error {
	ctx, cancel := context.WithTimeout(e.ctx, c.Timeout)
	defer cancel()
	if err := cluster.Apply(ctx, objects, e.tellChange); err != nil {
		return err
	}
	return cluster.Wait(ctx, objects, e.tellObject)
}

// prune removes what the deployment has no longer.
func (c *boshDeployCmd) prune(e *env, cluster *apply.Cluster, deployment string, objects []kube.Object) error {
	ctx, cancel := context.WithTimeout(e.ctx, c.Timeout)
	defer cancel()
	return cluster.Prune(ctx, deployment, objects, e.tellChange)
}

func (e *env) tellChange(o kube.Object, change apply.Change) { e.tellObject(o, string(change)) }

func (e *env) tellObject(o kube.Object, what string) {
	fmt.Fprintf(e.out, "%s %s: %s\n", o.Kind(), o.Name(), what)
}
