package uaa

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"cupola/store"
	"cupola/store/cf"
)

// The clients that there always are. The secret of the client admin is the
// admin's password.
const (
	cliClient   = "cf"
	adminClient = "admin"

	// boshClient is the bosh CLI, when it is given no client.
	boshClient = "bosh_cli"

	// consoleClient has the tokens of the web console's sessions, and no grant: the
	// console gets them from the UAA itself.
	consoleClient = "console"

	// SSHClient is the client that `cf ssh` gets its codes for.
	SSHClient = "ssh-proxy"
)

// The grants that clients can have.
const (
	grantPassword = "password"
	grantRefresh  = "refresh_token"
	grantCode     = "authorization_code"
	grantClient   = "client_credentials"
)

// builtin is one of the clients that there always are, or nil.
func builtin(id string) *cf.Client {
	c := &cf.Client{Resource: cf.Resource{GUID: id}, Name: id}
	switch id {
	case cliClient, boshClient:
		c.GrantTypes = []string{grantPassword, grantRefresh}
	case adminClient:
		c.GrantTypes = []string{grantClient}
		c.Authorities = append([]string{"cloud_controller.read", "cloud_controller.write", "uaa.resource"}, AdminScopes...)
	case consoleClient:
	case SSHClient:
		c.GrantTypes, c.Scopes, c.AutoApprove = []string{grantCode}, []string{"openid"}, []string{"true"}
	default:
		return nil
	}
	return c
}

// findClient is the client with the ID, or a cf.ResourceNotFound.
func findClient(tx *store.Tx, id string) (*cf.Client, error) {
	if c := builtin(id); c != nil {
		return c, nil
	}
	return store.Clients.Get(tx, id)
}

func (u *UAA) client(ctx context.Context, id string) (c *cf.Client, err error) {
	err = u.store.Read(ctx, func(tx *store.Tx) error {
		c, err = findClient(tx, id)
		return err
	})
	return c, err
}

// credentials are what a client shows, in the header or in the form.
func credentials(r *http.Request) (id, secret string) {
	id, secret, basic := r.BasicAuth()
	if !basic {
		return r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	if plain, err := url.QueryUnescape(id); err == nil {
		id = plain
	}
	if plain, err := url.QueryUnescape(secret); err == nil {
		secret = plain
	}
	return id, secret
}

// errBadClient says all that who guesses secrets may know.
var errBadClient = refuse(http.StatusUnauthorized, "invalid_client", "Bad credentials")

// authenticate is the client that a request is from. The form must have been
// parsed. A client that has a secret and shows none is refused before that counts as a
// failed login, as it guesses nothing: the cf CLI sends none once the token of a client
// has expired, and would lock the admin's account with a few commands.
func (u *UAA) authenticate(r *http.Request) (*cf.Client, error) {
	id, secret := credentials(r)
	if id == adminClient {
		if secret == "" {
			return nil, errBadClient
		}
		if _, err := u.byPassword(r, "admin", secret); err != nil {
			return nil, clientFault(err)
		}
		return builtin(id), nil
	}
	if len(id) > maxUsername {
		return nil, errBadClient
	}
	c, err := u.client(r.Context(), id)
	if err != nil && !store.IsNotFound(err) {
		return nil, err
	}
	if c != nil && c.SecretHash == "" { // has none to guess
		if secret != "" {
			return nil, errBadClient
		}
		return c, nil
	}
	if secret == "" {
		return nil, errBadClient
	}
	stored := noUser
	if c != nil {
		stored = []byte(c.SecretHash)
	}
	same, err := u.guard(r, "client\x00"+id, stored, []byte(secret))
	switch {
	case err != nil:
		return nil, clientFault(err)
	case !same || c == nil:
		return nil, errBadClient
	}
	return c, nil
}

// clientFault returns the error for a failed client login: a lockout looks
// like any other failure.
func clientFault(err error) error {
	if _, ok := err.(*fault); ok { //nolint:errorlint // faults are never wrapped
		return errBadClient
	}
	return err
}

// resourceServer is the client of a request, if it may look into tokens.
func (u *UAA) resourceServer(r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return refuse(http.StatusBadRequest, "invalid_request", "The form could not be read")
	}
	c, err := u.authenticate(r)
	if err != nil {
		return err
	}
	if !slices.Contains(c.Authorities, "uaa.resource") {
		return refuse(http.StatusForbidden, "access_denied", "Access is denied")
	}
	return nil
}
