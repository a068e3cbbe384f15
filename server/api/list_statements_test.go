package api

import (
	"fmt"
	"strings"
	"testing"

	"cupola/store"
	"cupola/store/cf"
)

// TestListsTakeFewStatements lists few apps and what belongs to them, and many:
// the database is asked no more often for many.
func TestListsTakeFewStatements(t *testing.T) {
	w := newWorld(t)
	paths := []string{
		"/v3/apps?include=space,space.organization",
		"/v3/processes?embed=process_instances",
		"/v3/routes?include=domain,space,space.organization,route_policies",
		"/v3/spaces?include=organization",
		"/v3/roles?include=user,organization,space",
		"/v3/organizations/org-1/usage_summary",
	}
	for _, rt := range (&Server{}).routes() {
		method, path, _ := strings.Cut(rt.pattern, " ")
		if method == "GET" && strings.HasPrefix(path, "/v3/") && !strings.Contains(path, "{") && path != "/v3/info" {
			paths = append(paths, path)
		}
	}
	few := map[string]int64{}
	for _, apps := range []int{3, 40} {
		w.write(func(tx *store.Tx) error { return addApps(tx, apps) })
		for _, p := range paths {
			before := w.store.Statements()
			w.run(t, []step{{method: "GET", path: p, status: 200}})
			n := w.store.Statements() - before
			if apps > 3 && n > few[p] {
				t.Errorf("%s: %d statements for few, and %d for many", p, few[p], n)
			}
			few[p] = n
		}
	}
}

// addApps adds started apps, each with a space, a route, a task, a deployment
// and an instance that is wanted, in numbers that are not there yet.
func addApps(tx *store.Tx, count int) error {
	for n := range count {
		number := fmt.Sprint(100*count + n)
		if err := seedApp(tx, "app-"+number, "app-"+number); err != nil {
			return err
		}
		a, err := store.Apps.Get(tx, "app-"+number)
		if err != nil {
			return err
		}
		a.SpaceGUID, a.State = "space-"+number, cf.Started
		for _, row := range []func() error{
			func() error {
				return store.Spaces.Insert(tx, &cf.Space{Resource: guid(a.SpaceGUID), Name: a.SpaceGUID, OrgGUID: "org-1"})
			},
			func() error { return store.Apps.Update(tx, a) },
			func() error {
				return store.Routes.Insert(tx, &cf.Route{SpaceGUID: a.SpaceGUID, DomainGUID: "domain-1", Host: a.Name, Destinations: []cf.Destination{{GUID: "d", AppGUID: a.GUID, ProcessType: "web"}}})
			},
			func() error {
				return store.Tasks.Insert(tx, &cf.Task{AppGUID: a.GUID, DropletGUID: a.DropletGUID, SequenceID: 1, State: cf.TaskRunning})
			},
			func() error {
				return store.Deployments.Insert(tx, &cf.Deployment{AppGUID: a.GUID, Strategy: cf.Rolling, State: cf.Deployed, StatusValue: cf.Finalized, StatusReason: "DEPLOYED", DropletGUID: a.DropletGUID})
			},
			func() error {
				return store.Roles.Insert(tx, &cf.Role{Type: cf.SpaceAuditor, UserGUID: "user-admin", OrgGUID: "org-1", SpaceGUID: a.SpaceGUID})
			},
		} {
			if err := row(); err != nil {
				return err
			}
		}
	}
	return nil
}
