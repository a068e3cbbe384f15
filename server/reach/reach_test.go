package reach

import (
	"fmt"
	"log/slog"
	"testing"

	"cupola/store"
	"cupola/store/cf"
	"cupola/store/storetest"
)

// TestReachEqualsTheRows writes at random what the reach depends on.
func TestReachEqualsTheRows(t *testing.T) {
	s, err := store.Open(store.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	storetest.Derived(t, s, read, read, rows)
}

func rows(n string, v int) storetest.Rows {
	named, empty, other := cf.Resource{GUID: n}, cf.Resource{GUID: n + "-empty"}, map[string]string{"a": "b", "b": "a"}[n]
	policy := cf.NetworkPolicy{Source: n, Destination: n, Protocol: "tcp", FirstPort: 1, LastPort: 1 + v}
	state := []cf.DataState{cf.DataReady, cf.DataMaking, cf.DataDeleting}[v]
	return storetest.Rows{
		Puts: []func(*store.Tx) error{
			storetest.Put(store.Orgs, &cf.Org{Resource: named, Name: n}),
			storetest.Put(store.Spaces, &cf.Space{Resource: named, Name: n, OrgGUID: n}),
			storetest.Put(store.Spaces, &cf.Space{Resource: empty, Name: empty.GUID, OrgGUID: n}),
			storetest.Put(store.Apps, &cf.App{Resource: named, Name: n, SpaceGUID: n, State: cf.Started}),
			storetest.Put(store.SecurityGroups, &cf.SecurityGroup{Resource: named, Name: n, GlobalRunning: v == 1, StagingSpaces: []string{other},
				Rules: []cf.SecurityRule{{Protocol: "tcp", Destination: fmt.Sprintf("10.0.0.%d", v), Ports: "80"}}}),
			func(tx *store.Tx) error { return store.NetworkPolicies.Add(tx, policy) },
			storetest.Put(store.DataInstances, &cf.DataInstance{Resource: named, Service: []string{"postgres", "gone"}[v/2], Plan: "small", State: state}),
			storetest.Put(store.DataBindings, &cf.DataBinding{Resource: named, InstanceGUID: n, AppGUID: n, State: state}),
			storetest.Put(store.BOSHDeployments, &cf.BOSHDeployment{Resource: named, Name: fmt.Sprint(n, v), Consumes: []cf.BOSHLink{{Deployment: other + "0"}}}),
		},
		Deletes: []func(*store.Tx) error{
			storetest.Delete(store.Orgs, n), storetest.Delete(store.Spaces, empty.GUID), storetest.Delete(store.Apps, n), storetest.Delete(store.SecurityGroups, n), storetest.Delete(store.BOSHDeployments, n),
			storetest.Delete(store.DataInstances, n), func(tx *store.Tx) error { return store.NetworkPolicies.Remove(tx, policy) },
		},
	}
}
