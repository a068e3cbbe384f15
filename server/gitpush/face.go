package gitpush

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"cupola/runtime/durable"
	"cupola/runtime/fairqueue"
	"cupola/store"
	"cupola/store/cf"
)

// Path is below which repositories are served.
const Path = "/git/"

// Config is what a Face needs.
type Config struct {
	Dir   string // of the repositories
	Store *store.Store
	// Verify reports whose a token is.
	Verify func(ctx context.Context, token string) (cf.Identity, error)
	// KeyToken issues a token to a user who has proved to have an SSH key.
	KeyToken func(r *http.Request, fingerprint string) (string, error)
	API      *url.URL        // by which users know the API, for pushes over SSH
	Stop     context.Context // ends what waits when the daemon stops
	Log      *slog.Logger
}

// Face serves git push.
type Face struct {
	Config
	unpacks *fairqueue.Queue // packs that are received and read, by user
	changed chan struct{}    // a repository was made
	api     http.Handler     // the one of Handler

	mu    sync.Mutex
	under map[string]bool // the apps to which a push is under way, by space and name
}

// incoming begins the names of directories with what a push under way has sent.
const incoming = "incoming-"

// Packs received at once, and how many of one user: each takes up to maxPack of disk
// and gitpack.MaxChain of memory.
const (
	maxUnpacks     = 4
	maxUserUnpacks = 1
)

// New opens the repositories of a directory, and deletes what pushes that a killed
// daemon received have left.
func New(c Config) (*Face, error) {
	if err := durable.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	left, err := filepath.Glob(filepath.Join(c.Dir, incoming+"*"))
	for _, dir := range left {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return &Face{Config: c, unpacks: fairqueue.New(maxUnpacks, maxUserUnpacks), changed: make(chan struct{}, 1), under: map[string]bool{}}, err
}

// serve answers a request about an app.
type serve func(http.ResponseWriter, *http.Request, *target) error

// request finds the app of a request, and answers it.
func (f *Face) request(w http.ResponseWriter, r *http.Request, c *client, answer serve) error {
	t, err := f.target(r.Context(), c, r.PathValue("org"), r.PathValue("space"), r.PathValue("app"))
	if err != nil {
		return err
	}
	return answer(w, r, t)
}

// Handler serves the repositories over HTTP. api answers the calls that deploy, those
// of pushes over SSH, too: it is called before the first of these.
func (f *Face) Handler(api http.Handler) http.Handler {
	f.api = api
	mux := http.NewServeMux()
	handle := func(pattern string, serve serve) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			c, err := f.logIn(r, api)
			if err == nil {
				err = f.request(w, r, c, serve)
			}
			if err != nil {
				f.refuse(w, r, err)
			}
		})
	}
	handle("GET "+Path+"{org}/{space}/{app}/info/refs", f.advertise)
	handle("POST "+Path+"{org}/{space}/{app}/git-receive-pack", f.receive)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		f.refuse(w, r, refusef(http.StatusNotFound, "This is not a repository. Push to <API>%sORG/SPACE/APP.git: 'cupola git remote APP' prints the address.", Path))
	})
	return mux
}

// refusal is an error that git shows a user, whatever its status: it prints a body
// of text/plain.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

func (f *Face) refuse(w http.ResponseWriter, r *http.Request, err error) {
	shown, ok := errors.AsType[*refusal](err)
	if !ok {
		f.Log.ErrorContext(r.Context(), "git push failed", "path", r.URL.Path, "err", err)
		shown = &refusal{http.StatusInternalServerError, "An unknown error occurred: the daemon's log has it."}
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	if shown.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Basic realm="cupola", charset="UTF-8"`)
	}
	w.WriteHeader(shown.status)
	_, _ = w.Write([]byte(strings.TrimSpace(shown.text) + "\n")) // the client may be gone
}

// begin notes that a push to an app is under way; ok is false if there is one already.
func (f *Face) begin(t *target) (end func(), ok bool) {
	key := t.space.GUID + "/" + t.name
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.under[key] {
		return nil, false
	}
	f.under[key] = true
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.under, key)
	}, true
}
