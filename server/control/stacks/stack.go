package stacks

import (
	"strings"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/store/cf"
)

// Event records an event of a stack.
func Event(c *control.Session, what string, s *cf.Stack) error {
	return c.Audit(audit.Of("stack", what), audit.Target{Type: "stack", GUID: s.GUID, Name: s.Name}, nil)
}

// RemoveRoot takes away the root filesystem of a stack that no app uses: with the
// row alone, the next start of the daemon would have the stack back.
func RemoveRoot(c *control.Session, stack string) error {
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
