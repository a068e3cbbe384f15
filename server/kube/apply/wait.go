package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"cupola/server/kube"
)

// poll is how often the cluster is asked.
const poll = time.Second

// Wait waits until objects are ready, and calls tell on progress. It returns
// an error that names the cause when a Job fails or ctx ends.
func (c *Cluster) Wait(ctx context.Context, all []kube.Object, tell func(kube.Object, string)) error {
	said, active := map[string]string{}, map[string]bool{}
	waiting := slices.Clone(all)
	for {
		var rest []kube.Object
		for _, o := range waiting {
			is, err := c.get(ctx, o)
			if err != nil && ctx.Err() == nil {
				return err
			}
			s := stateOf(is, active)
			if s.err != nil {
				return errors.Join(fmt.Errorf("%s: %w", named(o), s.err), c.waitReason(o))
			}
			if s.text != "" && said[named(o)] != s.text {
				said[named(o)] = s.text
				tell(o, s.text)
			}
			if !s.ready {
				rest = append(rest, o)
			}
		}
		if waiting = rest; len(waiting) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return c.notReady(waiting, said)
		case <-time.After(poll):
		}
	}
}

// notReady returns an error that lists the objects that did not become ready.
func (c *Cluster) notReady(waiting []kube.Object, said map[string]string) error {
	var faults []error
	for _, o := range waiting {
		faults = append(faults, fmt.Errorf("%s did not get ready: %s", named(o), said[named(o)]), c.waitReason(o))
	}
	return errors.Join(faults...)
}

// state is how far an object is.
type state struct {
	ready bool
	text  string // "" for what is always ready
	err   error  // it never will be
}

// stateOf returns the state of an object. active are the groups that were seen with an
// active pod; it is noted there.
func stateOf(o kube.Object, active map[string]bool) state {
	if o == nil {
		return state{text: "gone"}
	}
	switch o.Kind() {
	case "StatefulSet":
		if o.Text("spec", "updateStrategy", "type") == "OnDelete" {
			return activePassive(o, active)
		}
		return replicas(o, o.Number("spec", "replicas")-o.Number("spec", "updateStrategy", "rollingUpdate", "partition"))
	case "Deployment":
		return replicas(o, o.Number("spec", "replicas"))
	case "Job":
		return job(o)
	}
	return state{ready: true}
}

// activePassive is the state of a StatefulSet of a group with one active pod, which may be
// that of another AZ: passive pods are never ready. It is updated by hand.
func activePassive(o kube.Object, active map[string]bool) state {
	n, want, there := o.Number("status", "readyReplicas"), o.Number("spec", "replicas"), o.Number("status", "replicas")
	group := kube.GroupOf(o)
	if seen(o) && n > 0 && group != "" {
		active[group] = true
	}
	if n == 0 && want > 0 && active[group] {
		return state{seen(o) && there >= want, fmt.Sprintf("%d of %d there, all passive", there, want), nil}
	}
	return state{seen(o) && (n > 0 || want == 0), fmt.Sprintf("%d active", n), nil}
}

// replicas is the state of what has replicas, some of which are updated.
func replicas(o kube.Object, update int64) state {
	want, updated, ready := o.Number("spec", "replicas"), o.Number("status", "updatedReplicas"), o.Number("status", "availableReplicas")
	if !seen(o) {
		return state{text: "not seen yet"}
	}
	return state{updated >= update && ready >= want, fmt.Sprintf("%d of %d ready, %d updated", ready, want, updated), nil}
}

// seen reports whether the cluster has looked at the object as it is now.
func seen(o kube.Object) bool {
	return o.Number("status", "observedGeneration") >= o.Number("metadata", "generation")
}

func job(o kube.Object) state {
	for _, c := range o.Items("status", "conditions") {
		if c.Text("status") != "True" {
			continue
		}
		switch c.Text("type") {
		case "Complete":
			return state{ready: true, text: "complete"}
		case "Failed":
			return state{err: fmt.Errorf("it has failed: %s", c.Text("message"))}
		}
	}
	return state{text: "running"}
}

// whyLimit bounds how long is looked for what is the matter.
const whyLimit = 10 * time.Second

// waitReason returns what the containers of an object's pods wait for, or why the cluster
// makes no pods, or nil.
func (c *Cluster) waitReason(o kube.Object) error {
	ctx, cancel := context.WithTimeout(context.Background(), whyLimit)
	defer cancel()
	match := o.Map("spec", "selector", "matchLabels")
	if o.Kind() == "Job" {
		match = map[string]any{"batch.kubernetes.io/job-name": o.Name()}
	}
	set := labels.Set{}
	for key, value := range match {
		set[key] = fmt.Sprint(value)
	}
	if len(set) == 0 {
		return nil
	}
	pods, err := c.list(ctx, resources["Pod"], set.String())
	if err != nil {
		return nil //nolint:nilerr // it was only to say more
	}
	var faults []error
	for _, pod := range pods {
		faults = append(faults, troubles(pod)...)
	}
	if int64(len(pods)) < max(1, o.Number("spec", "replicas")) {
		events, _ := c.Events(ctx, o.Name())
		faults = append(faults, refused(events))
	}
	return errors.Join(faults...)
}

// refused returns the last reason for which the cluster made no pod, like a policy, or nil.
func refused(events []kube.Object) error {
	for _, e := range slices.Backward(events) {
		if e.Text("reason") == "FailedCreate" {
			return errors.New(e.Text("message"))
		}
	}
	return nil
}

// troubles are why a pod's containers do not run.
func troubles(pod kube.Object) (all []error) {
	for _, c := range pod.Items("status", "conditions") {
		if c.Text("type") == "PodScheduled" && c.Text("status") == "False" {
			all = append(all, fmt.Errorf("pod %s: %s", pod.Name(), c.Text("message")))
		}
	}
	for _, kind := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, c := range pod.Items("status", kind) {
			for _, s := range []string{"waiting", "terminated"} {
				reason := c.Text("state", s, "reason")
				if reason == "" || reason == "Completed" || reason == "PodInitializing" {
					continue
				}
				text := strings.TrimSuffix(reason+": "+c.Text("state", s, "message"), ": ")
				all = append(all, fmt.Errorf("pod %s, container %s: %s", pod.Name(), c.Text("name"), text))
			}
		}
	}
	return all
}
