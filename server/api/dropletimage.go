package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"cupola/store"
	"cupola/store/cf"
)

// PackStep says how far the making of an image is, in bytes of files; Total is 0 where it is not known.
type PackStep struct {
	What        string `json:"what"`
	Done, Total int64
}

// PackLine is a line of the answer to a request for an image: a step, or the end.
type PackLine struct {
	Step  *PackStep       `json:"step,omitempty"`
	Image json.RawMessage `json:"image,omitempty"` // a registry.Image
	// Sidecars are those that the droplet's buildpacks have besides its processes.
	Sidecars []cf.Sidecar `json:"sidecars,omitempty"`
	Error    string       `json:"error,omitempty"`
}

// packDroplet answers with steps, line by line, and then an image of the droplet: its documents, and what its layers are. A client
// that goes away ends it.
func packDroplet(c *call) (*response, error) {
	if err := c.receive(); err != nil {
		return nil, err
	}
	var d *cf.Droplet
	var command string
	err := c.tx(true, func() (err error) {
		d, command, err = packable(c)
		return err
	})
	if err != nil {
		return nil, err
	}
	if c.s.PackDroplet == nil {
		return nil, cf.Unprocessable("nothing makes images of droplets here")
	}
	return &response{raw: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		lines := json.NewEncoder(w)
		c.s.pack(r.Context(), d, command, func(l PackLine) {
			lines.Encode(l)
			_ = http.NewResponseController(w).Flush() // a client that left ends the context
		})
	}}, nil
}

// pack says how far the making of an image is, and how it ends.
func (s *Server) pack(ctx context.Context, d *cf.Droplet, command string, say func(PackLine)) {
	image, err := s.PackDroplet(ctx, d, command, func(s PackStep) { say(PackLine{Step: &s}) })
	var text []byte
	if err == nil {
		text, err = json.Marshal(image)
	}
	if err != nil {
		say(PackLine{Error: err.Error()})
		return
	}
	say(PackLine{Image: text, Sidecars: d.Sidecars})
}

// packable is the droplet of {guid}, and the start command of the app's web process.
func packable(c *call) (d *cf.Droplet, command string, err error) {
	d, app, err := ofApp(c, store.Droplets, dropletApp)
	if err != nil {
		return nil, "", err
	}
	if err := downloadable(d); err != nil {
		return nil, "", err
	}
	processes, err := store.Processes.By(c.Tx, "app_guids", app.GUID)
	for _, p := range processes {
		if p.Type == "web" && p.Command != "" {
			return d, p.Command, err
		}
	}
	return d, d.ProcessTypes["web"], err
}

// downloadPackedLayer answers with a layer of an image that was made of the droplet.
func downloadPackedLayer(c *call) (*response, error) {
	d, _, err := ofApp(c, store.Droplets, dropletApp)
	if err != nil {
		return nil, err
	}
	if err := downloadable(d); err != nil {
		return nil, err
	}
	if c.s.PackedLayer == nil {
		return nil, cf.Unprocessable("nothing makes images of droplets here")
	}
	f, err := c.s.PackedLayer(d, c.param("image"), c.param("layer"))
	if err != nil {
		return nil, cf.Errorf(cf.ResourceNotFound, "%s", err)
	}
	return sendFile(f, "application/octet-stream", fmt.Sprintf("%s.tar.gz", c.param("layer"))), nil
}
