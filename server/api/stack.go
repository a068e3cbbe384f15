package api

import (
	"net/url"
	"strings"

	"cupola/server/control"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

func viewStack(c *call, s *cf.Stack) doc {
	return with(resource(s.Resource), doc{
		"name": s.Name, "description": s.Description, "state": s.State, "state_reason": control.OrNil(s.StateReason), "default": s.Default,
		"build_rootfs_image": s.Name, "run_rootfs_image": s.Name, "metadata": metadata(s.Metadata),
		"links": doc{"self": c.link("/v3/stacks/%s", s.GUID)},
	})
}

func (c *call) stackNamed(name string) (*cf.Stack, error) {
	s, err := store.Stacks.First(c.Tx, store.Query{Where: map[string][]string{"names": {name}}})
	return s, control.Unprocessable(err, "Stack must be an existing stack")
}

func (c *call) checkBuildpack(name, stack string) error {
	if isURL(name) {
		return nil
	}
	found, err := store.Buildpacks.By(c.Tx, "names", name)
	if err != nil {
		return err
	}
	for _, b := range found {
		if b.Stack == "" || stack == "" || b.Stack == stack {
			return nil
		}
	}
	if stack == "" {
		return cf.Unprocessable(`Buildpack "%s" must be an existing admin buildpack or a valid git URI`, name)
	}
	return cf.Unprocessable(`Buildpack "%s" for stack "%s" must be an existing admin buildpack or a valid git URI`, name, stack)
}

// isURL tells whether a buildpack is named by a URL: of a zip, or of a git
// repository.
func isURL(name string) bool {
	u, err := url.Parse(name)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https" || u.Scheme == "git") || strings.HasPrefix(name, "git@")
}

// stackStages refuses to stage on a stack that is shut for it, and warns of one
// that will be (RFC-0045). fresh is what was never built: it is let onto fewer.
func (c *call) stackStages(name string, fresh bool) error {
	if name == "" {
		return nil
	}
	s, err := c.stackNamed(name)
	if desire.IsImage(name) && control.IsKind(err, cf.UnprocessableEntity) {
		return c.Feature(customStacks)
	}
	if err != nil {
		return err
	}
	reason := ""
	if s.StateReason != "" {
		reason = " " + s.StateReason
	}
	switch {
	case s.State == "DISABLED", s.State == "RESTRICTED" && fresh:
		return cf.Errorf(cf.StackInvalid, "ERROR: Staging failed. The stack '%s' is '%s' and cannot be used for staging.%s", s.Name, s.State, reason)
	case s.State != "ACTIVE":
		c.Warn("WARNING: The stack '%s' is '%s' and will be removed in the future.%s", s.Name, s.State, reason)
	}
	return nil
}

// warnOfStack tells who builds on a stack that does not suit this machine. Of an
// image its pull tells.
func (c *call) warnOfStack(app *cf.App, stack string) {
	if c.Platform.StackWarning == nil || desire.IsImage(stack) {
		return
	}
	if w := c.Platform.StackWarning(stack); w != "" {
		c.Warn("WARNING: The stack '%s' may not work here: %s", stack, w)
		c.Note(app, "WARNING: The stack '%s' may not work here: %s", stack, w)
	}
}

// stackServes is stackStages for an app that is made or changed, of which it is
// a 422 like any other.
func (c *call) stackServes(name string, fresh bool) error {
	err := c.stackStages(name, fresh)
	if control.IsKind(err, cf.StackInvalid) {
		err = cf.Unprocessable("%s", err)
	}
	return err
}

// fresh tells whether an app was never built.
func (c *call) fresh(app *cf.App) (bool, error) {
	n, err := store.Builds.Count(c.Tx, store.Query{Where: map[string][]string{"app_guids": {app.GUID}}})
	return n == 0, err
}
