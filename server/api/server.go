package api

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"cupola/runtime/fairqueue"
	"cupola/runtime/lrp"
	"cupola/server/bulkhead"
	"cupola/server/control"
	"cupola/server/control/autoscaling"
	"cupola/server/control/cronjobs"
	"cupola/server/control/jobs"
	"cupola/store"
	"cupola/store/blob"
	"cupola/store/cf"
)

// Version is the version of Cloud Controller's API that is served. Clients
// switch features on by it: 3.211 is what embeds process instances in lists, 3.224 what
// has route policies.
const Version = "3.224.0"

// Config is what the API needs from the rest of the daemon.
type Config struct {
	Store *store.Store
	Blobs *blob.Store
	Log   *slog.Logger
	// Platform is what the verbs need of the daemon.
	control.Platform

	// Authenticate reports whose a bearer token is.
	Authenticate func(ctx context.Context, token string) (cf.Identity, error)
	// Slots are for requests under way, by user, or address where there is none;
	// nil bounds none.
	Slots *bulkhead.Share[string]
	// Instances gives the live use of instances, by instance GUID.
	Stats func(instanceGUID string) (lrp.Stats, bool)
	// WhyCrashed reads the log of a process once, and returns what says in one line why an instance of it crashed.
	WhyCrashed func(p *cf.Process) func(*lrp.Actual) string
	// Asleep reports whether an app sleeps; nil: the rows say.
	Asleep func(appGUID string) bool
	// Routed waits until requests go where the rows say now, or ctx ends.
	Routed func(ctx context.Context)
	// LogShown waits until the official CLI has read the staging log of an app, or ctx ends.
	// It reports whether the CLI reads the log at all; nil: it does not. The build began at since.
	LogShown func(ctx context.Context, appGUID string, since time.Time) bool
	// Retire replaces an instance of a process.
	Retire func(process *cf.Process, app *cf.App, index int)

	// Parameters asks a broker for the parameters of what it has; an object, or
	// nil for none.
	Parameters func(ctx context.Context, q ParameterQuery) (json.RawMessage, error)
	// RenderBOSH writes a deployment as Kubernetes objects. Its errors are those
	// of what was asked for.
	RenderBOSH func(ctx context.Context, decode func(request any) error) (rendered any, err error)

	Releases Releases

	// Gauges are what was measured of an app's web instances since a time, as autoscaling.Config has
	// it.
	Gauges func(appGUID string, since time.Time) []map[string]float64
	// Requests are those to an app since the daemon's start, likewise.
	Requests func(appGUID string) (count int64, took time.Duration)

	// Call makes the request of a call, as cronjobs.Config has it.
	Call func(ctx context.Context, spaceGUID string, call *cf.AppJob) (answer string, err error)

	// PackDroplet makes an image of a droplet with a start command: a registry.Image, which the answer
	// shows as it is.
	PackDroplet func(ctx context.Context, d *cf.Droplet, command string, progress func(PackStep)) (image any, err error)
	// PackedLayer opens a layer of an image of a droplet; both are digests.
	PackedLayer func(d *cf.Droplet, image, layer string) (*os.File, error)

	// ReadBackup writes the content of a backup of a service instance.
	ReadBackup func(b *cf.DataBackup, to io.Writer) error
	// Mails are what a service instance that takes mails was given, as the API lists them.
	Mails func(ctx context.Context, instanceGUID string) (list any, err error)
	// Mail is the content of one of them.
	Mail func(ctx context.Context, instanceGUID, id string) ([]byte, error)
	// Points are the points in time that a service instance can be restored to, as the API shows them.
	Points func(ctx context.Context, instanceGUID string) (points any, err error)
	// DataServer describes the server of a service instance of the built-in broker, as the API shows it.
	DataServer func(ctx context.Context, instanceGUID string) (server any, err error)
	// CheckBackup refuses a backup, or a restore, of a service instance that has none.
	CheckBackup func(tx *store.Tx, instanceGUID string, restore bool) error
	// BackupEnding is what the file of a service's backup is called by the programs that read it.
	BackupEnding func(service string) string

	SSH SSHInfo
}

