package api

import (
	"encoding/json"
	"strings"
	"testing"

	"cupola/store"
	"cupola/store/cf"
)

// What the images and layers of the tests are called.
const (
	packedImage = "sha256:an-image"
	packedLayer = "sha256:a-layer"
)

// TestDropletImages asks for images of droplets, and for their layers.
func TestDropletImages(t *testing.T) {
	w := newWorld(t)
	change := func(f func(*cf.Droplet)) {
		w.write(func(tx *store.Tx) error {
			d, err := store.Droplets.Get(tx, "droplet-1")
			if err != nil {
				return err
			}
			f(d)
			return store.Droplets.Update(tx, d)
		})
	}
	change(func(d *cf.Droplet) {
		d.State, d.Digest, d.ProcessTypes = cf.DropletStaged, strings.Repeat("a", 64), map[string]string{"web": "./run"}
		d.Sidecars = []cf.Sidecar{{Name: "agent", Command: "./agent", ProcessTypes: []string{"web"}}}
	})
	for _, c := range []struct{ command, want string }{{"null", "droplet droplet-1 for ./run"}, {`"./my-own"`, "droplet droplet-1 for ./my-own"}} {
		w.run(t, []step{{method: "PATCH", path: "/v3/apps/app-1/processes/web", body: `{"command": ` + c.command + `}`, status: 200}})
		lines := strings.Split(strings.TrimSpace(w.ask("space_developer", "POST", "/v1/droplets/droplet-1/images", "", "").text), "\n")
		var first, last PackLine
		if len(lines) != 2 || json.Unmarshal([]byte(lines[0]), &first) != nil || json.Unmarshal([]byte(lines[1]), &last) != nil ||
			first.Step == nil || *first.Step != (PackStep{What: c.want, Done: 1, Total: 2}) || !strings.Contains(string(last.Image), packedImage) || len(last.Sidecars) != 1 {
			t.Errorf("got %q; want a step of %s, and the image with the droplet's sidecars", lines, c.want)
		}
	}
	w.run(t, []step{
		{method: "GET", path: "/v1/droplets/droplet-1/images/sha256:other/layers/" + packedLayer, status: 404,
			want: detail(10010, "there is no such image, or it has been taken away since it was packed: pack it again")},
		{method: "POST", path: "/v1/droplets/none/images", status: 404, want: detail(10010, "Droplet not found")},
	})
	change(func(d *cf.Droplet) { d.Lifecycle = cf.Lifecycle{Type: cf.LifecycleDocker} })
	for _, s := range []step{{method: "POST", path: "/v1/droplets/droplet-1/images"}, {method: "GET", path: "/v1/droplets/droplet-1/images/" + packedImage + "/layers/" + packedLayer}} {
		s.status, s.want = 422, detail(10008, "Cannot download droplets with 'docker' lifecycle.")
		w.run(t, []step{s})
	}
}
