package boshapi

import (
	"context"
	"log/slog"
	"net/http"
	"os"

	"cupola/runtime/fairqueue"
	"cupola/runtime/fault"
	"cupola/runtime/lrp"
	"cupola/server/bosh/config"
	"cupola/server/bosh/releases"
	"cupola/server/bulkhead"
	"cupola/server/exact"
	"cupola/server/logcache"
	"cupola/store"
	"cupola/store/cf"
)

// Config is what a Server is made of.
type Config struct {
	Store *store.Store
	// Verify returns the identity of an access token.
	Verify   func(ctx context.Context, token string) (cf.Identity, error)
	Releases releases.Library
	// Stats returns what the container of a process uses.
	Stats func(instanceGUID string) (lrp.Stats, bool)
	Logs  *logcache.Cache // of deployments
	// ReadVolume calls f with the files of a volume; see volume.Store.
	ReadVolume func(name string, f func(*os.Root) error) error
	Temp       string            // a directory for files that are removed at once
	Stemcells  map[string]string // the stack of each OS that a flag names
	// SSH is how the CLI's ssh enters instances.
	SSH SSH
	// Slots bound requests under way, by user; nil: nothing does.
	Slots   *bulkhead.Share[string]
	Name    string // of the director
	Version string
	Log     *slog.Logger
}

// Server serves the API.
type Server struct {
	Config
	mux     *http.ServeMux
	exact   http.Handler     // mux, without its redirects
	uploads *fairqueue.Queue // by user
}

// How many releases may be received at once, in all and by one user.
const (
	maxUploads     = 4
	maxUserUploads = 2
)

// UAAPath is where the same listener serves the UAA.
const UAAPath = "/uaa"

// New returns a Server.
func New(c Config) *Server {
	s := &Server{Config: c, mux: http.NewServeMux(), uploads: fairqueue.New(maxUploads, maxUserUploads)}
	for pattern, rt := range routes() {
		s.mux.HandleFunc(pattern, s.handle(rt))
	}
	s.mux.HandleFunc("/", s.handle(route{anyone, unknown}))
	s.exact = exact.Paths(s.mux, s.handle(route{anyone, unknown}))
	return s
}

// ServeHTTP serves one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.exact.ServeHTTP(w, r) }

// rule says who may use a route.
type rule int

// The rules. Readers are admins, read-only admins and who has bosh.read; admins are who
// has cloud_controller.admin or bosh.admin.
const (
	anyone rule = iota
	reader
	admin
)

type route struct {
	rule  rule
	serve handler
}

// handler answers a request.
type handler func(*call) (*answer, error)

