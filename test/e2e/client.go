package e2e

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"mime/multipart"
	"net/http"
	"strings"

	"cupola/cmd/cupola/capi"
	"cupola/server/logcache/logpage"
)

// Client makes calls of the v3 API.
type Client struct{ capi.Client }

// UserAgent makes the daemon hold its answers until there is news.
const UserAgent = capi.UserAgent

// Doc is a JSON object.
type Doc = capi.Doc

// Login gets a token with a user's password.
func Login(ctx context.Context, api, user, password string) (*Client, error) {
	c, err := capi.Login(ctx, api, user, password)
	if err != nil {
		return nil, err
	}
	return &Client{*c}, nil
}

// List returns all resources of a list.
func List[T any](ctx context.Context, c *Client, path string) (all []T, err error) {
	return capi.List[T](ctx, &c.Client, path)
}

// ToOne is a relationship as requests write it.
func ToOne(guid string) Doc { return capi.ToOne(guid) }

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
func (c *Client) LogLines(ctx context.Context, app string) []string {
	var page logpage.Page
	if err := c.Call(ctx, "GET", logpage.Path(app, 0), nil, &page); err != nil {
		return nil
	}
	lines, _ := page.Lines(func(source string) bool {
		return strings.HasPrefix(source, "STG") || strings.HasPrefix(source, "APP") || source == "HEALTH"
	})
	return lines
}
