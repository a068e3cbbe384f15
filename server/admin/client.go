package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"

	"cupola/server/admin/steps"
)

// client asks the daemon of a data directory.
type client struct{ http *http.Client }

func newClient(dataDir string) client {
	dial := func(ctx context.Context, _, _ string) (c net.Conn, err error) {
		err = inSocketDir(dataDir, func(name string) error {
			var d net.Dialer
			c, err = d.DialContext(ctx, "unix", name)
			return err
		})
		switch {
		case errors.Is(err, fs.ErrPermission):
			err = fmt.Errorf("only root may ask the daemon of %s: run it with sudo", dataDir)
		case err != nil && ctx.Err() == nil:
			err = fmt.Errorf("no daemon answers on %s: start it with 'sudo cupola serve', or wait if it is just starting", dataDir)
		}
		return c, err
	}
	return client{&http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

func (c client) send(ctx context.Context, path string, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://cupola"+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return nil, errors.New("the daemon ended before it answered: start it again, then repeat the command")
	}
	if err != nil {
		return nil, unwrapURL(err)
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	if res.StatusCode == http.StatusNotFound {
		return nil, errors.Join(errors.New("the daemon is of another version of cupola, which does not know this operation: restart it"), res.Body.Close())
	}
	defer res.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // what there is of it
	return nil, errors.New(string(bytes.TrimSpace(said)))
}

// unwrapURL drops the URL, which no user knows, from an error of the client.
func unwrapURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// errEnded is of an answer that broke off.
func errEnded(err error) error { return fmt.Errorf("the daemon ended: %w", err) }

// receive writes the bytes that the daemon sends.
func (c client) receive(ctx context.Context, path string, in any, out *steps.Writer) error {
	res, err := c.send(ctx, path, in)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if out.Total, err = strconv.ParseInt(res.Header.Get(sizeHeader), 10, 64); err != nil {
		return errors.New("the daemon is of a cupola that makes no backups: restart it")
	}
	n, err := io.Copy(out, res.Body)
	if text, uerr := strconv.Unquote(res.Trailer.Get(errorTrailer)); uerr == nil {
		return errors.New(text)
	}
	if err == nil && n != out.Total {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("the daemon ended in the middle of the backup: start it again, then repeat the command (%w)", err)
	}
	return nil
}
