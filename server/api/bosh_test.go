package api

import (
	"errors"
	"fmt"
	"testing"

	"cupola/store"
	"cupola/store/cf"
)

// TestNamesOfABOSHDeployment are looked for before there is a task.
func TestNamesOfABOSHDeployment(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		err := store.BOSHDeployments.Insert(tx, &cf.BOSHDeployment{Resource: cf.Resource{GUID: "dep"}, Name: "dep"})
		err = errors.Join(err, store.BOSHDeployments.Insert(tx, &cf.BOSHDeployment{Name: "user", Consumes: []cf.BOSHLink{{Deployment: "dep"}}}))
		for i, of := range []struct{ group, lifecycle string }{{"nats", "service"}, {"nats", "service"}, {"smoke-tests", "errand"}} {
			r := &cf.BOSHInstance{DeploymentGUID: "dep", Group: of.group, Lifecycle: of.lifecycle, Index: i % 2, Goal: cf.BOSHStarted, Phase: cf.BOSHStopped}
			err = errors.Join(err, store.BOSHInstances.Insert(tx, r))
		}
		return err
	})
	const path = "/v1/deployments/dep/tasks"
	for body, want := range map[string]string{
		`{"kind": "stop", "group": "nast"}`:                 `Instance group 'nast' doesn't exist in deployment 'dep' (did you mean "nats"?)`,
		`{"kind": "restart", "group": "web"}`:               `Instance group 'web' doesn't exist in deployment 'dep'`,
		`{"kind": "start", "group": "nats", "index": 2}`:    `'dep/nats/2' doesn't exist: the last instance of the group is nats/1`,
		`{"kind": "recreate", "group": "nast", "index": 0}`: `Instance group 'nast' doesn't exist in deployment 'dep' (did you mean "nats"?)`,
		`{"kind": "run-errand", "errand": "smoke-test"}`:    `Errand 'smoke-test' doesn't exist (did you mean "smoke-tests"?)`,
		`{"kind": "run-errand", "errand": "nats"}`:          `Errand 'nats' doesn't exist`,
		`{"kind": "delete", "group": "nats"}`:               "Group must be given for start, stop, restart, recreate and run-errand alone",
		`{"kind": "stop", "delete_disks": true}`:            "Delete_disks must be given for delete alone",
		`{"kind": "stop", "force": true}`:                   "Force must be given for delete alone",
		`{"kind": "delete"}`:                                "Deployment 'dep' shares links with 'user': delete these deployments first, or delete it with force",
	} {
		w.run(t, []step{{as: "admin", method: "POST", path: path, body: body, status: 422, want: detail(10008, want)}})
	}
	w.run(t, []step{
		{as: "admin", method: "GET", path: "/v1/deployment_tasks", status: 200, want: `[]`},
		{as: "admin", method: "POST", path: path, body: `{"kind": "stop", "group": "nats", "index": 1}`, status: 202},
		{as: "admin", method: "POST", path: path, body: `{"kind": "run-errand", "errand": "smoke-tests"}`, status: 202},
		{as: "admin", method: "POST", path: path, body: `{"kind": "delete", "force": true}`, status: 202},
		{as: "admin", method: "POST", path: "/v1/deployments/none/tasks", body: `{"kind": "start"}`, status: 404},
	})
}

// TestRotateOfNoVariable is refused before there is a task.
func TestRotateOfNoVariable(t *testing.T) {
	w := newWorld(t)
	deploy := func(rotate string) string {
		return fmt.Sprintf(`{"manifest": "name: dep\nvariables: [{name: nats_password, type: password}]", "rotate": [%q]}`, rotate)
	}
	w.run(t, []step{
		{as: "admin", method: "POST", path: "/v1/deployments", body: deploy("nats_pasword"), status: 422,
			want: detail(10008, `cannot rotate variable "nats_pasword": it is not declared (did you mean "nats_password"?)`)},
		{as: "admin", method: "POST", path: "/v1/deployments", body: deploy("nats_password"), status: 202},
	})
}
