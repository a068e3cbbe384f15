package apps

import (
	"fmt"
	"strings"

	"cupola/rootfs/reference"
	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// Lifecycle is a lifecycle as clients write it: RFC-0046 has the
// credentials next to data, Cloud Controller in it.
type Lifecycle struct {
	Type string `json:"type"`
	Data struct {
		Buildpacks  change.Field[[]string]       `json:"buildpacks"`
		Stack       change.Field[string]         `json:"stack"`
		Credentials change.Field[map[string]any] `json:"credentials"`
	} `json:"data"`
	Credentials change.Field[map[string]any] `json:"credentials"`
}

// readCredentials sets the credentials that a request has, if it has any: each is
// a user with a password or a token.
func (r *Lifecycle) readCredentials(have *cf.Credentials) error {
	given := r.Credentials
	if given.Set && r.Data.Credentials.Set {
		return cf.Unprocessable("Credentials can stand beside 'data' or in it, not both")
	}
	if !given.Set {
		given = r.Data.Credentials
	}
	if !given.Set {
		return nil
	}
	*have = cf.Credentials{}
	for host, v := range given.V {
		m, ok := v.(map[string]any)
		if !ok {
			return cf.Unprocessable("Credentials for registry '%s' must be a hash", host)
		}
		text := func(key string) string { s, _ := m[key].(string); return s }
		found := cf.Credential{Username: text("username"), Password: text("password"), Token: text("token")}
		if found.Token == "" && (found.Username == "" || found.Password == "") || (found.Username == "") != (found.Password == "") {
			return cf.Unprocessable("Credentials for registry '%s' must include 'username' and 'password'", host)
		}
		(*have)[host] = found
	}
	return nil
}

// CheckCredentials says what is wrong with the credentials that a request has.
func (r *Lifecycle) CheckCredentials() error { return r.readCredentials(&cf.Credentials{}) }

// firstLifecycle sets the lifecycle of a new app: its type, and a stack if it is
// staged.
func firstLifecycle(c *control.Session, app *cf.App, req *Lifecycle) error {
	app.Lifecycle = cf.Lifecycle{Type: typeOf(req)}
	if app.Lifecycle.Type == cf.LifecycleCNB {
		if err := c.Feature(cnbLifecycle); err != nil {
			return err
		}
	}
	if err := applyLifecycle(c, &app.Lifecycle, &app.Credentials, req); err != nil {
		return err
	}
	if err := defaultStack(c, app); err != nil {
		return err
	}
	return stackServes(c, app.Lifecycle.Stack, true)
}

// typeOf is the type of lifecycle that a request for an app asks for.
func typeOf(req *Lifecycle) string {
	if req != nil && (req.Type == cf.LifecycleDocker || req.Type == cf.LifecycleCNB) {
		return req.Type
	}
	return cf.LifecycleBuildpack
}

// skeletonLifecycle is firstLifecycle for an app of a manifest, whose job finds what of
// the lifecycle does not exist (CC: AppFindOrCreateSkeleton, which does not ask whether
// the lifecycle is valid). That a stack is disabled is found at once.
func skeletonLifecycle(c *control.Session, app *cf.App, req *Lifecycle) error {
	if req == nil || req.Type == cf.LifecycleDocker || desire.IsImage(req.Data.Stack.V) {
		return firstLifecycle(c, app, req)
	}
	app.Lifecycle = cf.Lifecycle{Type: typeOf(req)}
	if err := setLifecycle(c, &app.Lifecycle, &app.Credentials, req); err != nil {
		return err
	}
	if err := defaultStack(c, app); err != nil {
		return err
	}
	_, err := StackNamed(c, app.Lifecycle.Stack)
	switch {
	case control.IsKind(err, cf.UnprocessableEntity):
		return nil
	case err != nil:
		return err
	}
	return stackServes(c, app.Lifecycle.Stack, true)
}

// defaultStack gives an app that is staged the default stack, if it has none.
func defaultStack(c *control.Session, app *cf.App) error {
	if app.Lifecycle.Type == cf.LifecycleDocker || app.Lifecycle.Stack != "" {
		return nil
	}
	stack, err := store.Stacks.First(c.Tx, store.Query{Where: map[string][]string{"default": {"true"}}})
	if err != nil {
		return err
	}
	app.Lifecycle.Stack = stack.Name
	return nil
}

// applyLifecycle changes a lifecycle and its credentials as a request says.
func applyLifecycle(c *control.Session, l *cf.Lifecycle, have *cf.Credentials, req *Lifecycle) error {
	if err := setLifecycle(c, l, have, req); err != nil || req == nil || l.Type == cf.LifecycleDocker {
		return err
	}
	return checkLifecycle(c, *l)
}

// setLifecycle is applyLifecycle without a look at whether what it names exists.
func setLifecycle(c *control.Session, l *cf.Lifecycle, have *cf.Credentials, req *Lifecycle) error {
	if req == nil {
		return nil
	}
	switch req.Type {
	case "", l.Type:
	case cf.LifecycleBuildpack, cf.LifecycleDocker, cf.LifecycleCNB:
		return cf.Unprocessable("Lifecycle type cannot be changed from %s to %s", l.Type, req.Type)
	default:
		return cf.Unprocessable("Lifecycle type is not included in the list: buildpack, docker, cnb")
	}
	if l.Type == cf.LifecycleDocker {
		return c.Feature(DockerLifecycle)
	}
	if req.Data.Buildpacks.Set {
		l.Buildpacks = req.Data.Buildpacks.V
	}
	if req.Data.Stack.Set {
		l.Stack = req.Data.Stack.V
	}
	return req.readCredentials(have)
}

// ChangeLifecycle is applyLifecycle for an app that is there. A stack that does not exist
// matters only to a request that names it.
func ChangeLifecycle(c *control.Session, app *cf.App, req *Lifecycle) error {
	if err := setLifecycle(c, &app.Lifecycle, &app.Credentials, req); err != nil || req == nil || app.Lifecycle.Type == cf.LifecycleDocker {
		return err
	}
	checked := app.Lifecycle
	if !req.Data.Stack.Set && !desire.IsImage(checked.Stack) {
		_, err := StackNamed(c, checked.Stack)
		switch {
		case control.IsKind(err, cf.UnprocessableEntity):
			checked.Stack = ""
		case err != nil:
			return err
		}
	}
	if err := checkLifecycle(c, checked); err != nil || !req.Data.Stack.Set {
		return err
	}
	fresh, err := neverBuilt(c, app)
	if err != nil {
		return err
	}
	return stackServes(c, app.Lifecycle.Stack, fresh)
}

// checkLifecycle says in Cloud Controller's words what of a lifecycle does not
// exist.
// Of several faults it names all, those of the buildpacks first
// (BuildpackLifecycleDataValidator).
func checkLifecycle(c *control.Session, l cf.Lifecycle) error {
	var ofStack, faults []string
	stack := l.Stack
	if stack != "" {
		err := checkStack(c, l)
		if err != nil && !control.IsKind(err, cf.UnprocessableEntity) {
			return err
		}
		if err != nil {
			ofStack, stack = []string{err.Error()}, ""
		}
	}
	for _, b := range l.Buildpacks {
		err := checkBuildpack(c, l.Type, b, stack)
		if err != nil && !control.IsKind(err, cf.UnprocessableEntity) {
			return err
		}
		if err != nil {
			faults = append(faults, err.Error())
		}
	}
	return control.Invalid(append(faults, ofStack...))
}

// checkStack takes the name of a stack and, where that is allowed, an image.
func checkStack(c *control.Session, l cf.Lifecycle) error {
	_, err := StackNamed(c, l.Stack)
	if !control.IsKind(err, cf.UnprocessableEntity) {
		return err
	}
	if !desire.IsImage(l.Stack) {
		return cf.Unprocessable("Stack must be an existing stack, or an image: docker://host[:port]/namespace/name[:tag|@digest]")
	}
	if _, err := reference.Parse(l.Stack); err != nil {
		return cf.Unprocessable("Stack must be an existing stack, or an image: %s", err)
	}
	if err := c.Feature(customStacks); err != nil {
		return err
	}
	if len(l.Buildpacks) > 0 {
		return nil
	}
	return checkAnyBuildpack(c, l)
}

// customStacks is the feature flag of RFC-0046.
const customStacks = "diego_custom_stacks"

// cnbLifecycle is Cloud Controller's flag for apps of Cloud Native Buildpacks.
const cnbLifecycle = "diego_cnb"

// DockerLifecycle is Cloud Controller's flag for apps that are images.
const DockerLifecycle = "diego_docker"

// lifecycleAllowed refuses apps on images, and those of Cloud Native Buildpacks, while
// that is not allowed.
func lifecycleAllowed(c *control.Session, l cf.Lifecycle) error {
	if l.Type == cf.LifecycleCNB {
		if err := c.Feature(cnbLifecycle); err != nil {
			return err
		}
	}
	switch {
	case l.Type == cf.LifecycleDocker:
		return c.Feature(DockerLifecycle)
	case desire.IsImage(l.Stack):
		return c.Feature(customStacks)
	}
	return nil
}

// checkAnyBuildpack refuses a stack on which no admin buildpack can be used, and
// says of each why.
func checkAnyBuildpack(c *control.Session, l cf.Lifecycle) error {
	all, err := store.Buildpacks.All(c.Tx)
	if err != nil {
		return err
	}
	why := []string{"there is none"}
	for i, b := range all {
		reason := unusable(b, l.Type)
		if reason == "" {
			return nil
		}
		why = append(why[:i], b.Name+" "+reason)
	}
	return cf.Unprocessable(`Buildpack for stack "%s" must be an existing admin buildpack or a valid git URI: %s; name one by its URL`, l.Stack, strings.Join(why, ", "))
}

// unusable says why a buildpack cannot stage on just any stack; "" if it can.
func unusable(b *cf.Buildpack, lifecycle string) string {
	switch {
	case b.Stack != "":
		return fmt.Sprintf("is for stack %q", b.Stack)
	case b.Lifecycle == cf.LifecycleCNB && lifecycle != cf.LifecycleCNB:
		return "is a Cloud Native Buildpack"
	case b.Lifecycle != cf.LifecycleCNB && lifecycle == cf.LifecycleCNB:
		return "is not a Cloud Native Buildpack"
	case !b.Enabled:
		return "is disabled"
	case b.Digest == "":
		return "has no bits"
	}
	return ""
}

// StackNamed is the stack of a name.
func StackNamed(c *control.Session, name string) (*cf.Stack, error) {
	s, err := store.Stacks.First(c.Tx, store.Query{Where: map[string][]string{"names": {name}}})
	return s, control.Unprocessable(err, "Stack must be an existing stack")
}

// checkBuildpack refuses a buildpack that does not exist. A URL that is none of Cloud Native Buildpacks'
// passes Cloud Controller's first check and is refused by its second (BuildpackInfo,
// CNBLifecycleDataModel).
func checkBuildpack(c *control.Session, lifecycle, name, stack string) error {
	if desire.IsBuildpackURLFor(lifecycle, name) {
		return nil
	}
	if desire.IsBuildpackURL(name) {
		return cf.Unprocessable("Specified unknown buildpack name: %q", name)
	}
	found, err := store.Buildpacks.By(c.Tx, "names", name)
	if err != nil {
		return err
	}
	for _, b := range found {
		if b.Digest != "" && (b.Lifecycle == cf.LifecycleCNB) == (lifecycle == cf.LifecycleCNB) && (b.Stack == "" || stack == "" || b.Stack == stack) { // CC: Buildpack.list_admin_buildpacks
			return nil
		}
	}
	if stack == "" {
		return cf.Unprocessable(`Buildpack "%s" must be an existing admin buildpack or a valid git URI`, name)
	}
	return cf.Unprocessable(`Buildpack "%s" for stack "%s" must be an existing admin buildpack or a valid git URI`, name, stack)
}

// stackStages refuses to stage on a stack that is locked or disabled, and warns of one
// that will be (RFC-0045). fresh apps, which were never built, may use fewer stacks.
func stackStages(c *control.Session, name string, fresh bool) error {
	if name == "" {
		return nil
	}
	s, err := StackNamed(c, name)
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

// warnOfStack warns of a stack that does not suit this machine. For an image, the pull
// warns.
func warnOfStack(c *control.Session, app *cf.App, stack string) {
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
func stackServes(c *control.Session, name string, fresh bool) error {
	err := stackStages(c, name, fresh)
	if control.IsKind(err, cf.StackInvalid) {
		err = cf.Unprocessable("%s", err)
	}
	return err
}

// neverBuilt reports whether an app was never built.
func neverBuilt(c *control.Session, app *cf.App) (bool, error) {
	n, err := store.Builds.Count(c.Tx, store.Query{Where: map[string][]string{"app_guids": {app.GUID}}})
	return n == 0, err
}
