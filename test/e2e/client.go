package e2e

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client makes calls of the v3 API.
type Client struct {
	API   string // base URL
	Token string
	HTTP  *http.Client
}

// UserAgent makes the daemon hold its answers until there is news.
const UserAgent = "cupola/1"

// Doc is a JSON object.
type Doc = map[string]any

// Login gets a token with a user's password.
func Login(ctx context.Context, api, user, password string) (*Client, error) {
	c := &Client{API: api, HTTP: &http.Client{}}
	form := url.Values{"grant_type": {"password"}, "username": {user}, "password": {password}}
	req, err := http.NewRequestWithContext(ctx, "POST", c.API+"/oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.SetBasicAuth("cf", "")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	var answer struct {
		Token string `json:"access_token"`
	}
	if err := c.Do(req, &answer); err != nil {
		return nil, fmt.Errorf("log in as %s at %s: %w", user, c.API, err)
	}
	if answer.Token == "" {
		return nil, fmt.Errorf("log in as %s at %s: the answer has no token", user, c.API)
	}
	c.Token = answer.Token
	return c, nil
}

// Call makes a request with a JSON body (nil: none) and decodes the answer
// into out (nil: ignores it).
func (c *Client) Call(ctx context.Context, method, path string, body, out any) error {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL(path), r)
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return c.Do(req, out)
}

// URL is that of a path. A link of an answer is a URL already.
func (c *Client) URL(path string) string {
	if strings.HasPrefix(path, "http") {
		return path
	}
	return c.API + path
}

// Do sends a request and decodes the answer into out (nil: ignores it).
func (c *Client) Do(req *http.Request, out any) error {
	res, err := c.Send(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if out == nil {
		_, err = io.Copy(io.Discard, res.Body)
		return err
	}
	return json.NewDecoder(res.Body).Decode(out)
}

// Send sends a request. A status of 400 and above becomes an error with the
// server's words.
func (c *Client) Send(req *http.Request) (*http.Response, error) {
	req.Header.Set("User-Agent", UserAgent)
	if c.Token != "" {
		req.Header.Set("Authorization", "bearer "+c.Token)
	}
	res, err := c.HTTP.Do(req)
	if err != nil || res.StatusCode < 400 {
		return res, err
	}
	defer res.Body.Close()
	var body struct {
		Errors      []struct{ Detail string }
		Description string `json:"error_description"`
	}
	text, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if json.Unmarshal(text, &body) != nil || len(body.Errors) == 0 && body.Description == "" {
		return nil, fmt.Errorf("%s: %s", res.Status, bytes.TrimSpace(text))
	}
	if body.Description != "" {
		return nil, errors.New(body.Description)
	}
	return nil, details(body.Errors)
}

func details(all []struct{ Detail string }) error {
	var texts []string
	for _, e := range all {
		texts = append(texts, e.Detail)
	}
	return errors.New(strings.Join(texts, "; "))
}

// First returns the GUID of the first resource of a list.
func (c *Client) First(ctx context.Context, what, path string) (string, error) {
	var page struct{ Resources []struct{ GUID string } }
	if err := c.Call(ctx, "GET", path, nil, &page); err != nil {
		return "", err
	}
	if len(page.Resources) == 0 {
		return "", fmt.Errorf("there is no %s", what)
	}
	return page.Resources[0].GUID, nil
}

// List returns all resources of a list.
func List[T any](ctx context.Context, c *Client, path string) (all []T, err error) {
	for path != "" {
		var page struct {
			Pagination struct{ Next struct{ Href string } }
			Resources  []T
		}
		if err := c.Call(ctx, "GET", path, nil, &page); err != nil {
			return nil, err
		}
		all, path = append(all, page.Resources...), page.Pagination.Next.Href
	}
	return all, nil
}

// ToOne is a relationship as requests write it.
func ToOne(guid string) Doc { return Doc{"data": Doc{"guid": guid}} }

// Job waits for the job of a 202.
func (c *Client) Job(ctx context.Context, location string) error {
	for {
		var j struct {
			State  string
			Errors []struct{ Detail string }
		}
		if err := c.Call(ctx, "GET", location, nil, &j); err != nil {
			return err
		}
		switch j.State {
		case "COMPLETE":
			return nil
		case "FAILED":
			return details(j.Errors)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ApplyManifest applies a manifest to a space, and waits for the job.
func (c *Client) ApplyManifest(ctx context.Context, space string, manifest []byte) error {
	req, err := http.NewRequestWithContext(ctx, "POST", c.URL("/v3/spaces/"+space+"/actions/apply_manifest"), bytes.NewReader(manifest))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-yaml")
	res, err := c.Send(req)
	if err != nil {
		return err
	}
	res.Body.Close()
	return c.Job(ctx, res.Header.Get("Location"))
}

// Upload uploads the zip of a package.
func (c *Client) Upload(ctx context.Context, pkg string, bits []byte) error {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("bits", "package.zip")
	if err != nil {
		return err
	}
	_, err = part.Write(bits)
	if err := errors.Join(err, form.Close()); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, "POST", c.URL("/v3/packages/"+pkg+"/upload"), &body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	return c.Do(req, nil)
}

// Zip makes a zip of one file.
func Zip(name string, content []byte) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create(name)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(content)
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

// LogLines reads the log of an app: of its staging, its instances and its
// health checks. After an error it returns no lines: callers read again.
func (c *Client) LogLines(ctx context.Context, app string) (lines []string) {
	var answer struct {
		Envelopes struct {
			Batch []struct {
				Tags map[string]string
				Log  struct{ Payload string }
			}
		}
	}
	if err := c.Call(ctx, "GET", "/api/v1/read/"+app+"?envelope_types=LOG&limit=1000&start_time=0", nil, &answer); err != nil {
		return nil
	}
	for _, e := range answer.Envelopes.Batch {
		text, err := base64.StdEncoding.DecodeString(e.Log.Payload)
		if source := e.Tags["source_type"]; err == nil && (strings.HasPrefix(source, "STG") || strings.HasPrefix(source, "APP") || source == "HEALTH") {
			lines = append(lines, string(text))
		}
	}
	return lines
}
