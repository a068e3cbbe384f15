package kube

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"cupola/runtime/lrp"
)

// InstanceState is what a pod tells of its container.
type InstanceState struct {
	Phase     lrp.Phase // creating, starting, running or exited
	Address   string
	Ready     bool      // its readiness check passes
	StartedAt time.Time // zero: it has not started
	Started   []string  // the pod's containers that have, of which there may be a log
	Waits     string    // why it does not start yet; "" for no particular reason
	Stuck     bool      // it never will
	End       InstanceEnd
}

// InstanceEnd is how a container ended.
type InstanceEnd struct {
	Container string // of the pod, which ended first; "" where the pod never started
	Source    string // of that one's log
	Code      int    // -1 where it is not known
	OOM       bool
	Message   string // the cluster's, where it ended the pod itself
	After     time.Duration
	Said      string // its termination message
}

// Abridged is a pod with what StateOf, Deleted, NodeOf, GraceOf and PortOf read of it. The rest, which is most of a pod, is in its Record:
// who keeps thousands of pods has no room for it twice.
func Abridged(pod Object) Object {
	meta, spec := doc{"name": pod.Name()}, doc{}
	keep(meta, pod.metadata(), "deletionTimestamp")
	keep(spec, pod.Map("spec"), "nodeName", "terminationGracePeriodSeconds")
	if port := PortOf(pod); port != 0 {
		spec["containers"] = []any{doc{"ports": []any{doc{"containerPort": port}}}}
	}
	return Object{"metadata": meta, "spec": spec, "status": pod["status"]}
}

// keep copies fields that are there.
func keep(to, from map[string]any, names ...string) {
	for _, name := range names {
		if v, is := from[name]; is {
			to[name] = v
		}
	}
}

// StateOf reads a pod.
func StateOf(pod Object, r Record) InstanceState {
	s := InstanceState{Phase: lrp.PhaseCreating, Address: pod.Text("status", "podIP")}
	running, healthy := 0, 0
	statuses := pod.Items("status", "containerStatuses")
	for _, c := range statuses {
		name := c.Text("name")
		switch {
		case c.Map("state", "terminated") != nil:
			s.Started = append(s.Started, name)
			s.ended(c, r)
		case c.Map("state", "running") != nil:
			s.Started = append(s.Started, name)
			s.began(c.Text("state", "running", "startedAt"))
			running++
			if up, _ := c["started"].(bool); up {
				healthy++
			}
		default:
			s.waits(c, r)
		}
	}
	switch phase := pod.Text("status", "phase"); {
	case s.Phase == lrp.PhaseExited:
	case phase == "Failed" || phase == "Succeeded":
		s.Phase = lrp.PhaseExited
		s.End = InstanceEnd{Source: r.Container.Log.Source, Code: -1, Message: strings.TrimPrefix(pod.Text("status", "reason")+": "+pod.Text("status", "message"), ": ")}
	case healthy > 0 && healthy == len(statuses):
		s.Phase = lrp.PhaseRunning
		// Not "Ready": after an outage of the API server the cluster takes that from all pods until their nodes report again,
		// and pods of a node that does not answer are routed as Diego's suspect instances are, until they are replaced.
		s.Ready = isTrue(pod, "ContainersReady")
	case running > 0:
		s.Phase = lrp.PhaseStarting
	case len(statuses) == 0:
		s.unscheduled(pod)
	}
	return s
}

// isTrue reports whether an object has a condition.
func isTrue(o Object, condition string) bool {
	for _, c := range o.Items("status", "conditions") {
		if c.Text("type") == condition {
			return c.Text("status") == "True"
		}
	}
	return false
}

func (s *InstanceState) began(text string) {
	if at, err := time.Parse(time.RFC3339, text); err == nil && (s.StartedAt.IsZero() || at.Before(s.StartedAt)) {
		s.StartedAt = at
	}
}

// ended takes the container that has ended first as the one that ends all.
func (s *InstanceState) ended(c Object, r Record) {
	at := c.Map("state", "terminated")
	began, _ := time.Parse(time.RFC3339, text(at, "startedAt"))
	over, _ := time.Parse(time.RFC3339, text(at, "finishedAt"))
	s.began(text(at, "startedAt"))
	if s.Phase == lrp.PhaseExited && over.Sub(began) >= s.End.After {
		return
	}
	code := int(c.Number("state", "terminated", "exitCode"))
	s.Phase = lrp.PhaseExited
	s.End = InstanceEnd{Container: c.Text("name"), Source: r.sourceOf(c.Text("name")), Code: code, OOM: text(at, "reason") == "OOMKilled", After: over.Sub(began), Said: text(at, "message")}
	if reason := text(at, "reason"); reason != "Error" && reason != "Completed" && reason != "OOMKilled" {
		s.End.Message = strings.TrimSuffix(reason+": "+text(at, "message"), ": ")
	}
}