// ParameterQuery says whose parameters a broker is asked for.
type ParameterQuery struct {
	InstanceGUID string
	BindingGUID  string // of a binding of the instance, of any kind; "" for the instance's own
	Actor        cf.Actor
}

// SSHInfo is what the root document says of cf ssh; the zero value leaves it
// out.
type SSHInfo struct{ Address, HostKeyFingerprint, ClientID string }

// Server serves the API.
type Server struct {
	Config
	Jobs *jobs.Loop     // works on what requests leave to be done
	Cron *cronjobs.Loop // runs the jobs of apps
	// Autoscaler scales apps by their policies.
	Autoscaler *autoscaling.Loop

	mux     *http.ServeMux
	unknown http.HandlerFunc
	stop    context.Context // ends the long polls when the daemon stops

	listed  lately                  // processes, for the CLI
	held    *bulkhead.Share[string] // answers that are held until there is news, by user
	uploads *fairqueue.Queue        // by user
	turns   *fairqueue.Queue        // of transactions, by user
	reads   *fairqueue.Queue        // likewise, of those that read
}

// New returns a Server whose long polls end with ctx.
func New(ctx context.Context, c Config) *Server {
	s := &Server{Config: c, mux: http.NewServeMux(), stop: ctx, uploads: fairqueue.New(maxUploads, maxUserUploads),
		turns: fairqueue.NewPaced(maxTurns, maxTurns), reads: newReads()}
	c.Store.PauseWhile(s.turns.Competing)
	s.Jobs = jobs.New(jobs.Config{Store: c.Store, Log: c.Log, Platform: &s.Platform, Show: jobError,
		Turn: func(ctx context.Context, user string) (func(), error) { return s.enter(ctx, user, true) }})
	s.Cron = cronjobs.NewLoop(cronjobs.Config{Store: c.Store, Log: c.Log, Platform: &s.Platform, Call: c.Call})
	s.Autoscaler = autoscaling.NewLoop(autoscaling.Config{Store: c.Store, Log: c.Log, Platform: &s.Platform, Gauges: c.Gauges, Requests: c.Requests})
	s.held = bulkhead.NewShare[string](heldOf(c.Slots), 1)
	for _, rt := range s.routes() {
		s.mux.HandleFunc(rt.pattern, s.handle(rt))
	}
	s.unknown = s.handle(route{"/", public, inTx(unknownRoute)})
	s.mux.HandleFunc("/", s.unknown)
	return s
}

// heldOf is how many answers may be held: half of the requests that may be under
// way.
func heldOf(slots *bulkhead.Share[string]) int {
	if slots == nil {
		return 1000
	}
	return max(2, slots.Limit()/2)
}

// ServeHTTP serves one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = normalized(r)
	if unclean.MatchString(r.URL.EscapedPath()) {
		s.unknown(w, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// unclean matches the paths that the mux would redirect, with a page of HTML.
var unclean = regexp.MustCompile(`//|/\.\.?(/|$)`)

// normalized is a request with the path that Rails makes of it: of several slashes
// in a row one counts, and none at the end.
func normalized(r *http.Request) *http.Request {
	path, raw := squeeze(r.URL.Path), squeeze(r.URL.RawPath)
	if path == r.URL.Path && raw == r.URL.RawPath || !isV3(path) {
		return r
	}
	u := *r.URL
	u.Path, u.RawPath = path, raw
	n := *r
	n.URL = &u
	return &n
}

var slashes = regexp.MustCompile(`//+`)

func squeeze(path string) string {
	return strings.TrimSuffix(slashes.ReplaceAllString(path, "/"), "/")
}

func isV3(path string) bool { return path == "/v3" || strings.HasPrefix(path, "/v3/") }

// unknownRoute answers as Cloud Controller does: outside of /v3 in the form of its
// version 2.
func unknownRoute(c *call) (*response, error) {
	err := cf.Errorf(cf.NotFound, "Unknown request")
	if isV3(c.Request.URL.Path) {
		return nil, err
	}
	f := faults[err.Kind]
	return &response{status: f.status, body: doc{"code": f.code, "error_code": f.title, "description": err.Detail}}, nil
}
