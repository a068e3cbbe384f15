package uaa

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"cupola/store"
	"cupola/store/cf"
)

// clientRequest is a client as the UAA's API has it.
type clientRequest struct {
	ID             string   `json:"client_id"`
	Secret         string   `json:"client_secret"`
	Name           string   `json:"name"`
	GrantTypes     []string `json:"authorized_grant_types"`
	Scopes         []string `json:"scope"`
	Authorities    []string `json:"authorities"`
	RedirectURIs   []string `json:"redirect_uri"`
	AutoApprove    approval `json:"autoapprove"`
	AccessSeconds  int      `json:"access_token_validity"`
	RefreshSeconds int      `json:"refresh_token_validity"`
}

// approval is true, false or a list of scopes.
type approval []string

func (a *approval) UnmarshalJSON(b []byte) error {
	var all bool
	if json.Unmarshal(b, &all) == nil {
		if *a = nil; all {
			*a = approval{"true"}
		}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(a))
}

func (a approval) MarshalJSON() ([]byte, error) {
	if slices.Contains(a, "true") {
		return []byte("true"), nil
	}
	return json.Marshal(orEmpty(a))
}

// orEmpty is a list that JSON shows as [] when there is none.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func viewClient(c *cf.Client) doc {
	view := doc{"client_id": c.GUID, "name": c.Name, "authorized_grant_types": orEmpty(c.GrantTypes), "scope": orEmpty(c.Scopes), "authorities": orEmpty(c.Authorities),
		"redirect_uri": orEmpty(c.RedirectURIs), "autoapprove": approval(c.AutoApprove), "resource_ids": []string{"none"}, "lastModified": max(c.CreatedAt.UnixMilli(), c.UpdatedAt.UnixMilli(), 0)}
	if c.AccessSeconds > 0 {
		view["access_token_validity"] = c.AccessSeconds
	}
	if c.RefreshSeconds > 0 {
		view["refresh_token_validity"] = c.RefreshSeconds
	}
	return view
}

// check says what cannot be of a client.
func (req *clientRequest) check() error {
	bad := func(format string, args ...any) error {
		return refuse(http.StatusBadRequest, "invalid_client", format, args...)
	}
	if req.ID == "" || len(req.ID) > maxUsername || strings.ContainsAny(req.ID, "/\x00") {
		return bad("Client ID must be 1 to %d bytes without a slash", maxUsername)
	}
	if len(req.GrantTypes) == 0 {
		return bad("Must provide at least one authorized grant type")
	}
	for _, g := range req.GrantTypes {
		if !slices.Contains([]string{grantPassword, grantRefresh, grantCode, grantClient}, g) {
			return bad("%s is not an allowed grant type. Must be one of: [authorization_code, client_credentials, password, refresh_token]", g)
		}
	}
	if req.Secret == "" && (slices.Contains(req.GrantTypes, grantClient) || slices.Contains(req.GrantTypes, grantPassword)) {
		return bad("Client secret is required for client_credentials and password grants")
	}
	if slices.Contains(req.GrantTypes, grantCode) && len(req.RedirectURIs) == 0 {
		return bad("redirect_uri is required for the authorization_code grant")
	}
	for _, uri := range req.RedirectURIs {
		if !redirectable(uri) {
			return bad("One of the redirect_uri is invalid: [%s]", uri)
		}
	}
	if limit := int(refreshLife.Seconds()); req.AccessSeconds < 0 || req.RefreshSeconds < 0 || req.AccessSeconds > limit || req.RefreshSeconds > limit {
		return bad("The validity of tokens must be at most %d seconds", limit)
	}
	return checkSecret(req.Secret)
}

func checkSecret(secret string) error {
	if len(secret) > maxPassword {
		return refuse(http.StatusBadRequest, "invalid_client", "Client secret must be no more than %d bytes in length.", maxPassword)
	}
	return nil
}

// redirectable reports whether codes may be sent to a URI: one of the web, or of
// an app's own scheme, which has a dot; no pattern, since none is matched.
func redirectable(uri string) bool {
	u, err := url.Parse(uri)
	if err != nil || u.Fragment != "" || u.User != nil || u.Opaque != "" || strings.ContainsAny(uri, "*#\\") {
		return false
	}
	if u.Scheme == "http" || u.Scheme == "https" {
		return u.Hostname() != ""
	}
	return strings.Contains(u.Scheme, ".")
}

// apply writes what was asked for into c, all but ID and secret.
func (req *clientRequest) apply(c *cf.Client) {
	c.Name, c.GrantTypes, c.Scopes, c.Authorities = req.Name, req.GrantTypes, req.Scopes, req.Authorities
	c.RedirectURIs, c.AutoApprove = req.RedirectURIs, req.AutoApprove
	c.AccessSeconds, c.RefreshSeconds = req.AccessSeconds, req.RefreshSeconds
}

func decodeClient(r *http.Request) (*clientRequest, error) {
	var req clientRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		return nil, refuse(http.StatusBadRequest, "invalid_client", "The client could not be read")
	}
	return &req, nil
}

// permit refuses a client that could do more than who makes it, unless that is
// an admin: else clients.write would be the right to everything.
func (req *clientRequest) permit(by cf.Identity) error {
	if slices.Contains(by.Scopes, "uaa.admin") || slices.Contains(by.Scopes, "clients.admin") {
		return nil
	}
	bad := func(what, name string) error {
		return refuse(http.StatusBadRequest, "invalid_client", "%s is not an allowed %s for caller=%s. Must have prefix in [%s.,%s.] or be one of: %v", name, what, by.ClientID, by.ClientID, req.ID, by.Scopes)
	}
	if slices.Contains(req.GrantTypes, grantPassword) {
		return refuse(http.StatusBadRequest, "invalid_client", "%s is not an allowed grant type for caller=%s", grantPassword, by.ClientID)
	}
	for what, names := range map[string][]string{"scope": req.Scopes, "authority": req.Authorities} {
		for _, name := range names {
			if !slices.Contains(by.Scopes, name) && (meaning(name) || !strings.HasPrefix(name, by.ClientID+".") && !strings.HasPrefix(name, req.ID+".")) {
				return bad(what, name)
			}
		}
	}
	return nil
}