// stuck are the reasons for which a container waits that do not pass by themselves.
var stuck = map[string]bool{"ImagePullBackOff": true, "InvalidImageName": true, "ErrImageNeverPull": true, "CreateContainerConfigError": true, "CreateContainerError": true, "RunContainerError": true}

func (s *InstanceState) waits(c Object, r Record) {
	reason := c.Text("state", "waiting", "reason")
	if reason == "" || reason == "ContainerCreating" || reason == "PodInitializing" {
		return
	}
	s.Waits = waiting(reason, c.Text("state", "waiting", "message"), c.Text("image"), r.Packed)
	s.Stuck = s.Stuck || stuck[reason]
}

func (s *InstanceState) unscheduled(pod Object) {
	for _, c := range pod.Items("status", "conditions") {
		if c.Text("type") == "PodScheduled" && c.Text("status") == "False" {
			s.Waits = withoutNode(cmp.Or(c.Text("reason"), "Unschedulable"), c.Text("message"))
		}
	}
}

// FailedProbe is the probe for which the cluster ended a pod's process.
type FailedProbe struct {
	Text    string // what it found; "" where there was none
	Startup bool   // the process was never well
}

// FailedProbeOf finds it in the events of a pod that was not asked to end; they are in order. The kubelet names the probe where it ends one container
// of several, and not where it ends the pod: then it is the one that failed last.
func FailedProbeOf(events []Object) (p FailedProbe) {
	killed, last := "", ""
	found := map[string]string{}
	for _, e := range events {
		text := e.Text("message")
		for kind, prefix := range map[string]string{"liveness": "Liveness probe failed: ", "startup": "Startup probe failed: "} {
			switch {
			case e.Text("reason") == "Killing" && strings.Contains(text, "failed "+kind+" probe"):
				killed = kind
			case e.Text("reason") == "Killing" && text == "Stopping container "+ProcessContainer:
				killed = last
			case e.Text("reason") == "Unhealthy" && strings.HasPrefix(text, prefix):
				found[kind], last = strings.TrimSpace(strings.TrimPrefix(text, prefix)), kind
			}
		}
	}
	if killed == "" {
		return p
	}
	return FailedProbe{Text: cmp.Or(found[killed], "the "+killed+" probe failed"), Startup: killed == "startup"}
}

// Reason is why a container crashed, in the words of Diego; "" for a good end. several says
// that the container has more than one process.
func (e InstanceEnd) Reason(p FailedProbe, several bool) string {
	switch {
	case e.Message != "":
		return e.Source + ": " + e.Message
	case p.Text != "" && p.Startup:
		return fmt.Sprintf("Instance never healthy after %s: %s", e.After, p.Text)
	case p.Text != "":
		return "Instance became unhealthy: Liveness check unsuccessful: " + p.Text
	case e.Code == 0 && several:
		return "Codependent step exited"
	case e.Code == 0:
		return ""
	case e.OOM:
		return fmt.Sprintf("%s: Exited with status %d (out of memory)", e.Source, e.Code)
	}
	return fmt.Sprintf("%s: Exited with status %d", e.Source, e.Code)
}

// Line is what Diego writes into the log of an app whose process ended.
func (e InstanceEnd) Line() string {
	switch {
	case e.Message != "":
		return e.Message
	case e.OOM:
		return fmt.Sprintf("Exit status %d (out of memory)", e.Code)
	}
	return fmt.Sprintf("Exit status %d", e.Code)
}

// Deleted is when a pod was asked to end; zero when it was not.
func Deleted(pod Object) time.Time {
	at, _ := time.Parse(time.RFC3339, pod.Text("metadata", "deletionTimestamp"))
	return at
}

// NodeOf is the node that a pod is on; "" before it has one.
func NodeOf(pod Object) string { return pod.Text("spec", "nodeName") }

// Room is what nodes that take pods have for them.
type Room struct {
	MemoryMB, DiskMB, Pods int
	CPUs                   float64
	UserNamespaces         bool // pods may have their own
	Silent                 bool // it does not answer, or says that it is not well
}

// RoomOf is what a node has for pods; none when it takes no new ones.
func RoomOf(node Object) Room {
	unschedulable, _ := node.Map("spec")["unschedulable"].(bool)
	if silent := !isTrue(node, "Ready"); unschedulable || silent {
		return Room{Silent: silent}
	}
	at := node.Map("status", "allocatable")
	return Room{MemoryMB: int(quantity(text(at, "memory")) >> 20), DiskMB: int(quantity(text(at, "ephemeral-storage")) >> 20), Pods: int(quantity(text(at, "pods"))), CPUs: amount(text(at, "cpu")),
		UserNamespaces: hasUserNamespaces(node)}
}
