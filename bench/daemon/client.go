package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Push runs `cupola push` of the app in dir, through the API at api.
func (d *Daemon) Push(ctx context.Context, api, dir, name string) error {
	cmd := exec.CommandContext(ctx, d.Binary, "push", dir, "--api", api, "--name", name)
	cmd.Env = append(os.Environ(), "CUPOLA_PASSWORD="+Password)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cupola push: %w\n%s", err, out)
	}
	return nil
}

// Client calls the API as the admin. It logs in again before its token ends.
type Client struct {
	d     *Daemon
	mu    sync.Mutex
	token string
	since time.Time
}

// renewal is after how much time a client logs in again: a token is good for ten minutes.
const renewal = 5 * time.Minute

// Login gets a token.
func (d *Daemon) Login(ctx context.Context) (*Client, error) {
	c := &Client{d: d}
	return c, c.login(ctx)
}

func (c *Client) login(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.since) < renewal {
		return nil
	}
	token, err := c.d.newToken(ctx)
	if err == nil {
		c.token, c.since = "bearer "+token, time.Now()
	}
	return err
}

func (d *Daemon) newToken(ctx context.Context) (string, error) {
	form := url.Values{"grant_type": {"password"}, "username": {"admin"}, "password": {Password}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL()+"/oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.SetBasicAuth("cf", "")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	var answer struct {
		Token string `json:"access_token"`
	}
	if err := send(req, &answer); err != nil {
		return "", err
	}
	return answer.Token, nil
}

// Call makes a request and decodes the answer into out, unless that is nil.
func (c *Client) Call(ctx context.Context, method, path string, body, out any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := c.request(ctx, method, path, "application/json", data)
	if err != nil {
		return err
	}
	return send(req, out)
}

// Apply posts a manifest.
func (c *Client) Apply(ctx context.Context, path, manifest string) error {
	return c.Send(ctx, http.MethodPost, path, "application/x-yaml", []byte(manifest))
}

// Send makes a request with a body of any kind.
func (c *Client) Send(ctx context.Context, method, path, kind string, body []byte) error {
	req, err := c.request(ctx, method, path, kind, body)
	if err != nil {
		return err
	}
	return send(req, nil)
}

func (c *Client) request(ctx context.Context, method, path, kind string, body []byte) (*http.Request, error) {
	if err := c.login(ctx); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, c.d.URL()+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", c.Authorization())
	req.Header.Set("Content-Type", kind)
	return req, nil
}

// GUID is that of the first resource of a list.
func (c *Client) GUID(ctx context.Context, path string) (string, error) {
	var list struct{ Resources []struct{ GUID string } }
	if err := c.Call(ctx, http.MethodGet, path, nil, &list); err != nil {
		return "", err
	}
	if len(list.Resources) == 0 {
		return "", fmt.Errorf("%s is empty", path)
	}
	return list.Resources[0].GUID, nil
}

func send(req *http.Request, out any) error {
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= 400 {
		return fmt.Errorf("%s %s: %s: %s", req.Method, req.URL.Path, res.Status, text)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

// Authorization is the client's header of that name.
func (c *Client) Authorization() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token
}
