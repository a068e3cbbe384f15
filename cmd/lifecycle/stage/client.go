package stage

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"cupola/runtime/contract"
)

// client asks the daemon.
type client struct {
	base, token string
	http        *http.Client
}

// newClient takes the environment's words out of it.
func newClient() (*client, error) {
	take := func(name string) string {
		defer func() { _ = os.Unsetenv(name) }()
		return os.Getenv(name)
	}
	c := &client{base: take(contract.EnvStagerURL), token: take(contract.EnvStagerToken)}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(take(contract.EnvStagerCA))) || c.base == "" {
		return nil, fmt.Errorf("%s, %s and %s say nothing: only cupola starts this program", contract.EnvStagerURL, contract.EnvStagerToken, contract.EnvStagerCA)
	}
	d := &net.Dialer{Timeout: 10 * time.Second}
	// The proxies of the environment are those of buildpacks, not the way to the daemon.
	c.http = &http.Client{Transport: &http.Transport{DialContext: d.DialContext, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: 10 * time.Minute, IdleConnTimeout: 30 * time.Second}}
	return c, nil
}

// refusal is the daemon's no to what was asked.
type refusal string

func (r refusal) Error() string { return string(r) }

// errGone says that the daemon does not know this staging, or not any longer.
var errGone = errors.New("the daemon does not want this staging")

// retryTime is the longest time between two attempts.
const retryTime = 5 * time.Second

// ask makes a request until the daemon answers, says no, or ctx ends. take reads a good answer's body.
func (c *client) ask(ctx context.Context, method, path string, body func() (io.Reader, int64, error), take func(io.Reader) error) error {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, retryTime) {
		err := c.once(ctx, method, path, body, take)
		if err == nil || errors.Is(err, errGone) {
			return err
		}
		if _, no := errors.AsType[refusal](err); no {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

func (c *client) once(ctx context.Context, method, path string, body func() (io.Reader, int64, error), take func(io.Reader) error) error {
	var content io.Reader
	var size int64
	if body != nil {
		var err error
		if content, size, err = body(); err != nil {
			return refusal(err.Error())
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.base, "/")+"/"+path, content)
	if err != nil {
		return refusal(err.Error())
	}
	req.ContentLength = size
	req.Header.Set("Authorization", "Bearer "+c.token)
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	switch code := res.StatusCode; {
	case code == http.StatusOK && take != nil:
		return take(res.Body)
	case code == http.StatusOK, code == http.StatusCreated, code == http.StatusConflict: // it has it: an answer was lost
		return nil
	case code == http.StatusGone:
		return errGone
	case code >= http.StatusInternalServerError && code != http.StatusInsufficientStorage:
		return fmt.Errorf("the daemon answers %s", res.Status)
	default:
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10))
		return refusal(strings.TrimSpace(string(text)))
	}
}

// awayTime is how long the daemon may be away before the first step and after the last one. Between them the plan says so.
const awayTime = 15 * time.Minute

// maxPlan bounds a plan. Bytes.
const maxPlan = 64 << 20

// plan is the work of the staging.
func (c *client) plan(ctx context.Context) (p contract.StagingPlan, err error) {
	ctx, cancel := context.WithTimeout(ctx, awayTime)
	defer cancel()
	err = c.ask(ctx, http.MethodGet, contract.StagerPlan, nil, func(r io.Reader) error { return json.NewDecoder(io.LimitReader(r, maxPlan)).Decode(&p) })
	if errors.Is(err, errGone) || ctx.Err() != nil {
		return p, errLost
	}
	return p, err
}

// input downloads an archive into a file without a name.
func (c *client) input(ctx context.Context, source string) (*os.File, error) {
	f, err := os.CreateTemp("", "input-*")
	if err != nil {
		return nil, err
	}
	err = os.Remove(f.Name())
	if err == nil {
		err = c.ask(ctx, http.MethodGet, contract.StagerInputs+"/"+source, nil, func(r io.Reader) error {
			if err := errors.Join(f.Truncate(0), second(f.Seek(0, io.SeekStart))); err != nil {
				return refusal(err.Error())
			}
			_, err := io.Copy(f, r)
			if full, ok := errors.AsType[*os.PathError](err); ok { // of f
				return refusal(full.Error())
			}
			return err
		})
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func second[T any](_ T, err error) error { return err }

// output sends a file.
func (c *client) output(ctx context.Context, name string, f *os.File) error {
	return c.ask(ctx, http.MethodPut, contract.StagerOutputs+"/"+name, func() (io.Reader, int64, error) {
		info, err := f.Stat()
		if err != nil {
			return nil, 0, err
		}
		if info.Size() == 0 {
			return http.NoBody, 0, nil
		}
		return io.NewSectionReader(f, 0, info.Size()), info.Size(), nil
	}, nil)
}
