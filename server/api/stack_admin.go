package api

import (
	"net/http"
	"slices"
	"strings"

	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/server/control/stacks"
	"cupola/store"
	"cupola/store/cf"
)

// stackStates are the states of a stack, as RFC-0045 has them.
var stackStates = []string{"ACTIVE", "RESTRICTED", "DEPRECATED", "DISABLED"}

type stackRequest struct {
	Name        change.Field[string] `json:"name"`
	Description change.Field[string] `json:"description"`
	State       change.Field[string] `json:"state"`
	StateReason change.Field[string] `json:"state_reason"`
	Metadata    *change.Metadata     `json:"metadata"`
}

func (r stackRequest) Validate() []string {
	return control.Must(len(r.Name.V) <= 250, "Name is too long (maximum is 250 characters)",
		len(r.Description.V) <= 250, "Description is too long (maximum is 250 characters)",
		!r.State.Set || slices.Contains(stackStates, r.State.V), "State must be one of "+strings.Join(stackStates, ", "),
		len(r.StateReason.V) <= 5000, "State reason is too long (maximum is 5000 characters)")
}

func createStack(c *call) (*response, error) {
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	var req stackRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	s := &cf.Stack{Name: strings.TrimSpace(req.Name.V), Description: req.Description.V, State: req.State.Or("ACTIVE"), StateReason: req.StateReason.V}
	if s.Name == "" {
		return nil, cf.Unprocessable("Name can't be blank")
	}
	if err := req.Metadata.Apply(&s.Metadata); err != nil {
		return nil, err
	}
	err := store.Stacks.Insert(c.Tx, s)
	if store.IsTaken(err) {
		return nil, cf.Unprocessable("Name must be unique")
	}
	if err != nil {
		return nil, err
	}
	return &response{status: http.StatusCreated, body: viewStack(c, s)}, stacks.Event(c.Session, "create", s)
}

// stack is the stack of {guid}, if the actor is an admin.
func (c *call) stack() (*cf.Stack, error) {
	s, err := store.Stacks.Get(c.Tx, c.guid())
	if err != nil {
		return nil, err
	}
	return s, c.PermitAdmin()
}

func updateStack(c *call) (*response, error) {
	s, err := c.stack()
	if err != nil {
		return nil, err
	}
	var req stackRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if req.Name.Set || req.Description.Set {
		return nil, cf.Unprocessable("Unknown field(s): 'name', 'description'")
	}
	s.State = req.State.Or(s.State)
	if req.StateReason.Set {
		s.StateReason = req.StateReason.V
	}
	if err := req.Metadata.Apply(&s.Metadata); err != nil {
		return nil, err
	}
	if err := store.Stacks.Update(c.Tx, s); err != nil {
		return nil, err
	}
	if s.Default && req.State.Set {
		c.Warn("Changing state on the default stack '%s' may affect new application deployments.", s.Name)
	}
	return &response{body: viewStack(c, s)}, stacks.Event(c.Session, "update", s)
}

func deleteStack(c *call) (*response, error) {
	s, err := c.stack()
	if err != nil {
		return nil, err
	}
	users, err := c.Tx.StackUsers(s.Name)
	if err != nil {
		return nil, err
	}
	if len(users) > 0 { // who they are GET …/apps tells
		return nil, cf.Unprocessable("Cannot delete stack '%s' because apps are currently using the stack.", s.Name)
	}
	if c.Platform.Stacks != nil {
		if err := stacks.RemoveRoot(c.Session, s.Name); err != nil {
			return nil, err
		}
	}
	if err := store.Stacks.Delete(c.Tx, s.GUID); err != nil {
		return nil, err
	}
	return &response{status: http.StatusNoContent}, stacks.Event(c.Session, "delete", s)
}

func listStackApps(c *call) (*response, error) {
	s, err := store.Stacks.Get(c.Tx, c.guid())
	if err != nil {
		return nil, err
	}
	return listRows(c, store.Apps, viewApp, func(q *listQuery) error {
		q.Where["stacks"] = []string{s.Name}
		return nil
	})
}

// SystemStack is a stack that the daemon found.
type SystemStack struct {
	Name        string
	Description string
	Compat      string // what CF_STACK says; "": the name
	Default     bool   // for new apps; of one at most
}

// SeedStacks makes the stacks that the daemon found, or brings them up to date.
// An operator's state and metadata stay. When one of them is the default, no
// other stack is.
func SeedStacks(tx *store.Tx, found []SystemStack) error {
	if slices.ContainsFunc(found, func(s SystemStack) bool { return s.Default }) {
		if err := clearDefaultStack(tx); err != nil {
			return err
		}
	}
	for _, f := range found {
		s, err := store.Stacks.First(tx, store.Query{Where: map[string][]string{"names": {f.Name}}})
		if store.IsNotFound(err) {
			s, err = &cf.Stack{Name: f.Name, State: "ACTIVE"}, nil
		}
		if err != nil {
			return err
		}
		s.Description, s.Compat, s.Default = f.Description, f.Compat, f.Default
		if err := store.Stacks.Put(tx, s); err != nil {
			return err
		}
	}
	return nil
}

func clearDefaultStack(tx *store.Tx) error {
	old, err := store.Stacks.By(tx, "default", "true")
	if err != nil {
		return err
	}
	for _, s := range old {
		s.Default = false
		if err := store.Stacks.Update(tx, s); err != nil {
			return err
		}
	}
	return nil
}