// routes is the API.
func routes() map[string]route {
	return map[string]route{
		"GET /info": {anyone, info},

		"GET /deployments":              {reader, inTx(listDeployments)},
		"POST /deployments":             {admin, inTx(deploy)},
		"GET /deployments/{name}":       {reader, inTx(showDeployment)},
		"DELETE /deployments/{name}":    {admin, inTx(deleteDeployment)},
		"POST /deployments/{name}/diff": {admin, inTx(diffDeployment)},
		"GET /deployment_configs":       {reader, inTx(listDeploymentConfigs)},

		"GET /deployments/{name}/vms":                                            {reader, recording(listVMs)},
		"GET /deployments/{name}/instances":                                      {reader, recording(listInstances)},
		"GET /deployments/{name}/variables":                                      {reader, inTx(listVariables)},
		"GET /deployments/{name}/errands":                                        {reader, inTx(listErrands)},
		"POST /deployments/{name}/errands/{errand}/runs":                         {admin, inTx(runErrand)},
		"PUT /deployments/{name}/jobs/{group}":                                   {admin, inTx(changeState)},
		"PUT /deployments/{name}/jobs/{group}/{id}":                              {admin, inTx(changeState)},
		"POST /deployments/{name}/instance_groups/{group}/{id}/actions/{action}": {admin, inTx(actOn)},
		"PUT /deployments/{name}/instance_groups/{group}/{id}/ignore":            {admin, never("cupola cannot ignore instances: stop them instead")},
		"PUT /deployments/{name}/jobs/{group}/{id}/resurrection":                 {admin, never(alwaysRestarted)},
		"PUT /resurrection":                                                      {admin, never(alwaysRestarted)},
		"POST /deployments/{name}/scans":                                         {reader, inTx(scan)},
		"GET /deployments/{name}/problems":                                       {reader, inTx(listProblems)},
		"PUT /deployments/{name}/problems":                                       {admin, inTx(resolveProblems)},
		"GET /deployments/{name}/snapshots":                                      {reader, none},
		"POST /deployments/{name}/snapshots":                                     {admin, never(noSnapshots)},
		"DELETE /deployments/{name}/snapshots":                                   {admin, never(noSnapshots)},
		"POST /deployments/{name}/jobs/{group}/{id}/snapshots":                   {admin, never(noSnapshots)},
		"GET /deployments/{name}/jobs/{group}/{id}/logs":                         {reader, recording(fetchLogs)},
		"GET /resources/{id}":                                                    {reader, download},
		"POST /deployments/{name}/ssh":                                           {admin, inTx(changeSSH)},

		"GET /releases":                    {reader, inTx(listReleases)},
		uploadRoute:                        {admin, uploadRelease},
		"POST /releases/export":            {admin, inTx(exportRelease)},
		"GET /releases/{release}":          {reader, inTx(showRelease)},
		"DELETE /releases/{release}":       {admin, inTx(deleteRelease)},
		"POST /packages/matches":           {admin, none},
		"POST /packages/matches_compiled":  {admin, none},
		"GET /stemcells":                   {reader, inTx(listStemcells)},
		"POST /stemcells":                  {admin, never(noStemcells)},
		"DELETE /stemcells/{os}/{version}": {admin, never(noStemcells)},
		"POST /stemcell_uploads":           {admin, inTx(needsStemcell)},

		"GET /configs":               {reader, inTx(listConfigs)},
		"POST /configs":              {admin, inTx(updateConfig)},
		"DELETE /configs":            {admin, inTx(deleteConfigs)},
		"POST /configs/diff":         {admin, inTx(diffConfigs)},
		"GET /configs/{id}":          {reader, inTx(showConfig)},
		"DELETE /configs/{id}":       {admin, inTx(deleteConfig)},
		"GET /cloud_configs":         {reader, inTx(oldConfigs(config.Cloud))},
		"POST /cloud_configs":        {admin, inTx(updateOldConfig(config.Cloud))},
		"POST /cloud_configs/diff":   {admin, inTx(diffOldConfig(config.Cloud))},
		"GET /runtime_configs":       {reader, inTx(oldConfigs(config.Runtime))},
		"POST /runtime_configs":      {admin, inTx(updateOldConfig(config.Runtime))},
		"POST /runtime_configs/diff": {admin, inTx(diffOldConfig(config.Runtime))},
		"GET /cpi_configs":           {reader, none},
		"POST /cpi_configs":          {admin, never("there are no CPIs: cupola runs instances itself")},

		"GET /locks":                    {reader, inTx(listLocks)},
		"GET /events":                   {reader, inTx(listEvents)},
		"GET /events/{id}":              {reader, inTx(showEvent)},
		"GET /disks":                    {reader, inTx(listDisks)},
		"DELETE /disks/{disk}":          {admin, inTx(dropDisk)},
		"PUT /disks/{disk}/attachments": {admin, inTx(attachDisk)},
		"GET /networks":                 {reader, none},
		"GET /orphaned_vms":             {reader, none},
		"POST /cleanup":                 {admin, inTx(cleanUp)},
		"GET /cleanup/dryrun":           {reader, inTx(listUnused)},

		"GET /tasks":             {reader, inTx(listTasks)},
		"GET /tasks/{id}":        {reader, inTx(showTask)},
		"GET /tasks/{id}/output": {reader, showOutput},
		"DELETE /task/{id}":      {admin, inTx(cancelTask)},
		"POST /tasks/cancel":     {admin, inTx(cancelTasks)},
	}
}

// What cupola has no equal of, and what to do instead.
const (
	alwaysRestarted = "cupola always restarts processes that end: stop the instances instead"
	noSnapshots     = "cupola takes no snapshots of disks; 'cupola backup' saves all of the daemon's data"
	noStemcells     = "stacks are the stemcells of cupola: 'cupola stack build' or 'cupola stack pull' adds one, and 'cupola stack rm' removes it"
)

// never refuses what cupola cannot do.
func never(why string) handler {
	return func(c *call) (*answer, error) {
		if err := c.in(false, func() error { return nil }); err != nil { // for admins alone
			return nil, err
		}
		return nil, &refusal{http.StatusBadRequest, 0, why}
	}
}

// none answers with no rows.
func none(c *call) (*answer, error) {
	return &answer{body: []doc{}}, c.in(false, func() error { return nil })
}

func unknown(c *call) (*answer, error) {
	return nil, &refusal{http.StatusNotFound, 0, "Endpoint '" + c.Request.URL.Path + "' not found"}
}

// handle wraps a handler with what is common to all.
func (s *Server) handle(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{Server: s, Request: r, rule: rt.rule}
		defer c.leave()
		var a *answer
		err := fault.Guard("director", func() (err error) {
			a, err = c.run(w, rt.serve)
			return err
		})
		if err != nil {
			a = s.failure(r, err)
		}
		a.write(w, r)
	}
}
