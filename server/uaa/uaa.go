// Package uaa is the part of Cloud Foundry's UAA that its clients need: tokens
// for users and clients, the users themselves, and what `cf login` asks.
// Access tokens are RS256 JWTs; paths, claims and errors are UAA's.
package uaa

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/bcrypt"

	"cupola/runtime/fairqueue"
	"cupola/server/bulkhead"
	"cupola/store"
	"cupola/store/cf"
)

// The lifetimes of tokens. UAA's defaults for the client cf are 10 minutes and
// 30 days.
const (
	accessLife  = 10 * time.Minute
	refreshLife = 30 * 24 * time.Hour
)

// Origin is where all users are from.
const Origin = "uaa"

// userScopes is what every user's token has; adminScopes come on top.
var (
	userScopes = []string{"cloud_controller.read", "cloud_controller.write", "cloud_controller_service_permissions.read", "openid", "password.write", "uaa.user"}

	// AdminScopes are the scopes of an admin.
	AdminScopes = []string{"cloud_controller.admin", "scim.read", "scim.write", "uaa.admin", "doppler.firehose", "network.admin", "routing.router_groups.read", "routing.router_groups.write"}
)

// Config is what a UAA is made of.
type Config struct {
	Store     *store.Store
	Passwords PasswordPolicy // of users' new passwords
	Log       *slog.Logger
}

// UAA serves tokens and users.
type UAA struct {
	Keys      *Keys
	store     *store.Store
	policy    atomic.Pointer[PasswordPolicy]
	log       *slog.Logger
	codes     codes
	passcodes codes
	sessions  codes
	limit     limiter
	basic     basicTokens
	proved    proved
	mux       *http.ServeMux

	// hashing limits concurrent password comparisons, which are slow by
	// design: a client that tries many must not take all processors. waiting
	// limits how many may wait, by address.
	hashing *fairqueue.Queue
	hashers int
	waiting *bulkhead.Share[netip.Prefix]
}

// maxWaiting is how many logins may wait for their password to be compared; one
// address may have half of them.
const maxWaiting = 128

// New returns a UAA that signs with the store's keys, of which it makes the
// first.
func New(ctx context.Context, c Config) (*UAA, error) {
	keys, err := openKeys(ctx, c.Store)
	if err != nil {
		return nil, err
	}
	u := &UAA{Keys: keys, store: c.Store, log: c.Log, codes: newCodes(), passcodes: newCodes(), sessions: newCodes(), mux: http.NewServeMux(),
		hashers: max(1, runtime.NumCPU()/2), waiting: bulkhead.NewShare[netip.Prefix](maxWaiting, 1)}
	u.SetPolicy(c.Passwords)
	u.hashing = fairqueue.New(u.hashers, u.hashers)
	for pattern, h := range u.routes() {
		u.mux.HandleFunc(pattern, u.serve(h))
	}
	u.mux.HandleFunc("/", u.serve(u.unknown))
	return u, nil
}

// unknown refuses a request that no route is for.
func (u *UAA) unknown(r *http.Request) (int, any, error) {
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		as := *r
		as.Method = method
		if _, pattern := u.mux.Handler(&as); pattern != "/" {
			return 0, nil, refuse(http.StatusMethodNotAllowed, "method_not_allowed", "Request method '%s' not supported", r.Method)
		}
	}
	return 0, nil, refuse(http.StatusNotFound, "not_found", "There is nothing at %s", r.URL.Path)
}

// SetPolicy says what new passwords must have from now on.
func (u *UAA) SetPolicy(p PasswordPolicy) { u.policy.Store(&p) }

