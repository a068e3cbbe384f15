package boshapi

import (
	"fmt"
	"net/http"
	"strconv"

	"cupola/server/bosh/director"
	"cupola/store"
	"cupola/store/cf"
)

func listEvents(c *call) (*answer, error) {
	q, err := director.EventQuery(c.Request.URL.Query())
	if err != nil {
		return nil, err
	}
	rows, err := store.BOSHEvents.Matching(c.tx, q)
	all := []doc{}
	for _, e := range rows {
		all = append(all, viewEvent(e))
	}
	return &answer{body: all}, err
}

func showEvent(c *call) (*answer, error) {
	id := c.param("id")
	e, err := store.BOSHEvents.First(c.tx, store.Query{Where: map[string][]string{"numbers": {id}}})
	if store.IsNotFound(err) {
		return nil, &refusal{http.StatusNotFound, 100002, "Event " + id + " not found"}
	}
	if err != nil {
		return nil, err
	}
	return ok(viewEvent(e))
}

// viewEvent is an event whose numbers are texts, as the director has them.
func viewEvent(e *cf.BOSHEvent) doc {
	view := doc{"id": strconv.Itoa(e.Number), "timestamp": e.CreatedAt.Unix(), "user": e.User, "action": e.Action, "object_type": e.ObjectType, "object_name": e.ObjectName, "context": doc{}}
	for name, value := range map[string]string{"parent_id": number(e.Parent), "task": number(e.Task), "deployment": e.Deployment, "instance": e.Instance, "error": e.Error} {
		if value != "" {
			view[name] = value
		}
	}
	return view
}

// number is a number as a text; "" of none.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// lockTime is how long a lock of the director's lasts, which renews it.
const lockTime = 10

// listLocks lists the deployments that a task changes: other tasks wait for it.
func listLocks(c *call) (*answer, error) {
	rows, err := store.BOSHTasks.Open(c.tx)
	all := []doc{}
	for _, t := range rows {
		if t.State == cf.BOSHProcessing {
			all = append(all, doc{"type": "deployment", "resource": []string{t.DeploymentName}, "timeout": fmt.Sprintf("%d.0", c.tx.Now.Unix()+lockTime), "task_id": strconv.Itoa(t.Number)})
		}
	}
	return &answer{body: all}, err
}
