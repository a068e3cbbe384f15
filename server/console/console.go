package console

import (
	"context"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzhttp"

	"cupola/server/refusal"
	"cupola/server/sshproxy"
	"cupola/server/uaa"
	"cupola/store"
)

// Config is what the console needs of the daemon.
type Config struct {
	Store   *store.Store
	UAA     *uaa.UAA
	Domain  string // of apps; the console's host is below it
	Version string
	Assets  fs.FS           // the built web/dist; nil: this build has no console
	SSH     *sshproxy.Proxy // nil: `cf ssh` is off
	Stop    context.Context //nolint:containedctx // ends the streams when the daemon drains
	Log     *slog.Logger
}

// Console serves the web console.
type Console struct {
	Config
	files  map[string]*file
	tokens tokens
	live   live
	feed   *feed
	opens  opens
	origin *http.CrossOriginProtection
}

// New returns a Console. Run must run for its streams.
func New(c Config) (*Console, error) {
	files, err := readFiles(c.Assets)
	if err != nil {
		return nil, err
	}
	k := &Console{Config: c, files: files, origin: http.NewCrossOriginProtection()}
	k.tokens.held = map[string]heldToken{}
	k.live.open = map[string]map[*stream]bool{}
	k.opens.waiting = map[string]waitingOpen{}
	k.feed = newFeed(c.Store, c.Log, k.live.authorityChanged)
	return k, nil
}

// Run keeps the event feed until ctx ends.
func (c *Console) Run(ctx context.Context) error { return c.feed.run(ctx) }

// Path is the path below which the console is served.
const Path = "/console/"

// Handler serves what is below Path. api answers the API's paths.
func (c *Console) Handler(api http.Handler) http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("/console/", c.page)
	m.HandleFunc("GET /console/assets/{name}", c.asset)
	m.HandleFunc("GET /console/samples", c.samples)
	m.HandleFunc("GET /console/samples/{name}", c.sampleZip)
	m.HandleFunc("GET /console/login", c.login)
	m.HandleFunc("POST /console/logout", c.logOut)
	m.HandleFunc("GET /console/open", c.open)
	m.HandleFunc("GET /console/events", c.events)
	m.HandleFunc("GET /console/terminal", c.terminal)
	m.Handle("/console/api/", compressed(c.proxy(api)))
	m.Handle("/console/api/v2/read", c.proxy(api)) // a stream
	return secured(m)
}

// compressed compresses the API's JSON: a list of a thousand apps has two
// megabytes.
func compressed(h http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.ContentTypes([]string{"application/json", "application/json; charset=utf-8"}), gzhttp.CompressionLevel(1))
	if err != nil {
		panic(err) // of constants
	}
	return wrap(h)
}

// Home leads the root of the console's host to the console, and all else to next.
func (c *Console) Home(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/console" || r.URL.Path == "/" && c.isHost(r.Host) {
			http.Redirect(w, r, Path, http.StatusFound)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (c *Console) isHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.EqualFold(strings.TrimSuffix(host, "."), "console."+c.Domain)
}

// policy lets the console's pages load nothing but the console's own files, and
// keeps scripts from making markup of text.
const policy = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'; img-src 'self' data:; " +
	"require-trusted-types-for 'script'; trusted-types cupola"

func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}

// CC: errors/v2.yml
func refuseStranger(w http.ResponseWriter) {
	refusal.Write(w, http.StatusUnauthorized, 10002, "CF-NotAuthenticated", "Authentication error")
}

func refuseForeign(w http.ResponseWriter) {
	refusal.Write(w, http.StatusForbidden, 10003, "CF-NotAuthorized", "The request came from another site")
}

func (c *Console) fail(w http.ResponseWriter, r *http.Request, err error) {
	c.Log.ErrorContext(r.Context(), "console request failed", slog.String("path", r.URL.Path), slog.Any("err", err))
	refusal.Write(w, http.StatusInternalServerError, 10001, "UnknownError", "An unknown error occurred.")
}
