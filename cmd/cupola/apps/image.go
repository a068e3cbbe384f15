package apps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"cupola/cmd/cupola/command"
	"cupola/rootfs/reference"
	"cupola/rootfs/registry"
	"cupola/server/admin/steps"
	"cupola/server/api"
	"cupola/server/bosh/manifest"
	"cupola/server/images"
	"cupola/store/cf"
)

// pushFlags say to which registry an app's image is pushed.
type pushFlags struct {
	Registry      string `help:"Build an image from the app's droplet and its stack, and push it to PREFIX/APP, tagged with the droplet's GUID." placeholder:"PREFIX" xor:"image"`
	RegistryUser  string `help:"Registry user; by default docker's or podman's credentials for the registry are used." name:"registry-username" env:"CUPOLA_REGISTRY_USERNAME" placeholder:"USER"`
	PasswordStdin bool   `help:"Read the registry password from standard input; by default it is read from CUPOLA_REGISTRY_PASSWORD or CF_DOCKER_PASSWORD." name:"registry-password-stdin"`
	images.Trust
}

// maxPassword bounds what standard input has for a password, in bytes: tokens are long.
const maxPassword = 64 << 10

func (f *pushFlags) auth(in io.Reader) (registry.Auth, error) {
	a := registry.Auth{Username: f.RegistryUser}
	if a.Username == "" && f.PasswordStdin {
		return a, errors.New("--registry-password-stdin requires --registry-username")
	}
	if a.Username == "" {
		return a, nil
	}
	if f.PasswordStdin {
		text, err := io.ReadAll(io.LimitReader(in, maxPassword))
		if err != nil {
			return a, fmt.Errorf("read the registry's password: %w", err)
		}
		a.Password = strings.TrimRight(string(text), "\r\n")
	}
	for _, name := range []string{"CUPOLA_REGISTRY_PASSWORD", "CF_DOCKER_PASSWORD"} {
		if a.Password == "" {
			a.Password = os.Getenv(name)
		}
	}
	if a.Password == "" {
		return a, fmt.Errorf("no password for registry user %s: set CUPOLA_REGISTRY_PASSWORD, or give --registry-password-stdin", a.Username)
	}
	return a, nil
}

// to is where the image of an app's droplet goes.
func (f *pushFlags) to(app, droplet string) (reference.Reference, error) {
	r, err := reference.Parse("docker://" + strings.Trim(f.Registry, "/") + "/" + manifest.Sanitize(app) + ":" + droplet)
	if err != nil {
		return r, fmt.Errorf("--registry: %w", err)
	}
	return r, nil
}

// push makes an image of the app's droplet and pushes it, where it is asked for and the app is none itself.
func (f *pushFlags) push(e *command.Env, r *appReader) error {
	if f.Registry == "" {
		return nil
	}
	if r.droplet.Image != "" {
		fmt.Fprintf(e.Err, "warning /image: app %s already runs an image, %s: nothing to push\n", r.app.Name, r.droplet.Image)
		return nil
	}
	to, err := f.to(r.app.Name, r.droplet.GUID)
	if err != nil {
		return err
	}
	auth, err := f.auth(os.Stdin)
	if err != nil {
		return err
	}
	registries, err := f.Trust.Open()
	if err != nil {
		return err
	}
	p := command.NewProgress(&command.Env{Out: e.Err, Terminal: command.IsTerminal(e.Err)})
	defer p.Clear()
	image, sidecars, err := r.pack(e.Ctx, p.Step)
	if err != nil {
		return err
	}
	layers := r.imagesPath() + "/" + image.Digest + "/layers/"
	ref, err := registries.Push(e.Ctx, registry.Push{Image: image, To: to, Auth: auth,
		Open: func(ctx context.Context, layer string) (io.ReadCloser, error) {
			return r.ask(ctx, http.MethodGet, layers+layer)
		},
		Progress: func(done, total int64) { p.Step(steps.Step{Step: "push", Done: done, Total: total}) }})
	if err != nil {
		return err
	}
	p.Clear()
	r.app.Image, r.app.Launcher = strings.TrimPrefix(ref.String(), "docker://"), true
	fmt.Fprintf(e.Err, "Pushed %s:%s.\n", r.app.Image, to.Tag)
	r.addSidecars(sidecars)
	return nil
}

func (r *appReader) imagesPath() string { return "/v1/droplets/" + r.droplet.GUID + "/images" }

// pack asks the daemon to build the image, and returns it with the droplet's sidecars.
func (r *appReader) pack(ctx context.Context, step func(steps.Step)) (image registry.Image, sidecars []cf.Sidecar, err error) {
	res, err := r.ask(ctx, http.MethodPost, r.imagesPath())
	if err != nil {
		return image, nil, fmt.Errorf("build an image from the app's droplet: %w", err)
	}
	defer res.Close()
	for lines := json.NewDecoder(res); ; {
		var l api.PackLine
		if err := lines.Decode(&l); err != nil {
			return image, nil, fmt.Errorf("build an image from the app's droplet: the daemon stopped: %w", err)
		}
		switch {
		case l.Step != nil:
			step(steps.Step{Step: "pack", Detail: command.Printable(l.Step.What), Done: l.Step.Done, Total: l.Step.Total})
		case l.Image != nil:
			return image, l.Sidecars, json.Unmarshal(l.Image, &image)
		default:
			return image, nil, errors.New(l.Error)
		}
	}
}

// ask makes a request whose answer takes its time.
func (r *appReader) ask(ctx context.Context, method, path string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.URL(path), nil)
	if err != nil {
		return nil, err
	}
	res, err := r.Send(req)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// addSidecars adds those of a droplet to the processes that have none of their names.
func (r *appReader) addSidecars(all []cf.Sidecar) {
	for i := range r.app.Processes {
		p := &r.app.Processes[i]
		for _, s := range all {
			if slices.Contains(s.ProcessTypes, p.Type) && !slices.ContainsFunc(p.Sidecars, func(have cf.Sidecar) bool { return have.Name == s.Name }) {
				p.Sidecars = append(p.Sidecars, s)
			}
		}
	}
}
