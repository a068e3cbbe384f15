package gitpush

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"cupola/runtime/fault"
)

// deploy deploys a commit by the calls that cf push makes, and returns the app's URL.
func (p *push) deploy(ctx context.Context, commit plumbing.Hash) (string, error) {
	all, err := filesOf(p.objects(), commit)
	if err != nil {
		return "", err
	}
	want, err := p.manifest(all)
	if err != nil {
		return "", err
	}
	app, err := all.below(want.path)
	if err != nil {
		return "", err
	}
	found, err := app.check(ctx)
	if err != nil {
		return "", err
	}
	p.out.line("Deploying %s to %s / %s: commit %.8s, %d files", p.name, p.org.Name, p.space.Name, commit, found.files)
	p.warn(found.lfs)
	if err := p.applyManifest(ctx, want.manifest); err != nil {
		return "", err
	}
	pkg, err := p.upload(ctx, app)
	if err != nil {
		return "", err
	}
	droplet, err := p.stage(ctx, pkg)
	if err != nil {
		return "", err
	}
	if err := p.start(ctx, droplet); err != nil {
		return "", err
	}
	return p.address(ctx)
}

// manifest reads a commit's manifest.
func (p *push) manifest(f *files) (*wanted, error) {
	for _, name := range []string{"manifest.yml", "manifest.yaml"} {
		text, err := f.text(name)
		if err != nil || text != "" {
			if err != nil {
				return nil, err
			}
			return manifestOf(text, p.name)
		}
	}
	return manifestOf("", p.name)
}

// maxNamed is how many files a warning names.
const maxNamed = 5

// warn names the files whose content Git LFS keeps elsewhere.
func (p *push) warn(lfs []string) {
	if len(lfs) == 0 {
		return
	}
	more := ""
	if len(lfs) > maxNamed {
		more = fmt.Sprintf(" and %d more", len(lfs)-maxNamed)
		lfs = lfs[:maxNamed]
	}
	p.out.line("Warning: Git LFS keeps the content of %s%s elsewhere: the app gets the pointers. Push with cf push, or commit the files themselves (git lfs uninstall).", strings.Join(lfs, ", "), more)
}

type doc = map[string]any

func toOne(guid string) doc { return doc{"data": doc{"guid": guid}} }

// applyManifest applies the manifest, which makes the app if there is none.
func (p *push) applyManifest(ctx context.Context, text []byte) error {
	a, err := p.client.send(ctx, "POST", "/v3/spaces/"+p.space.GUID+"/actions/apply_manifest", "application/x-yaml", strings.NewReader(string(text)))
	if err != nil {
		return err
	}
	if err := p.job(ctx, a.header.Get("Location")); err != nil {
		return err
	}
	var list struct{ Resources []struct{ GUID string } }
	query := url.Values{"names": {p.name}, "space_guids": {p.space.GUID}}
	if err := p.client.call(ctx, "GET", "/v3/apps?"+query.Encode(), nil, &list); err != nil {
		return err
	}
	if len(list.Resources) == 0 {
		return fmt.Errorf("app %s was deleted meanwhile", p.name)
	}
	p.app = list.Resources[0].GUID
	return nil
}

// job waits for the job of a 202.
func (p *push) job(ctx context.Context, location string) error {
	u, err := url.Parse(location)
	if err != nil {
		return err
	}
	for {
		var j struct {
			State  string
			Errors []struct{ Detail string }
		}
		if err := p.client.call(ctx, "GET", u.Path, nil, &j); err != nil {
			return err
		}
		switch j.State {
		case "COMPLETE":
			return nil
		case "FAILED":
			var details []string
			for _, e := range j.Errors {
				details = append(details, e.Detail)
			}
			return errors.New(strings.Join(details, "; "))
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// pause waits a little.
func pause(ctx context.Context) error {
	select {
	case <-time.After(200 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// upload makes a package of files, and returns its GUID.
func (p *push) upload(ctx context.Context, f *files) (string, error) {
	var pkg struct{ GUID string }
	if err := p.client.call(ctx, "POST", "/v3/packages", doc{"type": "bits", "relationships": doc{"app": toOne(p.app)}}, &pkg); err != nil {
		return "", err
	}
	r, w := io.Pipe()
	defer r.Close()
	form := multipart.NewWriter(w)
	packed := make(chan error, 1)
	fault.Go("git", func() {
		err := errors.New("the files could not be packed")
		defer func() {
			w.CloseWithError(err)
			packed <- err
		}()
		err = packFiles(ctx, form, f)
	})
	_, err := p.client.send(ctx, "POST", "/v3/packages/"+pkg.GUID+"/upload", form.FormDataContentType(), r)
	r.Close() // ends a writer that is not read to its end
	if why := <-packed; why != nil && !errors.Is(why, io.ErrClosedPipe) {
		return "", why
	}
	return pkg.GUID, err
}

// packFiles writes files as the form of an upload.
func packFiles(ctx context.Context, form *multipart.Writer, f *files) error {
	if err := form.WriteField("resources", "[]"); err != nil {
		return err
	}
	part, err := form.CreateFormFile("bits", "package.zip")
	if err != nil {
		return err
	}
	if err := f.zip(ctx, part); err != nil {
		return err
	}
	return form.Close()
}

// stage makes a droplet of a package, and shows the log of it.
func (p *push) stage(ctx context.Context, pkg string) (string, error) {
	log := p.follow(ctx, "STG", true)
	defer log.stop()
	var b struct {
		GUID, State, Error string
		Droplet            struct{ GUID string }
	}
	if err := p.client.call(ctx, "POST", "/v3/builds", doc{"package": doc{"guid": pkg}}, &b); err != nil {
		return "", err
	}
	for b.State == "STAGING" {
		if err := p.client.call(ctx, "GET", "/v3/builds/"+b.GUID, nil, &b); err != nil {
			return "", err
		}
	}
	log.stop()
	if b.State != "STAGED" {
		return "", fmt.Errorf("staging failed: %s", b.Error)
	}
	return b.Droplet.GUID, nil
}

// address is the URL of the app's first route, on the port by which the API was asked.
func (p *push) address(ctx context.Context) (string, error) {
	var routes struct{ Resources []struct{ URL string } }
	if err := p.client.call(ctx, "GET", "/v3/apps/"+p.app+"/routes", nil, &routes); err != nil {
		return "", err
	}
	if len(routes.Resources) == 0 {
		return fmt.Sprintf("%s runs; it has no route.", p.name), nil
	}
	scheme := "http"
	if p.client.tls != nil {
		scheme = "https"
	}
	host, path, slash := strings.Cut(routes.Resources[0].URL, "/")
	if slash {
		path = "/" + path
	}
	if _, port, err := net.SplitHostPort(p.client.host); err == nil && !strings.Contains(host, ":") {
		host = net.JoinHostPort(host, port)
	}
	return scheme + "://" + host + path, nil
}
