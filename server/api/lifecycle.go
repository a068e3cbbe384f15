package api

import (
	"strings"

	"cupola/rootfs/reference"
	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// redacted is what Cloud Controller shows of credentials.
const redacted = "***"

func viewLifecycle(l cf.Lifecycle, have cf.Credentials) doc {
	if l.Type == cf.LifecycleDocker {
		return doc{"type": l.Type, "data": doc{}}
	}
	buildpacks := []string{}
	for _, b := range l.Buildpacks {
		buildpacks = append(buildpacks, desire.Redact(b))
	}
	data := doc{"buildpacks": buildpacks, "stack": control.OrNil(l.Stack)}
	if len(have) > 0 {
		data["credentials"] = redacted
	}
	return doc{"type": l.Type, "data": data}
}

// lifecycleRequest is a lifecycle as clients write it: RFC-0046 has the
// credentials beside data, Cloud Controller in it.
type lifecycleRequest struct {
	Type string `json:"type"`
	Data struct {
		Buildpacks  change.Field[[]string]       `json:"buildpacks"`
		Stack       change.Field[string]         `json:"stack"`
		Credentials change.Field[map[string]any] `json:"credentials"`
	} `json:"data"`
	Credentials change.Field[map[string]any] `json:"credentials"`
}

// credentials are those of a request, if it has any.
func (r *lifecycleRequest) credentials() (change.Field[map[string]any], error) {
	if r.Credentials.Set && r.Data.Credentials.Set {
		return change.Field[map[string]any]{}, cf.Unprocessable("Credentials can stand beside 'data' or in it, not both")
	}
	if r.Credentials.Set {
		return r.Credentials, nil
	}
	return r.Data.Credentials, nil
}

// readCredentials reads credentials, each a user with a password or a token.
func readCredentials(raw map[string]any) (cf.Credentials, error) {
	found := cf.Credentials{}
	for host, v := range raw {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, cf.Unprocessable("Credentials for registry '%s' must be a hash", host)
		}
		text := func(key string) string { s, _ := m[key].(string); return s }
		have := cf.Credential{Username: text("username"), Password: text("password"), Token: text("token")}
		if have.Token == "" && (have.Username == "" || have.Password == "") || (have.Username == "") != (have.Password == "") {
			return nil, cf.Unprocessable("Credentials for registry '%s' must include 'username' and 'password'", host)
		}
		found[host] = have
	}
	return found, nil
}

// applyLifecycle changes a lifecycle and its credentials as a request says.
func (c *call) applyLifecycle(l *cf.Lifecycle, have *cf.Credentials, req *lifecycleRequest) error {
	if req == nil {
		return nil
	}
	switch req.Type {
	case "", l.Type:
	case cf.LifecycleBuildpack, cf.LifecycleDocker:
		return cf.Unprocessable("Lifecycle type cannot be changed")
	default:
		return cf.Unprocessable("Lifecycle type is not included in list: buildpack, docker")
	}
	if l.Type == cf.LifecycleDocker {
		return c.Feature(dockerLifecycle)
	}
	if req.Data.Buildpacks.Set {
		l.Buildpacks = req.Data.Buildpacks.V
	}
	if req.Data.Stack.Set {
		l.Stack = req.Data.Stack.V
	}
	given, err := req.credentials()
	if err != nil {
		return err
	}
	if given.Set {
		if *have, err = readCredentials(given.V); err != nil {
			return err
		}
	}
	return c.checkLifecycle(*l)
}

// changeLifecycle is applyLifecycle for an app that is there.
func (c *call) changeLifecycle(app *cf.App, req *lifecycleRequest) error {
	if err := c.applyLifecycle(&app.Lifecycle, &app.Credentials, req); err != nil || req == nil || !req.Data.Stack.Set {
		return err
	}
	fresh, err := c.fresh(app)
	if err != nil {
		return err
	}
	return c.stackServes(app.Lifecycle.Stack, fresh)
}

// checkLifecycle says in Cloud Controller's words what of a lifecycle does not
// exist.
func (c *call) checkLifecycle(l cf.Lifecycle) error {
	if l.Stack != "" {
		if err := c.checkStack(l); err != nil {
			return err
		}
	}
	for _, b := range l.Buildpacks {
		if err := c.checkBuildpack(b, l.Stack); err != nil {
			return err
		}
	}
	return nil
}

// checkStack takes the name of a stack and, where that is allowed, an image.
func (c *call) checkStack(l cf.Lifecycle) error {
	_, err := c.stackNamed(l.Stack)
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
	return c.checkAnyBuildpack(l.Stack)
}

// customStacks is the feature flag of RFC-0046.
const customStacks = "diego_custom_stacks"

// dockerLifecycle is Cloud Controller's flag for apps that are images.
const dockerLifecycle = "diego_docker"

// imageAllowed refuses what would run on an image while that is not allowed.
func (c *call) imageAllowed(l cf.Lifecycle) error {
	switch {
	case l.Type == cf.LifecycleDocker:
		return c.Feature(dockerLifecycle)
	case desire.IsImage(l.Stack):
		return c.Feature(customStacks)
	}
	return nil
}

// checkAnyBuildpack refuses a stack on which no admin buildpack runs.
func (c *call) checkAnyBuildpack(stack string) error {
	all, err := store.Buildpacks.All(c.Tx)
	if err != nil {
		return err
	}
	var names []string
	for _, b := range all {
		if b.Stack == "" && b.Enabled {
			return nil
		}
		names = append(names, b.Name)
	}
	return cf.Unprocessable(`Buildpack for stack "%s" must be an existing admin buildpack or a valid git URI: none of %s is for any stack, so name one by its URL`,
		stack, strings.Join(names, ", "))
}
