package api

import (
	"fmt"
	"net/http"
	"os"
	"strings"

	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

func dropletApp(d *cf.Droplet) string { return d.AppGUID }

var labelDroplet = label(store.Droplets, func(d *cf.Droplet) *cf.Metadata { return &d.Metadata })

func viewDroplet(c *call, d *cf.Droplet) doc {
	types := doc{}
	for k, v := range d.ProcessTypes {
		types[k] = v
	}
	return viewDropletWith(c, d, types, d.ExecutionMetadata)
}

// viewListedDroplet hides commands, as Cloud Controller does in lists.
func viewListedDroplet(c *call, d *cf.Droplet) doc {
	return viewDropletWith(c, d, doc{"redacted_message": "[PRIVATE DATA HIDDEN IN LISTS]"}, "[PRIVATE DATA HIDDEN IN LISTS]")
}

func viewDropletWith(c *call, d *cf.Droplet, types doc, metadataText string) doc {
	self := "/v3/droplets/" + d.GUID
	links := doc{
		"self":                   c.link("%s", self),
		"app":                    c.link("/v3/apps/%s", d.AppGUID),
		"assign_current_droplet": c.action("PATCH", "/v3/apps/%s/relationships/current_droplet", d.AppGUID),
		"download":               c.link("%s/download", self),
	}
	if d.PackageGUID != "" {
		links["package"] = c.link("/v3/packages/%s", d.PackageGUID)
	}
	if d.State == cf.DropletAwaiting {
		links["upload"] = c.action("POST", "%s/upload", self)
	}
	return with(resource(d.Resource), doc{
		"state": d.State, "error": control.OrNil(d.Error), "lifecycle": doc{"type": d.Lifecycle.Type, "data": doc{}},
		"execution_metadata": metadataText, "process_types": types, "image": control.OrNil(d.Image), "metadata": metadata(d.Metadata),
		"checksum": checksum(d.Digest), "buildpacks": viewDropletBuildpacks(d), "stack": control.OrNil(d.Stack),
		"relationships": doc{"app": toOne(d.AppGUID)}, "links": links,
	})
}

func checksum(digest string) any {
	if digest == "" {
		return nil
	}
	return doc{"type": "sha256", "value": digest}
}

// viewDropletBuildpacks shows the detect output with the buildpacks that are called
// as the last one. Cloud Controller finds none with a URL that it has to censor
// (presenters/v3/droplet_presenter.rb).
func viewDropletBuildpacks(d *cf.Droplet) any {
	if d.Lifecycle.Type == cf.LifecycleDocker {
		return nil
	}
	out := []doc{}
	for _, b := range d.Buildpacks {
		e := doc{"name": b.Name, "detect_output": nil, "version": control.OrNil(b.Version), "buildpack_name": b.BuildpackName}
		if b.Name == d.Buildpacks[len(d.Buildpacks)-1].Name && !strings.Contains(b.Name, "://***:***@") {
			e["detect_output"] = b.DetectOutput
			if d.Lifecycle.Type == cf.LifecycleCNB {
				e["detect_output"] = nil
			}
		}
		out = append(out, e)
	}
	return out
}

func showDroplet(c *call) (*response, error) {
	d, app, err := ofApp(c, store.Droplets, dropletApp)
	if err != nil {
		return nil, err
	}
	return dropletFor(c, d, app)
}

// dropletFor shows a droplet, without its commands to those who may not see
// what may be secret.
func dropletFor(c *call, d *cf.Droplet, app *cf.App) (*response, error) {
	place, err := c.PlaceOf(app)
	if err != nil {
		return nil, err
	}
	if !c.Actor.May(commandReader, place) {
		return ok(viewDropletWith(c, d, doc{"redacted_message": concealed}, concealed))
	}
	return ok(viewDroplet(c, d))
}

func showCurrentDroplet(c *call) (*response, error) {
	app, err := findApp(c)
	if err != nil {
		return nil, err
	}
	if app.DropletGUID == "" {
		return nil, cf.Errorf(cf.ResourceNotFound, "Droplet not found")
	}
	d, err := store.Droplets.Get(c.Tx, app.DropletGUID)
	if err != nil {
		return nil, err
	}
	return dropletFor(c, d, app)
}

func updateDroplet(c *call) (*response, error) {
	var req struct {
		Metadata *change.Metadata     `json:"metadata"`
		Image    change.Field[string] `json:"image"`
	}
	d, app, err := ofApp(c, store.Droplets, dropletApp)
	if err != nil {
		return nil, err
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := labelDroplet(c.Session, d, change.Labels{Metadata: req.Metadata}); err != nil {
		return nil, err
	}
	return dropletFor(c, d, app)
}

func deleteDroplet(c *call) (*response, error) {
	d, app, err := ofApp(c, store.Droplets, dropletApp)
	if err != nil {
		return nil, err
	}
	if err := apps.DeleteDroplet(c.Session, app, d); err != nil {
		return nil, err
	}
	return c.accepted("droplet.delete", "droplets", d.GUID)
}

func downloadDroplet(c *call) (*response, error) {
	d, app, err := ofApp(c, store.Droplets, dropletApp)
	if err != nil {
		return nil, err
	}
	if err := downloadable(d); err != nil {
		return nil, err
	}
	if err := apps.DropletDownloaded(c.Session, app, d); err != nil {
		return nil, err
	}
	return download(c, d.Digest, "application/gzip", fmt.Sprintf("droplet_%s.tgz", app.GUID))
}

// downloadable refuses a droplet that has no file.
func downloadable(d *cf.Droplet) error {
	if d.Lifecycle.Type == cf.LifecycleDocker {
		return cf.Unprocessable("Cannot download droplets with 'docker' lifecycle.")
	}
	if d.State != cf.DropletStaged || d.Digest == "" {
		return cf.Unprocessable("Only staged droplets can be downloaded.")
	}
	return nil
}

// download answers with a blob.
func download(c *call, digest, contentType, name string) (*response, error) {
	f, err := c.s.Blobs.Open(digest)
	if err != nil {
		return nil, fmt.Errorf("open the blob %s: %w", digest, err)
	}
	return sendFile(f, contentType, name), nil
}

// sendFile answers with a file, and closes it.
func sendFile(f *os.File, contentType, name string) *response {
	return &response{raw: func(w http.ResponseWriter, r *http.Request) {
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
		http.ServeContent(w, r, "", info.ModTime(), f)
	}}
}
