package director

import (
	"encoding/json"
	"fmt"

	"cupola/server/bosh/interpolate"
	"cupola/store"
	"cupola/store/cf"
)

// Order is what somebody asks for. Fields mean nothing to tasks that do not name
// them.
type Order struct {
	// Of a deploy: the manifest with its ops applied, and the values of variables
	// that were given with it.
	Manifest string             `json:"manifest,omitempty"`
	Values   interpolate.Values `json:"values,omitempty"`
	Lenient  bool               `json:"lenient,omitempty"`
	Recreate bool               `json:"recreate,omitempty"`
	// Rotate names variables that are to be made anew.
	Rotate []string `json:"rotate,omitempty"`
	// Of start, stop, restart and recreate: which instances; all of the group
	// without Index, all of the deployment without Group.
	Group string `json:"group,omitempty"`
	Index *int   `json:"index,omitempty"`
	// Of a delete: whether persistent disks go, too.
	DropDisks bool `json:"delete_disks,omitempty"`
	// Of a run-errand.
	Errand      string `json:"errand,omitempty"`
	WhenChanged bool   `json:"when_changed,omitempty"` // not when it has run as it is
}

// Ask adds a task for a deployment. The tasks of one deployment are done one
// after the other.
func Ask(tx *store.Tx, deployment, user string, kind Kind, o Order) (*cf.BOSHTask, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encode what is asked for: %w", err)
	}
	t := &cf.BOSHTask{DeploymentName: deployment, Kind: string(kind), User: user, State: cf.BOSHQueued, Order: text}
	return t, tx.InsertBOSHTask(t)
}

func orderOf(t *cf.BOSHTask) (o Order, err error) {
	if err := json.Unmarshal(t.Order, &o); err != nil {
		return o, fmt.Errorf("read what task %d is to do: %w", t.Number, err)
	}
	return o, nil
}
