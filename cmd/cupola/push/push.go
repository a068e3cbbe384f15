// Package push pushes an app from source, without the cf CLI, and prepares git to push one.
package push

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/cmd/cupola/why"
	"cupola/server/crash"
	"cupola/server/manifest"
)

// Cmd is cupola push.
type Cmd struct {
	capi.Flags
	Dir       string   `arg:"" optional:"" help:"The app's directory." default:"." type:"existingdir"`
	Org       string   `help:"The org." default:"cupola" short:"o"`
	Space     string   `help:"The space." default:"dev" short:"s"`
	Name      string   `help:"The app's name; by default the manifest's, or the directory's." short:"n"`
	Buildpack []string `help:"A buildpack, by name or URL; may be repeated." short:"b"`
	Stack     string   `help:"The stack."`
}

// Run pushes.
func (p *Cmd) Run(e *command.Env) error {
	c, err := p.Login(e.Ctx)
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(p.Dir)
	if err != nil {
		return err
	}
	name := p.Name
	if name == "" {
		name = filepath.Base(dir)
	}
	app := App{Name: name, named: p.Name != "", Files: os.DirFS(dir), buildpacks: p.Buildpack, stack: p.Stack}
	started := time.Now()
	url, err := (&Pusher{Client: c, Show: command.NewReport(e)}).Push(e.Ctx, p.Org, p.Space, app)
	if err != nil {
		return mended(err)
	}
	fmt.Fprintf(e.Out, "\n  %s   (%.1f s)\n", url, time.Since(started).Seconds())
	return nil
}

// mended adds to what the API refused how to mend it.
func mended(err error) error {
	if mend := crash.Mend(err.Error()); mend != "" {
		return fmt.Errorf("%w\n  To mend it: %s", err, mend)
	}
	return err
}

// App is what is pushed.
type App struct {
	Name       string
	named      bool // on the command line: it wins over the manifest's
	Files      fs.FS
	buildpacks []string
	stack      string
}

// manifest is the manifest to apply: that of the app's directory, if it has
// one, with what the command line says instead. Files become those of its path.
func (a *App) manifest() ([]byte, error) {
	m := struct {
		Applications []capi.Doc `yaml:"applications"`
	}{Applications: []capi.Doc{{}}}
	text, err := fs.ReadFile(a.Files, "manifest.yml")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := manifest.Decode(text, &m); err != nil {
		return nil, fmt.Errorf("manifest.yml: %w", err)
	}
	if len(m.Applications) != 1 {
		return nil, fmt.Errorf("manifest.yml has %d applications: cupola push accepts one; use cf push", len(m.Applications))
	}
	one := m.Applications[0]
	if name, ok := one["name"].(string); ok && !a.named {
		a.Name = name
	}
	one["name"] = a.Name
	if dir, ok := one["path"].(string); ok {
		if a.Files, err = below(a.Files, dir); err != nil {
			return nil, err
		}
	}
	if len(a.buildpacks) > 0 {
		one["buildpacks"] = a.buildpacks
	}
	if a.stack != "" {
		one["stack"] = a.stack
	}
	if one["no-route"] == nil && one["routes"] == nil && one["random-route"] == nil {
		one["default-route"] = true
	}
	return yaml.Marshal(m)
}

// below is the directory of an app's files, by the manifest's path.
func below(files fs.FS, dir string) (fs.FS, error) {
	dir = path.Clean(dir)
	if !fs.ValidPath(dir) {
		return nil, fmt.Errorf("path %q of manifest.yml leads out of the pushed directory: use cf push", dir)
	}
	switch info, err := fs.Stat(files, dir); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("path %q of manifest.yml does not exist: build the app first, or correct it", dir)
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("path %q of manifest.yml is a file: cupola push accepts a directory; use cf push", dir)
	}
	return fs.Sub(files, dir)
}

// Pusher pushes an app by the calls that cf push makes.
type Pusher struct {
	Client *capi.Client
	Show   *command.Report
}

// Push gives the app's URL when an instance of it runs.
func (p *Pusher) Push(ctx context.Context, org, space string, a App) (string, error) {
	text, err := a.manifest()
	if err != nil {
		return "", err
	}
	p.Show.Title("Pushing %s to %s / %s", a.Name, org, space)
	spaceGUID, err := p.target(ctx, org, space)
	if err != nil {
		return "", err
	}
	if err := p.Client.ApplyManifest(ctx, spaceGUID, text); err != nil {
		return "", err
	}
	appGUID, err := p.Client.First(ctx, "app "+a.Name, "/v3/apps?"+url.Values{"names": {capi.Exact(a.Name)}, "space_guids": {spaceGUID}}.Encode())
	if err != nil {
		return "", err
	}
	pkg, err := p.upload(ctx, appGUID, a.Files)
	if err != nil {
		return "", err
	}
	droplet, err := p.stage(ctx, appGUID, pkg)
	if err != nil {
		return "", err
	}
	if err := p.start(ctx, appGUID, droplet); err != nil {
		return "", err
	}
	return p.address(ctx, appGUID)
}