// meaning reports whether cupola uses a scope, whatever
// clients are called.
func meaning(scope string) bool {
	return slices.Contains(slices.Concat(userScopes, AdminScopes, otherScopes), scope)
}

// clientAdmin serves the clients of OAuth.
type clientAdmin struct{ *UAA }

func (u clientAdmin) createClient(r *http.Request) (int, any, error) {
	by, err := u.bearer(r, "uaa.admin", "clients.admin", "clients.write")
	if err != nil {
		return 0, nil, err
	}
	req, err := decodeClient(r)
	if err == nil {
		err = req.check()
	}
	if err == nil {
		err = req.permit(by)
	}
	if err != nil {
		return 0, nil, err
	}
	c := &cf.Client{Resource: cf.Resource{GUID: req.ID}}
	req.apply(c)
	if err := setSecret(c, req.Secret); err != nil {
		return 0, nil, err
	}
	taken := refuse(http.StatusConflict, "invalid_client", "Client already exists: %s", req.ID)
	if builtin(req.ID) != nil {
		return 0, nil, taken
	}
	err = u.store.Write(r.Context(), func(tx *store.Tx) error { return store.Clients.Insert(tx, c) })
	if store.IsTaken(err) {
		err = taken
	}
	return http.StatusCreated, viewClient(c), err
}

// setSecret gives a client a secret, which voids what it got with another.
func setSecret(c *cf.Client, secret string) (err error) {
	c.TokenSalt, c.SecretHash = newSalt(), ""
	if secret != "" {
		c.SecretHash, err = hash(secret)
	}
	return err
}

// changeClient applies a change to the client of the request, which must be a
// registered one.
func (u clientAdmin) changeClient(r *http.Request, change func(*store.Tx, *cf.Client) error) (c *cf.Client, err error) {
	if builtin(r.PathValue("id")) != nil {
		return nil, refuse(http.StatusForbidden, "access_denied", "This client is cupola's own")
	}
	err = u.store.Write(r.Context(), func(tx *store.Tx) error {
		if c, err = store.Clients.Get(tx, r.PathValue("id")); err != nil {
			return noClient(r, err)
		}
		return change(tx, c)
	})
	return c, err
}

func noClient(r *http.Request, err error) error {
	if store.IsNotFound(err) {
		return refuse(http.StatusNotFound, "invalid_client", "No client with requested id: %s", r.PathValue("id"))
	}
	return err
}

// updateClient sets all but the secret, which has its own way.
func (u clientAdmin) updateClient(r *http.Request) (int, any, error) {
	by, err := u.bearer(r, "uaa.admin", "clients.admin", "clients.write")
	if err != nil {
		return 0, nil, err
	}
	req, err := decodeClient(r)
	if err != nil {
		return 0, nil, err
	}
	c, err := u.changeClient(r, func(tx *store.Tx, c *cf.Client) error {
		req.ID, req.Secret = c.GUID, c.SecretHash
		if err := req.check(); err != nil {
			return err
		}
		if err := req.permit(by); err != nil {
			return err
		}
		req.apply(c)
		return store.Clients.Update(tx, c)
	})
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, viewClient(c), nil
}

// changeSecret is for admins alone: a client may not give itself another.
func (u clientAdmin) changeSecret(r *http.Request) (int, any, error) {
	var req struct {
		Secret string `json:"secret"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || req.Secret == "" {
		return 0, nil, refuse(http.StatusBadRequest, "invalid_client", "A secret is required")
	}
	if err := checkSecret(req.Secret); err != nil {
		return 0, nil, err
	}
	next := &cf.Client{}
	if err := setSecret(next, req.Secret); err != nil { // takes its time: not while the database is held
		return 0, nil, err
	}
	_, err := u.changeClient(r, func(tx *store.Tx, c *cf.Client) error {
		c.SecretHash, c.TokenSalt = next.SecretHash, next.TokenSalt
		return store.Clients.Update(tx, c)
	})
	return http.StatusOK, doc{"status": "ok", "message": "Secret is updated"}, err
}

func (u clientAdmin) deleteClient(r *http.Request) (int, any, error) {
	c, err := u.changeClient(r, func(tx *store.Tx, c *cf.Client) error { return store.Clients.Delete(tx, c.GUID) })
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, viewClient(c), nil
}

func (u clientAdmin) showClient(r *http.Request) (int, any, error) {
	c, err := u.client(r.Context(), r.PathValue("id"))
	if err != nil {
		return 0, nil, noClient(r, err)
	}
	return http.StatusOK, viewClient(c), nil
}

func (u clientAdmin) listClients(r *http.Request) (int, any, error) {
	var all []resource
	err := u.store.Read(r.Context(), func(tx *store.Tx) error {
		rows, err := store.Clients.All(tx)
		for _, c := range append([]*cf.Client{builtin(adminClient), builtin(cliClient), builtin(boshClient), builtin(SSHClient)}, rows...) {
			all = append(all, resource{attributes: attributes{"client_id": {c.GUID}}, view: func() doc { return viewClient(c) }})
		}
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	return listPage(r, all)
}