func (u *UAA) routes() map[string]handler {
	scim, clients := scim{u}, clientAdmin{u}
	return map[string]handler{
		"GET /login":                            u.loginPage,
		"POST /login.do":                        u.logIn,
		"POST /logout.do":                       u.logOut,
		"GET /passcode":                         u.passcode,
		"GET /info":                             u.login,
		"GET /.well-known/openid-configuration": u.discover,
		"GET /oauth/token/.well-known/openid-configuration": u.discover, // below the issuer
		"POST /oauth/token":                      u.token,
		"GET /oauth/authorize":                   u.authorize,
		"POST /oauth/authorize":                  u.decide,
		"DELETE /oauth/token/revoke/{id}":        u.revoke,
		"GET /oauth/token/revoke/user/{id}":      u.revokeUser,
		"DELETE /oauth/token/revoke/user/{id}":   u.revokeUser,
		"GET /oauth/token/revoke/client/{id}":    u.needs(u.revokeClient, "uaa.admin", "tokens.revoke"),
		"DELETE /oauth/token/revoke/client/{id}": u.needs(u.revokeClient, "uaa.admin", "tokens.revoke"),
		"GET /token_key":                         u.Keys.tokenKey,
		"GET /token_keys":                        u.Keys.tokenKeys,
		"POST /check_token":                      u.checkToken,
		"POST /introspect":                       u.introspect,
		"GET /userinfo":                          u.userInfo,
		"GET /oauth/clients":                     u.needs(clients.listClients, "uaa.admin", "clients.admin", "clients.read"),
		"POST /oauth/clients":                    clients.createClient,
		"GET /oauth/clients/{id}":                u.needs(clients.showClient, "uaa.admin", "clients.admin", "clients.read"),
		"PUT /oauth/clients/{id}":                clients.updateClient,
		"PUT /oauth/clients/{id}/secret":         u.needs(clients.changeSecret, "uaa.admin", "clients.admin"),
		"DELETE /oauth/clients/{id}":             u.needs(clients.deleteClient, "uaa.admin", "clients.admin", "clients.write"),
		"GET /Users":                             u.needs(scim.listUsers, "scim.read"),
		"POST /Users":                            u.needs(scim.createUser, "scim.write"),
		"GET /Users/{id}":                        scim.showUser,
		"PUT /Users/{id}":                        u.needs(scim.updateUser, "scim.write"),
		"DELETE /Users/{id}":                     u.needs(scim.deleteUser, "scim.write"),
		"PUT /Users/{id}/password":               scim.changePassword,
		"PATCH /Users/{id}/status":               u.needs(scim.unlock, "scim.write"),
		"GET /Groups":                            u.needs(scim.listGroups, "scim.read"),
		"POST /Groups":                           u.needs(scim.createGroup, "scim.write"),
		"GET /Groups/{id}":                       u.needs(scim.showGroup, "scim.read"),
		"PUT /Groups/{id}":                       u.needs(scim.updateGroup, "scim.write", "groups.update"),
		"PATCH /Groups/{id}":                     u.needs(scim.patchGroup, "scim.write", "groups.update"),
		"DELETE /Groups/{id}":                    u.needs(scim.deleteGroup, "scim.write"),
		"GET /Groups/{id}/members/{member}":      u.needs(scim.showMember, "scim.read"),
		"GET /Groups/{id}/members":               u.needs(scim.listMembers, "scim.read"),
		"POST /Groups/{id}/members":              u.needs(scim.addMember, "scim.write", "groups.update"),
		"DELETE /Groups/{id}/members/{member}":   u.needs(scim.removeMember, "scim.write"),
	}
}

// needs is a handler for callers whose token has one of the scopes.
func (u *UAA) needs(h handler, scopes ...string) handler {
	return func(r *http.Request) (int, any, error) {
		if _, err := u.bearer(r, scopes...); err != nil {
			return 0, nil, err
		}
		return h(r)
	}
}

// Paths are the path prefixes that are the UAA's.
func Paths() []string {
	return []string{"/login", "/login.do", "/logout.do", "/passcode", "/info", "/.well-known/openid-configuration", "/oauth/", "/token_key", "/token_keys",
		"/check_token", "/introspect", "/userinfo", "/Users", "/Users/", "/Groups", "/Groups/"}
}

// ServeHTTP serves one request.
func (u *UAA) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.mux.ServeHTTP(w, r.WithContext(store.As(r.Context(), "uaa")))
}