func (p *Pusher) target(ctx context.Context, org, space string) (string, error) {
	orgGUID, err := p.Client.First(ctx, "org "+org, "/v3/organizations?"+capi.Filter("names", org))
	if err != nil {
		return "", err
	}
	return p.Client.First(ctx, "space "+space, "/v3/spaces?"+url.Values{"names": {capi.Exact(space)}, "organization_guids": {orgGUID}}.Encode())
}

// upload makes a package of the files and gives its GUID.
func (p *Pusher) upload(ctx context.Context, app string, files fs.FS) (string, error) {
	f, err := os.CreateTemp("", "cupola-push-*.zip")
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil { // now, so that nothing is left when the command is killed
		return "", err
	}
	n, err := zipApp(f, files)
	if err != nil {
		return "", err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return "", err
	}
	p.Show.Step("files", "%d, %s packed", n, command.BytesText(size))
	var pkg struct{ GUID string }
	if err := p.Client.Call(ctx, "POST", "/v3/packages", capi.Doc{"type": "bits", "relationships": capi.Doc{"app": capi.ToOne(app)}}, &pkg); err != nil {
		return "", err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	return pkg.GUID, p.Send(ctx, "/v3/packages/"+pkg.GUID, "package.zip", f, size)
}

// Send uploads a file as what a package or droplet at a path has, and shows how far it is.
func (p *Pusher) Send(ctx context.Context, path, name string, f io.Reader, size int64) error {
	r, w := io.Pipe()
	form := multipart.NewWriter(w)
	go func() {
		w.CloseWithError(func() error {
			if err := form.WriteField("resources", "[]"); err != nil {
				return err
			}
			part, err := form.CreateFormFile("bits", name)
			if err != nil {
				return err
			}
			if _, err := io.Copy(part, p.Show.Reader("uploading", f, size)); err != nil {
				return err
			}
			return form.Close()
		}())
	}()
	req, err := http.NewRequestWithContext(ctx, "POST", p.Client.URL(path+"/upload"), r)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	err = p.Client.Do(req, nil)
	p.Show.End()
	return err
}

// stage makes a droplet of a package, and shows the log of it.
func (p *Pusher) stage(ctx context.Context, app, pkg string) (string, error) {
	p.Show.Step("staging", "")
	log := p.follow(ctx, app, time.Now())
	droplet, err := capi.Stage(ctx, p.Client, pkg)
	log.stop()
	if err != nil {
		p.explain(ctx, app)
	}
	return droplet, err
}

// start runs the app on a droplet, and waits for an instance.
func (p *Pusher) start(ctx context.Context, app, droplet string) error {
	if err := p.Client.Call(ctx, "PATCH", "/v3/apps/"+app+"/relationships/current_droplet", capi.ToOne(droplet), nil); err != nil {
		return err
	}
	log := p.follow(ctx, app, time.Now())
	log.quiet = true
	defer log.stop()
	if err := p.Client.Call(ctx, "POST", "/v3/apps/"+app+"/actions/restart", nil, nil); err != nil {
		return err
	}
	for {
		states, err := p.states(ctx, app)
		if err != nil {
			return err
		}
		switch n := len(states); {
		case n == 0 || states["RUNNING"] > 0:
			p.Show.Step("running", "%d of %d", states["RUNNING"], sum(states))
			return nil
		case states["CRASHED"] == sum(states):
			log.tell(p.Show)
			p.explain(ctx, app)
			return errors.New("the app crashed while starting: see above")
		}
		if err := capi.Pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// explain shows why the app does not run, as cupola app why does.
func (p *Pusher) explain(ctx context.Context, app string) {
	lines, err := why.Explain(ctx, p.Client, "/v3/apps/"+app)
	if err != nil {
		return // the push failed before this
	}
	for _, l := range lines {
		p.Show.Line(l)
	}
}

func sum(m map[string]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}

func (p *Pusher) states(ctx context.Context, app string) (map[string]int, error) {
	var stats struct {
		Resources []struct {
			State   string
			Details string
		}
	}
	if err := p.Client.Call(ctx, "GET", "/v3/apps/"+app+"/processes/web/stats", nil, &stats); err != nil {
		return nil, err
	}
	states := map[string]int{}
	for _, r := range stats.Resources {
		if r.Details != "" && r.State == "DOWN" {
			return nil, fmt.Errorf("an instance cannot be placed: %s", r.Details)
		}
		states[r.State]++
	}
	return states, nil
}

// address is the URL of the app's first route, on the port of the API.
func (p *Pusher) address(ctx context.Context, app string) (string, error) {
	var routes struct{ Resources []struct{ URL string } }
	if err := p.Client.Call(ctx, "GET", "/v3/apps/"+app+"/routes", nil, &routes); err != nil || len(routes.Resources) == 0 {
		return "", err
	}
	base, err := url.Parse(p.Client.API)
	if err != nil {
		return "", err
	}
	host, path, _ := splitURL(routes.Resources[0].URL)
	if port := base.Port(); port != "" {
		host += ":" + port
	}
	return base.Scheme + "://" + host + path, nil
}

// splitURL splits a route's URL, which has no scheme, into host and path.
func splitURL(s string) (host, path string, ok bool) {
	host, path, ok = strings.Cut(s, "/")
	if ok {
		path = "/" + path
	}
	return host, path, ok
}
