package stacks

import (
	"slices"
	"strings"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// states are the states of a stack, as RFC-0045 has them.
var states = []string{"ACTIVE", "RESTRICTED", "DEPRECATED", "DISABLED"}

// Change is a change of a stack. Only a new one has a name and a description.
type Change struct {
	Name        change.Field[string] `json:"name"`
	Description change.Field[string] `json:"description"`
	State       change.Field[string] `json:"state"`
	StateReason change.Field[string] `json:"state_reason"`
	Metadata    *change.Metadata     `json:"metadata"`
}

// Validate lists what is wrong with the change, in Cloud Controller's words.
func (r Change) Validate() []string {
	return control.Must(len(r.Name.V) <= 250, "Name is too long (maximum is 250 characters)",
		len(r.Description.V) <= 250, "Description is too long (maximum is 250 characters)",
		!r.State.Set || slices.Contains(states, r.State.V), "State must be one of "+strings.Join(states, ", "),
		len(r.StateReason.V) <= 5000, "State reason is too long (maximum is 5000 characters)")
}

// Create adds a stack.
func Create(c *control.Session, req Change) (*cf.Stack, error) {
	if err := c.PermitAdmin(); err != nil {
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
	return s, event(c, "create", s, c.Request(c.Asked))
}

// Update changes a stack.
func Update(c *control.Session, s *cf.Stack, req Change) error {
	if req.Name.Set || req.Description.Set {
		return cf.Unprocessable("Unknown field(s): 'name', 'description'")
	}
	s.State = req.State.Or(s.State)
	if req.StateReason.Set {
		s.StateReason = req.StateReason.V
	}
	if err := req.Metadata.Apply(&s.Metadata); err != nil {
		return err
	}
	if err := store.Stacks.Update(c.Tx, s); err != nil {
		return err
	}
	if s.Default && req.State.Set {
		c.Warn("Changing state on the default stack '%s' may affect new application deployments.", s.Name)
	}
	return event(c, "update", s, c.Request(c.Asked))
}

// Delete deletes a stack that no app uses, with its root filesystem.
func Delete(c *control.Session, s *cf.Stack) error {
	users, err := c.Tx.StackUsers(s.Name)
	if err != nil {
		return err
	}
	if len(users) > 0 { // who they are GET …/apps tells
		return cf.Unprocessable("Cannot delete stack '%s' because apps are currently using the stack.", s.Name)
	}
	if c.Platform.Stacks != nil {
		if err := removeRoot(c, s.Name); err != nil {
			return err
		}
	}
	if err := store.Stacks.Delete(c.Tx, s.GUID); err != nil {
		return err
	}
	return event(c, "delete", s, nil)
}

// event records an event of a stack.
func event(c *control.Session, what string, s *cf.Stack, data audit.Data) error {
	return c.Audit(audit.Of("stack", what), audit.Target{Type: "stack", GUID: s.GUID, Name: s.Name}, data)
}

// removeRoot takes away the root filesystem of a stack that no app uses: with the
// row alone, the next start of the daemon would have the stack back.
func removeRoot(c *control.Session, stack string) error {
	others, err := c.Platform.Stacks.Users(c.Tx, stack)
	if err != nil {
		return err
	}
	if len(others) > 0 {
		return cf.Unprocessable("Cannot delete stack '%s' because it is used through the BBS API: %s.", stack, strings.Join(others, ", "))
	}
	if err := c.Platform.Stacks.Remove(stack); err != nil {
		return cf.Unprocessable("Cannot delete stack '%s': %s.", stack, err)
	}
	c.Then(c.Platform.Stacks.Offer)
	return nil
}