// findAdmin finds the user admin.
func findAdmin(tx *store.Tx) (*cf.User, error) {
	return store.Users.First(tx, store.Query{Where: map[string][]string{"usernames": {adminUser}, "origins": {Origin}}})
}

// AdminHash is a hash of the admin's password: the one that the user admin has, where it
// is that password's. It takes bcrypt's time.
func AdminHash(ctx context.Context, s *store.Store, password string) (string, error) {
	var present string
	err := s.Read(ctx, func(tx *store.Tx) error {
		admin, err := findAdmin(tx)
		if err == nil {
			present = admin.PasswordHash
		}
		return err
	})
	if err != nil && !store.IsNotFound(err) {
		return "", err
	}
	if bcrypt.CompareHashAndPassword([]byte(present), []byte(password)) == nil {
		return present, nil
	}
	return hash(password)
}

// EnsureAdmin makes the user admin, or gives it the password of a hash. The client
// admin has the same secret.
func EnsureAdmin(tx *store.Tx, passwordHash string) error {
	admin, err := findAdmin(tx)
	if store.IsNotFound(err) {
		admin, err = &cf.User{Username: adminUser, Origin: Origin, Scopes: AdminScopes}, nil
	}
	if err != nil {
		return err
	}
	if admin.PasswordHash == passwordHash {
		return nil
	}
	admin.PasswordHash = passwordHash
	if admin.GUID == "" {
		return store.Users.Insert(tx, admin)
	}
	return store.Users.Update(tx, admin)
}

// cost is what bcrypt makes of a password; the tests of this package take less.
var cost = bcrypt.DefaultCost

// hash is the bcrypt hash of a password of at most maxPassword bytes.
func hash(password string) (string, error) {
	b, err := bcrypt.GenerateFromPassword([]byte(password), cost)
	return string(b), err
}

// fault is an error in the form that UAA gives it.
type fault struct {
	status      int
	Code        string `json:"error"`
	Message     string `json:"message,omitempty"` // of errors about users and groups
	Description string `json:"error_description"`
}

func (f *fault) Error() string { return f.Description }

func refuse(status int, code, format string, args ...any) *fault {
	return &fault{status: status, Code: code, Description: fmt.Sprintf(format, args...)}
}

// handler answers with a status and JSON.
type handler func(*http.Request) (status int, body any, err error)

func (u *UAA) serve(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		status, body, err := h(r)
		if err != nil {
			f := u.faultOf(r, err)
			if status, body = f.status, f; wantsPage(r) {
				body = page{name: "fault", Title: "That did not work", Fault: f.Description}
			}
		}
		w.Header().Set("Cache-Control", "no-store")
		switch b := body.(type) {
		case redirect:
			b.write(w, status)
		case page:
			if err := b.write(w, status); err != nil {
				u.log.ErrorContext(r.Context(), "page was not written", slog.String("path", r.URL.Path), slog.Any("err", err))
			}
		default:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			if body != nil {
				json.NewEncoder(w).Encode(body)
			}
		}
	}
}

// faultOf is an error as clients may know it.
func (u *UAA) faultOf(r *http.Request, err error) *fault {
	var f *fault
	if errors.As(err, &f) {
		if strings.HasPrefix(r.URL.Path, "/Users") || strings.HasPrefix(r.URL.Path, "/Groups") {
			f = &fault{f.status, f.Code, f.Description, f.Description} // ExceptionReportHttpMessageConverter
		}
		return f
	}
	u.log.ErrorContext(r.Context(), "token request failed", slog.String("path", r.URL.Path), slog.Any("err", err))
	if e := store.Explain(err); e != nil {
		status := map[cf.Kind]int{cf.DiskFull: http.StatusInsufficientStorage, cf.ServiceUnavailable: http.StatusServiceUnavailable, cf.DatabaseError: http.StatusInternalServerError}[e.Kind]
		return &fault{status: status, Code: "server_error", Description: e.Detail}
	}
	return &fault{status: http.StatusInternalServerError, Code: "server_error", Description: "An unknown error occurred."}
}
