package front

import (
	"net/http"
	"slices"
	"strings"

	"cupola/server/authz"
	"cupola/server/control/access"
	"cupola/server/logstream"
	"cupola/server/uaa"
	"cupola/store"
	"cupola/store/cf"
)

// Readers tells who may read which logs.
type Readers struct {
	Store *store.Store
	UAA   *uaa.UAA
}

// user names whom a request's token speaks for: a user, or else a client.
func (rs Readers) user(r *http.Request) string {
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	id, err := rs.UAA.Verify(r.Context(), token)
	if err != nil {
		return ""
	}
	return id.Actor().GUID
}

// mayRead lets those read the log of an app or a service instance who see it, those who read all secrets the
// logs of BOSH deployments, and those with the firehose everything.
func (rs Readers) mayRead(r *http.Request, sourceIDs ...string) (may map[string]bool, err error) {
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	id, err := rs.UAA.Verify(r.Context(), token)
	if err != nil || len(sourceIDs) == 0 {
		return nil, err
	}
	may = map[string]bool{}
	if readsAll(id) {
		for _, source := range sourceIDs {
			may[source] = true
		}
		return may, nil
	}
	err = rs.Store.Read(r.Context(), func(tx *store.Tx) error { return markVisible(tx, id, sourceIDs, may) })
	return may, err
}

// readsAll reports whether a user may read everything (log-cache's and the RLP
// gateway's scopes).
func readsAll(id cf.Identity) bool {
	return slices.Contains(id.Scopes, "doppler.firehose") || slices.Contains(id.Scopes, "logs.admin")
}

// Reader is whom a request's token speaks for, as a reader of streams.
func (rs Readers) Reader(r *http.Request) (logstream.Reader, error) {
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	access, err := rs.UAA.Access(r.Context(), token)
	if err != nil {
		return logstream.Reader{}, err
	}
	return logstream.Reader{GUID: access.Actor().GUID, May: func(tx *store.Tx, scopes, sources []string) (bool, error) {
		id, ok, err := access.Now(tx)
		if err != nil || !ok {
			return false, err
		}
		if slices.ContainsFunc(scopes, func(s string) bool { return slices.Contains(id.Scopes, s) }) {
			return true, nil
		}
		seen := map[string]bool{}
		err = markVisible(tx, id, sources, seen)
		return len(sources) > 0 && !slices.ContainsFunc(sources, func(s string) bool { return !seen[s] }), err
	}}, nil
}

// visibleAtOnce is how many sources are looked for in one query.
const visibleAtOnce = 1000

// markVisible marks the apps and service instances that whom a token speaks for sees (log-cache asks Cloud Controller for
// both), and the BOSH deployments.
func markVisible(tx *store.Tx, id cf.Identity, guids []string, seen map[string]bool) error {
	actor, err := access.Actor(tx, id.Actor(), id.Scopes)
	if err != nil {
		return err
	}
	if !actor.MayRead() {
		return nil // a client that was let see who its user is
	}
	scope, err := access.Scope(tx, actor)
	if err != nil {
		return err
	}
	for guids := range slices.Chunk(guids, visibleAtOnce) {
		q := store.Query{Where: map[string][]string{"guids": guids}, Visible: scope}
		apps, err := store.Apps.Matching(tx, q)
		if err != nil {
			return err
		}
		for _, a := range apps {
			seen[a.GUID] = true
		}
		instances, err := store.ServiceInstances.Matching(tx, q)
		if err != nil {
			return err
		}
		for _, i := range instances {
			seen[i.GUID] = true
		}
		if !actor.May(authz.AdminReadOnly, authz.Place{}) { // as for GET /v1/deployments/{name}
			continue
		}
		deployments, err := store.BOSHDeployments.By(tx, "guids", guids...)
		if err != nil {
			return err
		}
		for _, d := range deployments {
			seen[d.GUID] = true
		}
	}
	return nil
}
