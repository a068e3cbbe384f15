package deployment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cupola/cmd/cupola/command"
	"cupola/server/kube"
	"cupola/server/kube/apply"
)

// clusterFlags say which cluster a deployment is applied to, and how.
type clusterFlags struct {
	kubeFlags
	Kubeconfig     string        `help:"The kubeconfig file; by default KUBECONFIG or ~/.kube/config." placeholder:"FILE"`
	Context        string        `help:"Context in the kubeconfig; by default the current one." placeholder:"NAME"`
	Phase          string        `help:"How far an update goes: only to its canaries, to all instances at once, or to canaries first and then to all." enum:"canary,full,both" default:"both"`
	ForceConflicts bool          `help:"Take over fields that other managers own."`
	Prune          bool          `help:"Delete objects of earlier deploys that are no longer in the manifest; volumes and generated variables stay."`
	Timeout        time.Duration `help:"Maximum time for each phase to become ready." default:"15m"`
}

func (f *clusterFlags) open(e *command.Env) (*apply.Cluster, error) {
	return apply.Open(apply.Config{Kubeconfig: f.Kubeconfig, Context: f.Context, Namespace: f.Namespace, Force: f.ForceConflicts, Warn: func(text string) {
		fmt.Fprintf(e.Err, "warning %s\n", command.Printable(text))
	}})
}

// toKubernetes renders the manifest as the cluster needs it: with the variables
// and the versions that are there. It applies that, and waits.
func (c *deployCmd) toKubernetes(e *command.Env) error {
	if c.Prune && c.Phase == string(kube.Canary) {
		return errors.New("--prune with --phase canary would delete objects that other instances still use: give --phase both or full")
	}
	r := &renderer{env: e, source: &c.sourceFlags, lenient: c.Lenient, rotate: c.Rotate}
	if err := r.read(); err != nil {
		return err
	}
	cluster, err := c.open(e)
	if err != nil {
		return err
	}
	if r.api, err = c.Login(e.Ctx); err != nil {
		return err
	}
	o := c.options()
	o.WithSecrets, o.Phase = !c.DryRun, kube.Full
	if c.Phase != string(kube.Full) {
		o.Phase = kube.Canary
	}
	variables, err := cluster.Variables(e.Ctx, r.name)
	if err != nil {
		return err
	}
	if o.Known, err = cluster.Known(e.Ctx, r.name); err != nil {
		return err
	}
	objects, err := r.render(e.Ctx, o, variables)
	if err != nil {
		return err
	}
	if c.DryRun {
		if err := kube.Write(e.Out, objects); err != nil || !c.Prune {
			return err
		}
		stale, err := cluster.Stale(e.Ctx, r.name, objects)
		for _, o := range stale {
			fmt.Fprintf(e.Err, "%s %s: would be removed\n", o.Kind(), o.Name())
		}
		return err
	}
	if err := c.bring(e, cluster, objects); err != nil || !c.Prune {
		return err
	}
	return c.prune(e, cluster, r.name, objects)
}

// bring applies objects and waits for them, phase by phase.
func (c *deployCmd) bring(e *command.Env, cluster *apply.Cluster, objects []kube.Object) error {
	both := c.Phase == "both"
	for i, o := range objects {
		full, canaries := kube.FullOf(o)
		if !both || !canaries {
			continue
		}
		upToDate, err := cluster.UpToDate(e.Ctx, full)
		if err != nil {
			return err
		}
		if upToDate { // there is no update to try on canaries
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

func (c *deployCmd) phase(e *command.Env, cluster *apply.Cluster, objects []kube.Object) error {
	ctx, cancel := context.WithTimeout(e.Ctx, c.Timeout)
	defer cancel()
	if err := cluster.Apply(ctx, objects, tellChange(e)); err != nil {
		return err
	}
	return cluster.Wait(ctx, objects, tellObject(e))
}

// prune removes what the deployment has no longer.
func (c *deployCmd) prune(e *command.Env, cluster *apply.Cluster, deployment string, objects []kube.Object) error {
	ctx, cancel := context.WithTimeout(e.Ctx, c.Timeout)
	defer cancel()
	return cluster.Prune(ctx, deployment, objects, tellChange(e))
}

func tellChange(e *command.Env) func(kube.Object, apply.Change) {
	tell := tellObject(e)
	return func(o kube.Object, change apply.Change) { tell(o, string(change)) }
}

func tellObject(e *command.Env) func(o kube.Object, what string) {
	return func(o kube.Object, what string) { fmt.Fprintf(e.Out, "%s %s: %s\n", o.Kind(), o.Name(), what) }
}
