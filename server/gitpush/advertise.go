package gitpush

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
)

const receivePack = "git-receive-pack"

// capabilities are what is offered to clients. no-thin: each pack has the objects that
// others in it are deltas of.
const capabilities = "report-status delete-refs side-band-64k ofs-delta no-thin object-format=sha1 agent=cupola"

// nothingOut answers a client that would fetch.
const nothingOut = "This repository takes pushes and gives nothing out. Fetch from where the app's source is kept."

// advertise lists the branches and tags that are kept of an app's pushes.
func (f *Face) advertise(w http.ResponseWriter, r *http.Request, t *target) error {
	if s := r.URL.Query().Get("service"); s != receivePack {
		return refusef(http.StatusForbidden, "%s", nothingOut)
	}
	var text strings.Builder
	e := pktline.NewEncoder(&text)
	if err := e.EncodeString("# service=" + receivePack + "\n"); err != nil {
		return err
	}
	if err := e.Flush(); err != nil {
		return err
	}
	if err := f.listRefs(&text, t.app); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/x-"+receivePack+"-advertisement")
	h.Set("Cache-Control", "no-cache")
	_, _ = w.Write([]byte(text.String())) // the client may be gone
	return nil
}

// listRefs writes the branches and tags that are kept of an app's pushes
// (gitprotocol-pack, "Reference Discovery").
func (f *Face) listRefs(to io.Writer, app string) error {
	refs := f.refs(app)
	lines := []string{}
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		lines = append(lines, refs[name].String()+" "+name)
	}
	if len(lines) == 0 {
		lines = []string{plumbing.ZeroHash.String() + " capabilities^{}"}
	}
	lines[0] += "\x00" + capabilities
	e := pktline.NewEncoder(to)
	for _, l := range lines {
		if err := e.EncodeString(l + "\n"); err != nil {
			return fmt.Errorf("write a ref: %w", err)
		}
	}
	return e.Flush()
}
