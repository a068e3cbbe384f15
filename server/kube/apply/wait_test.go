package apply

import (
	"fmt"
	"strings"
	"testing"

	"cupola/server/kube"
)

func TestState(t *testing.T) {
	set := func(spec, status string) string {
		return fmt.Sprintf("kind: StatefulSet\nmetadata: {generation: 2}\nspec: {replicas: 3, updateStrategy: {%s}}\nstatus: {%s}\n", spec, status)
	}
	for _, test := range []struct {
		object string
		ready  bool
		text   string
		err    string
	}{
		{"kind: Secret\n", true, "", ""},
		{set("rollingUpdate: {partition: 0}", "observedGeneration: 1, updatedReplicas: 3, availableReplicas: 3"), false, "not seen yet", ""},
		{set("rollingUpdate: {partition: 0}", "observedGeneration: 2, updatedReplicas: 2, availableReplicas: 3"), false, "3 of 3 ready, 2 updated", ""},
		{set("rollingUpdate: {partition: 0}", "observedGeneration: 2, updatedReplicas: 3, availableReplicas: 3"), true, "3 of 3 ready, 3 updated", ""},
		{set("rollingUpdate: {partition: 2}", "observedGeneration: 2, updatedReplicas: 1, availableReplicas: 3"), true, "3 of 3 ready, 1 updated", ""},
		{set("rollingUpdate: {partition: 2}", "observedGeneration: 2, updatedReplicas: 1, availableReplicas: 2"), false, "2 of 3 ready, 1 updated", ""},
		{set("type: OnDelete", "observedGeneration: 2, readyReplicas: 1"), true, "1 active", ""},
		{set("type: OnDelete", "observedGeneration: 2"), false, "0 active", ""},
		{"kind: StatefulSet\nspec: {replicas: 0, updateStrategy: {type: OnDelete}}\n", true, "0 active", ""},
		{"kind: StatefulSet\nspec: {replicas: 0}\n", true, "0 of 0 ready, 0 updated", ""},
		{"kind: Job\n", false, "running", ""},
		{"kind: Job\nstatus: {conditions: [{type: Complete, status: 'True'}]}\n", true, "complete", ""},
		{"kind: Job\nstatus: {conditions: [{type: Failed, status: 'False'}]}\n", false, "running", ""},
		{"kind: Job\nstatus: {conditions: [{type: Failed, status: 'True', message: no}]}\n", false, "", "it has failed: no"},
		{"kind: Deployment\nspec: {replicas: 2}\nstatus: {updatedReplicas: 2, availableReplicas: 1}\n", false, "1 of 2 ready, 2 updated", ""},
	} {
		s := stateOf(object(t, test.object), map[string]bool{})
		if fault := fmt.Sprint(s.err); s.ready != test.ready || s.text != test.text || s.err != nil && fault != test.err || s.err == nil && test.err != "" {
			t.Errorf("%s\ngot %+v", test.object, s)
		}
	}
	if s := stateOf(nil, nil); s.ready || s.text != "gone" {
		t.Errorf("of nothing: got %+v", s)
	}
}

// TestActiveInAnotherAZ has a group with one active pod, in one of two AZs.
func TestActiveInAnotherAZ(t *testing.T) {
	set := func(deployment, az string, ready, there int) kube.Object {
		return object(t, fmt.Sprintf("kind: StatefulSet\nmetadata: {name: db-%s, namespace: n, generation: 1, labels: {quarks.cloudfoundry.org/deployment-name: %s, quarks.cloudfoundry.org/instance-group-name: db}}\n"+
			"spec: {replicas: 1, updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 1, replicas: %d, readyReplicas: %d}\n", az, deployment, there, ready))
	}
	active := map[string]bool{}
	for _, test := range []struct {
		set   kube.Object
		ready bool
		text  string
	}{
		{set("a", "z1", 0, 1), false, "0 active"},
		{set("a", "z2", 1, 1), true, "1 active"},
		{set("a", "z1", 0, 1), true, "1 of 1 there, all passive"},
		{set("a", "z1", 0, 0), false, "0 of 1 there, all passive"},
		{set("b", "z1", 0, 1), false, "0 active"}, // of another deployment
	} {
		if s := stateOf(test.set, active); s.ready != test.ready || s.text != test.text {
			t.Errorf("%s of %s: got %+v; want %v, %q", test.set.Name(), kube.GroupOf(test.set), s, test.ready, test.text)
		}
	}
}

func TestTroubles(t *testing.T) {
	pod := object(t, `
metadata: {name: nats-0}
status:
  conditions: [{type: PodScheduled, status: "False", message: no node}]
  initContainerStatuses: [{name: create-dirs, state: {terminated: {reason: Completed}}}]
  containerStatuses:
  - {name: nats, state: {waiting: {reason: ImagePullBackOff, message: no such image}}}
  - {name: side, state: {running: {}}}
  - {name: third, state: {waiting: {reason: CrashLoopBackOff}}}
`)
	got := fmt.Sprint(troubles(pod))
	want := "[pod nats-0: no node pod nats-0, container nats: ImagePullBackOff: no such image pod nats-0, container third: CrashLoopBackOff]"
	if got != want {
		t.Errorf("got %s", got)
	}
}

func TestRefused(t *testing.T) {
	var events []kube.Object
	for _, text := range []string{"{reason: FailedCreate, message: first}", "{reason: FailedCreate, message: 'violates PodSecurity'}", "{reason: SuccessfulCreate, message: made}"} {
		events = append(events, object(t, text))
	}
	if err := refused(events); err == nil || err.Error() != "violates PodSecurity" {
		t.Errorf("got %v; want the last refusal", err)
	}
	if err := refused(events[2:]); err != nil {
		t.Errorf("got %v; want none", err)
	}
}

func object(t *testing.T, text string) kube.Object {
	t.Helper()
	all, err := kube.Read(strings.NewReader(text))
	if err != nil || len(all) != 1 {
		t.Fatalf("%v of %q", err, text)
	}
	return all[0]
}
