package director

import (
	"fmt"
	"log/slog"
	"testing"

	"cupola/runtime/lrp"
	"cupola/server/bosh/agent"
	"cupola/server/bosh/bpm"
	"cupola/server/reconcile"
	"cupola/store"
	"cupola/store/cf"
	"cupola/store/storetest"
)

// derivation is what deployments add to the control loop's World.
type derivation struct {
	Desired []lrp.Desired
	Unknown []string
	Work    []reconcile.Work
}

// TestSourceEqualsTheRows writes at random what the processes and scripts of
// deployments depend on.
func TestSourceEqualsTheRows(t *testing.T) {
	s, err := store.Open(store.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	read := func(source reconcile.Source) func(*store.Tx) (derivation, error) {
		return func(tx *store.Tx) (d derivation, err error) {
			if d.Desired, d.Unknown, err = source.Desired(tx); err != nil {
				return d, err
			}
			d.Work, err = source.Work(tx)
			return d, err
		}
	}
	ofNew := func(tx *store.Tx) (derivation, error) { return read(New(Config{}).Source())(tx) }
	var first derivation
	if err := s.Write(t.Context(), func(tx *store.Tx) error {
		for _, put := range rows("a", 0).Puts {
			if err := put(tx); err != nil {
				return err
			}
		}
		first, err = ofNew(tx)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(first.Desired) != 1 || len(first.Work) != 1 || first.Work[0].Fault != "" || len(first.Unknown) != 0 {
		t.Fatalf("got %+v; want a process and a script", first)
	}
	storetest.Derived(t, s, read(New(Config{}).Source()), ofNew, rows)
}

// rows are a deployment of one instance, which runs a script.
func rows(n string, v int) storetest.Rows {
	named, text := cf.Resource{GUID: n}, fmt.Sprint(n, v)
	return storetest.Rows{Puts: []func(*store.Tx) error{
		storetest.Put(store.SecurityGroups, &cf.SecurityGroup{Resource: named, Name: n, GlobalRunning: v < 2, Rules: []cf.SecurityRule{{Protocol: "all", Destination: fmt.Sprintf("10.0.0.%d", v)}}}),
		storetest.Put(store.BOSHDeployments, &cf.BOSHDeployment{Resource: named, Name: text, Manifest: []byte{}}),
		storetest.Put(store.BOSHDisks, &cf.BOSHDisk{Resource: named, DeploymentName: n, SizeMB: 1 + v}),
		func(tx *store.Tx) error { return putInstance(tx, named, text, v) },
		func(tx *store.Tx) error { return putCall(tx, named, text, v) },
	}, Deletes: []func(*store.Tx) error{
		storetest.Delete(store.SecurityGroups, n), storetest.Delete(store.BOSHDeployments, n), storetest.Delete(store.BOSHInstances, n), storetest.Delete(store.BOSHCalls.Table, n),
	}}
}

// putInstance writes an instance and what it is made of, as the director does, in
// one transaction: a digest without its spec is a damaged row.
func putInstance(tx *store.Tx, named cf.Resource, text string, v int) error {
	spec := encoded(named.GUID, text)
	row := &cf.BOSHInstance{Resource: named, DeploymentGUID: named.GUID, Group: "group", Lifecycle: "service", DiskGUID: []string{named.GUID, "", named.GUID}[v],
		Goal: cf.BOSHStarted, Phase: []cf.BOSHPhase{cf.BOSHRunning, cf.BOSHStarting, cf.BOSHStopped}[v], Digest: spec.GUID}
	if err := store.BOSHInstances.Put(tx, row); err != nil {
		return err
	}
	return store.BOSHSpecs.Put(tx, spec)
}

// putCall writes a run of the instance's script.
func putCall(tx *store.Tx, named cf.Resource, text string, v int) error {
	spec := encoded(named.GUID, text)
	if err := store.BOSHSpecs.Put(tx, spec); err != nil {
		return err
	}
	return store.BOSHCalls.Put(tx, &cf.BOSHCall{Resource: named, InstanceGUID: named.GUID, Phase: cf.BOSHPreStart, Digest: spec.GUID, Job: "job", Script: string(agent.PreStart), Args: []string{text},
		State: []cf.BOSHCallState{cf.BOSHCalling, cf.BOSHCalling, cf.BOSHSucceeded}[v], Result: []byte{}})
}

// encoded is the spec of an instance with one job.
func encoded(instance, text string) *cf.BOSHSpec {
	job := agent.Job{Name: "job", Image: "docker://registry/image@sha256:" + text, Processes: []agent.Process{{Process: bpm.Process{Name: "main", Executable: text}}},
		Files: []lrp.File{{Path: "/var/vcap/jobs/job/bin/pre-start"}}}
	spec, digest, _ := agent.Spec{Deployment: text, Group: "group", Jobs: []agent.Job{job}, StoreMB: 10}.Encode()
	return &cf.BOSHSpec{Resource: cf.Resource{GUID: digest}, InstanceGUID: instance, Text: spec}
}
