package buildpack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"cupola/runtime/durable"
	"cupola/server/bits"
	"cupola/server/outward"
	"cupola/store/blob"
)

// Config says how a Fetcher fetches.
type Config struct {
	Blobs    *blob.Store
	MaxBytes int64 // of a zip, of a repository's pack and of its files; 0: DefaultMaxBytes
	Where    outward.Guard
	TempDir  string // for packs; New makes and empties it; "": the system's
}

// DefaultMaxBytes is the limit where Config has none: the largest upstream
// buildpacks with all their dependencies have about 1.5 GB.
const DefaultMaxBytes = 2 << 30

// Fetcher fetches buildpacks. It is safe for concurrent use.
type Fetcher struct {
	blobs  *blob.Store
	max    int64
	most   int // files and directories of a repository, with those of its submodules
	temp   string
	client *http.Client
}

// New makes a Fetcher. What one that was killed left in the TempDir goes.
func New(c Config) (*Fetcher, error) {
	if c.TempDir != "" {
		if err := durable.EmptyDir(c.TempDir); err != nil {
			return nil, err
		}
	}
	f := &Fetcher{blobs: c.Blobs, max: c.MaxBytes, most: bits.DefaultLimits.Entries, temp: c.TempDir}
	if f.max == 0 {
		f.max = DefaultMaxBytes
	}
	d := &net.Dialer{Timeout: 30 * time.Second, ControlContext: c.Where.Control}
	f.client = &http.Client{Transport: bounded{&http.Transport{
		DialContext: d.DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 30 * time.Second, ResponseHeaderTimeout: 2 * time.Minute, IdleConnTimeout: time.Minute,
	}}}
	return f, nil
}

// The bounds of answers that are read into memory whole, in bytes: an error's
// text, and a repository's list of references.
const (
	maxErrorText  = 4 << 10
	maxReferences = 32 << 20
)

// bounded cuts those answers off.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	switch {
	case res.StatusCode >= http.StatusBadRequest:
		res.Body = cutBody{io.LimitReader(res.Body, maxErrorText), res.Body}
	case strings.HasSuffix(req.URL.Path, "/info/refs"):
		res.Body = cutBody{io.LimitReader(res.Body, maxReferences), res.Body}
	}
	return res, nil
}

type cutBody struct {
	io.Reader
	io.Closer
}

// Fetch stores the buildpack that a URL leads to and gives the digest of its
// zip. Errors are for the person who pushes.
func (f *Fetcher) Fetch(ctx context.Context, raw string) (digest string, err error) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", errors.New("it is not a URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%s is not supported, only http and https are", u.Scheme)
	}
	if isZip(u) {
		return f.fetchZip(ctx, u)
	}
	return f.fetchGit(ctx, u)
}

func (f *Fetcher) fetchZip(ctx context.Context, u *url.URL) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", err
	}
	res, err := f.client.Do(req)
	if err != nil {
		return "", cause(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the server says %s", res.Status)
	}
	if res.ContentLength > f.max {
		return "", errTooLarge(f.max)
	}
	t, err := f.blobs.Temp()
	if err != nil {
		return "", err
	}
	defer t.Discard()
	n, err := io.Copy(t, io.LimitReader(res.Body, f.max+1))
	if err != nil {
		return "", fmt.Errorf("the download broke off after %d bytes: %w", n, cause(err))
	}
	if n > f.max {
		return "", errTooLarge(f.max)
	}
	if _, err := bits.OpenZip(t.File); err != nil {
		return "", fmt.Errorf("it %w", err)
	}
	b, err := t.Commit()
	return b.Digest, err
}

// cause is an error of the client without the URL, which may hold a password.
func cause(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

func errTooLarge(max int64) error { return fmt.Errorf("it has more than %d bytes", max) }
