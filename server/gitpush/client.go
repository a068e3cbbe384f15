package gitpush

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// client makes calls of the API in this process, as who pushes.
type client struct {
	api    http.Handler
	host   string // by which the pusher knows the API
	tls    *tls.ConnectionState
	remote string // address of the pusher
	// renew gets another token; nil where a token was given.
	renew func(ctx context.Context) (string, error)

	mu    sync.Mutex
	token string
}

// logIn takes what git sends by basic authentication: a user and the password, or any
// name and a token.
func (f *Face) logIn(r *http.Request, api http.Handler) (*client, error) {
	c := &client{api: api, host: r.Host, tls: r.TLS, remote: r.RemoteAddr}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	user, password, basic := r.BasicAuth()
	switch {
	case strings.EqualFold(scheme, "bearer"):
		c.token = token
		return c, nil
	case !basic || password == "":
		return nil, unauthorized()
	}
	if _, rest, found := strings.Cut(password, "bearer "); found { // as cf oauth-token prints it
		password = rest
	}
	if _, err := f.Verify(r.Context(), password); err == nil {
		c.token = password
		return c, nil
	}
	c.renew = func(ctx context.Context) (string, error) { return c.byPassword(ctx, user, password) }
	return c, c.login(r.Context())
}

func unauthorized() *refusal {
	return refusef(http.StatusUnauthorized, "Log in with a user and the password, or with any user name and a token as the password. 'cupola git remote APP --add cupola' sets git up so that it asks for none.")
}

// login gets a token.
func (c *client) login(ctx context.Context) error {
	token, err := c.renew(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = token
	return nil
}

// byPassword gets a token for a user and the password.
func (c *client) byPassword(ctx context.Context, user, password string) (string, error) {
	form := url.Values{"grant_type": {"password"}, "username": {user}, "password": {password}}
	req, err := c.request(ctx, "POST", "/oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.SetBasicAuth("cf", "") // the public client of the cf CLI
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res := c.serve(req)
	var answer struct {
		Token       string `json:"access_token"`
		Description string `json:"error_description"`
	}
	if err := json.Unmarshal(res.body.Bytes(), &answer); err != nil || answer.Token == "" {
		u := unauthorized()
		if answer.Description != "" {
			u.text = answer.Description + ". " + u.text
		}
		return "", u
	}
	return answer.Token, nil
}

// answer keeps what a handler answers.
type answer struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

func (c *client) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	if body == nil {
		body = http.NoBody
	}
	req, err := http.NewRequestWithContext(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	req.Host, req.TLS, req.RemoteAddr, req.RequestURI = c.host, c.tls, c.remote, req.URL.RequestURI()
	req.Header.Set("User-Agent", "cupola/1") // the API holds its answers until there is news
	return req, nil
}

func (c *client) serve(req *http.Request) *answer {
	a := &answer{header: http.Header{}}
	c.api.ServeHTTP(a, req)
	return a
}

// send makes a call. An answer of 400 and above is an error in the API's words.
func (c *client) send(ctx context.Context, method, path, kind string, body io.Reader) (*answer, error) {
	req, err := c.request(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	req.Header.Set("Authorization", "bearer "+c.token)
	c.mu.Unlock()
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	a := c.serve(req)
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if a.status >= http.StatusBadRequest {
		return a, apiError(a)
	}
	return a, nil
}

// call makes a call with a JSON body (nil: none) and decodes the answer into out (nil:
// not at all). A token that ends during a long staging is renewed.
func (c *client) call(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	kind := ""
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
		kind = "application/json"
	}
	a, err := c.send(ctx, method, path, kind, bytes.NewReader(body))
	if a != nil && a.status == http.StatusUnauthorized && c.renew != nil {
		if err := c.login(ctx); err != nil {
			return err
		}
		a, err = c.send(ctx, method, path, kind, bytes.NewReader(body))
	}
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(a.body.Bytes(), out)
}

func apiError(a *answer) error {
	var body struct{ Errors []struct{ Detail string } }
	if json.Unmarshal(a.body.Bytes(), &body) != nil || len(body.Errors) == 0 {
		return fmt.Errorf("the API answered %d", a.status)
	}
	var details []string
	for _, e := range body.Errors {
		details = append(details, e.Detail)
	}
	return errors.New(strings.Join(details, "; "))
}
