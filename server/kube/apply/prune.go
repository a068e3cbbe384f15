package apply

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"cupola/server/kube"
)

// removed is what Prune has done to an object.
const removed Change = "removed"

// prunable lists the kinds that Prune deletes, in order: users before what
// they use. Claims are not among them: their content cannot be recreated.
var prunable = []string{"CronJob", "Job", "PodDisruptionBudget", "StatefulSet", "Service", "Secret"}

// Prune deletes the objects that cupola applied for a deployment and that are
// not in all, and calls tell for each. Pods end before the objects that they
// use are deleted. Prune keeps what Stale omits.
func (c *Cluster) Prune(ctx context.Context, deployment string, all []kube.Object, tell func(kube.Object, Change)) error {
	for _, kind := range prunable {
		stale, err := c.stale(ctx, kind, deployment, all)
		if err != nil {
			return err
		}
		for _, o := range stale {
			if err := c.remove(ctx, o); err != nil {
				return err
			}
		}
		for _, o := range stale {
			if err := c.waitDeleted(ctx, o); err != nil {
				return err
			}
			tell(o, removed)
		}
	}
	return nil
}

// Stale are the objects that Prune would remove first. Not among them are those
// that cupola has not applied, whatever their labels say; claims; Secrets of
// variables that were made for the deployment; and Secrets that anything of the
// namespace names which runs or may run again.
func (c *Cluster) Stale(ctx context.Context, deployment string, all []kube.Object) (stale []kube.Object, err error) {
	for _, kind := range prunable {
		more, err := c.stale(ctx, kind, deployment, all)
		if err != nil {
			return nil, err
		}
		stale = append(stale, more...)
	}
	return stale, nil
}

func (c *Cluster) stale(ctx context.Context, kind, deployment string, all []kube.Object) (stale []kube.Object, err error) {
	there, err := c.list(ctx, resources[kind], kube.ObjectsOf(deployment))
	if err != nil {
		return nil, err
	}
	for _, o := range there {
		if applied(o) && !slices.ContainsFunc(all, func(is kube.Object) bool { return named(is) == named(o) }) {
			stale = append(stale, o)
		}
	}
	if kind != "Secret" || len(stale) == 0 {
		return stale, nil
	}
	used, err := c.texts(ctx)
	return slices.DeleteFunc(stale, func(o kube.Object) bool {
		_, made := kube.VariableOf(o)
		return made || used[o.Name()]
	}), err
}

// applied reports whether cupola has applied an object: what others make from one
// has its labels too.
func applied(o kube.Object) bool {
	return slices.ContainsFunc(o.Items("metadata", "managedFields"), func(f kube.Object) bool {
		return f.Text("manager") == manager && f.Text("operation") == string(metav1.ManagedFieldsOperationApply)
	})
}

// revisions are the templates that StatefulSets had or have.
var revisions = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "controllerrevisions"}

// texts are all those in what runs in the namespace or may run again. No name of
// a Secret is overlooked that way, wherever it stands.
func (c *Cluster) texts(ctx context.Context) (map[string]bool, error) {
	found, old := map[string]bool{}, map[string]bool{}
	for _, kind := range []string{"Pod", "StatefulSet", "Deployment", "CronJob", "Job", "Ingress"} {
		there, err := c.list(ctx, resources[kind], "")
		if err != nil {
			return nil, err
		}
		for _, o := range there {
			gather(o.Map("spec"), found)
			if was := o.Text("status", "currentRevision"); was != o.Text("status", "updateRevision") {
				old[was] = true
			}
		}
	}
	if len(old) == 0 {
		return found, nil
	}
	there, err := c.list(ctx, revisions, "") // pods that end may come back as they were
	for _, o := range there {
		if old[o.Name()] {
			gather(o.Map("data"), found)
		}
	}
	return found, err
}

func gather(v any, found map[string]bool) {
	switch v := v.(type) {
	case string:
		found[v] = true
	case []any:
		for _, item := range v {
			gather(item, found)
		}
	case map[string]any:
		for _, item := range v {
			gather(item, found)
		}
	}
}

// remove deletes an object, dependents first, if it is still the one that was
// read.
func (c *Cluster) remove(ctx context.Context, o kube.Object) error {
	r, err := c.of(o)
	if err != nil {
		return err
	}
	policy, uid := metav1.DeletePropagationForeground, types.UID(o.Text("metadata", "uid"))
	err = r.Delete(ctx, o.Name(), metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove %s: %w", named(o), err)
	}
	return nil
}

// waitDeleted waits until an object is.
func (c *Cluster) waitDeleted(ctx context.Context, o kube.Object) error {
	for {
		is, err := c.get(ctx, o)
		switch {
		case err != nil && ctx.Err() == nil:
			return err
		case err == nil && is.Text("metadata", "uid") != o.Text("metadata", "uid"):
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not go away: %w", named(o), ctx.Err())
		case <-time.After(poll):
		}
	}
}
